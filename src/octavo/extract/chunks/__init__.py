"""Splits extracted documents into chunks, the pieces of text that can be searched.

The functions are pure, except for `chunk_in_sandbox`, which starts a child process.
"""
