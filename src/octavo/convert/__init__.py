"""Converts business documents to validated XML with the values of a mapping's fields and their positions on the page.

`mappings` defines the fields, and `rules` finds their values. The rules run in the sandbox, because documents are
untrusted and mappings contain patterns written by users. The sandbox stops a run that takes too long. Only the modules
that apply the rules import them and lxml.
"""

# Imported by the parent process of a sandbox, so that its children do not have to import them.
PRELOAD = ("octavo.convert.preload", "octavo.convert.in_sandbox", "octavo.extract.pdf.document")
