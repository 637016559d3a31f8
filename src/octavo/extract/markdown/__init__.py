"""Reads blocks, headings and front matter of Markdown with exact offsets, escapes text, and writes blocks."""

from octavo.extract.markdown.blocks import read_blocks
from octavo.extract.markdown.front_matter import FrontMatter, read_front_matter
from octavo.extract.markdown.headings import outline_of, plain_title

__all__ = ["FrontMatter", "outline_of", "plain_title", "read_blocks", "read_front_matter"]
