"""Word's documents to Markdown: a walk over their XML, because what a paragraph is depends on styles and numbering."""

from octavo.extract.docx.document import convert

__all__ = ["convert"]
