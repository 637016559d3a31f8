"""Splits extracted documents into chunks, the pieces of text that can be searched.

All code is pure, except for `from_document`, which runs in the sandbox.
"""
