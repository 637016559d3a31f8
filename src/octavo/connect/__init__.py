"""Finds and stores connections between chunks (passages) of an account's documents.

There are three types: similar passages, contradictions, and bridges, which are shared ideas in documents about
different subjects.
"""
