"""The rules: pure functions that use a mapping to turn a document's words into values and XML.

Only modules that run the rules import this package, so that other processes need less memory.
"""
