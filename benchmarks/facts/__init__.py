"""Measures the fact sheets of documents that a person labelled."""
