"""Converts business documents, such as invoices, to validated XML.

A mapping defines the fields of a type of document. The XML contains the value of each field and its position on the
page. The `mappings` package reads mappings, and `rules` finds the values. The rules run in the sandbox, because
documents are untrusted and mappings contain patterns written by users. If a pattern takes too long, the sandbox stops
it. To save memory, only code that applies the rules imports `rules` and lxml.
"""

# Imported by the parent process of a sandbox, so that its children do not have to import them.
PRELOAD = ("octavo.convert.preload", "octavo.convert.in_sandbox", "octavo.extract.pdf.document")
