"""The rules: they turn the words of a document and a mapping into values and XML.

Pure; imported only where they run.
"""
