"""Books: chapters in the order of their spine, and what the table of contents says of their hierarchy."""

from octavo.extract.formats.epub.book import PROCESSOR

__all__ = ["PROCESSOR"]
