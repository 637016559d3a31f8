"""Converts business documents to validated XML: the values of a mapping's fields, each with its place on the page.

`mappings` defines the values, and `rules` finds them. The rules run in the sandbox, because mappings contain patterns
written by users and the documents are untrusted: a run that takes too long is stopped there. Importing the other
modules does not import the rules or lxml.
"""

# Imported by the parent process of a sandbox, so that its children need not import them.
PRELOAD = ("octavo.convert.preload", "octavo.convert.in_sandbox", "octavo.extract.pdf.document")
