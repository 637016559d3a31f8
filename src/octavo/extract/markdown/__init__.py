"""Reads the blocks, headings and front matter of Markdown with exact offsets, escapes text, and writes blocks."""

from octavo.extract.markdown.blocks import FrontMatter, outline_of, plain_title, read_blocks, read_front_matter

__all__ = ["FrontMatter", "outline_of", "plain_title", "read_blocks", "read_front_matter"]
