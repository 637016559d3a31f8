"""Books: chapters in the order of their spine, and what the table of contents says of their hierarchy."""

from octavo.extract.epub.book import Converted, convert

__all__ = ["Converted", "convert"]
