"""Plain text to Markdown that shows the same text. Structure is recognised where it is obvious, and only there."""

from octavo.extract.plain_text.convert import Converted, convert

__all__ = ["Converted", "convert"]
