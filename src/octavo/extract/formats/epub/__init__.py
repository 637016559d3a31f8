"""EPUB 2 and 3: chapters in spine order, with heading levels from the table of contents."""

from octavo.extract.formats.epub.book import PROCESSOR

__all__ = ["PROCESSOR"]
