"""Converts business documents to validated XML: the values of a mapping's fields, each with its place on the page.

`mappings` defines the fields, and `rules` finds their values. The rules run in the sandbox, because documents are
untrusted and mappings contain patterns written by users. A run that takes too long is stopped there. Importing the
other modules does not import the rules or lxml.
"""

# Imported by the parent process of a sandbox, so that its children do not have to import them.
PRELOAD = ("octavo.convert.preload", "octavo.convert.in_sandbox", "octavo.extract.pdf.document")
