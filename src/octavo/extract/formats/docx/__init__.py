"""Word documents. Octavo reads their XML itself, because styles and numbering decide what a paragraph is."""

from octavo.extract.formats.docx.document import PROCESSOR

__all__ = ["PROCESSOR"]
