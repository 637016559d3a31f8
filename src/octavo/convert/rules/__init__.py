"""Pure functions that apply the rules of a mapping to a document's words, to find values and write XML.

Only modules that run the rules import this package, so that other processes need less memory.
"""
