"""The rules: pure functions that use a mapping to turn a document's words into values and XML.

To keep other processes small, only the modules that run the rules import them.
"""
