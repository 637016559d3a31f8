"""Business documents to validated XML: named values by a mapping, each with its place on the page.

Pure: words with their places and a mapping in, values and XML out. It runs in the sandbox, because mappings have
patterns of people and the text is a stranger's: what takes too long is ended there.
"""

# For the warm parent of a sandbox, so that its children need not import it.
PRELOAD = ("octavo.convert.preload", "octavo.convert.in_sandbox", "octavo.extract.pdf.document")
