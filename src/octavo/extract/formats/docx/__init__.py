"""Word's documents to Markdown: a walk over their XML, because what a paragraph is depends on styles and numbering."""

from octavo.extract.formats.docx.document import PROCESSOR

__all__ = ["PROCESSOR"]
