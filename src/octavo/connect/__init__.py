"""Connections between chunks of an owner's documents.

Finds candidates, compares them with three engines, and stores the results.
"""
