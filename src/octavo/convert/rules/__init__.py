"""The rules: pure functions that turn the words of a document and a mapping into values and XML.

They are imported only where they run.
"""
