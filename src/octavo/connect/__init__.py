"""Connections between chunks of an account's documents.

Finds candidate pairs, looks for similar chunks, contradictions and bridges among them, and stores the results.
"""
