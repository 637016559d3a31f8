"""Converts plain text to Markdown that displays the same text. Only obvious structure is recognised."""

from octavo.extract.plain_text.convert import ConvertedText, convert

__all__ = ["ConvertedText", "convert"]
