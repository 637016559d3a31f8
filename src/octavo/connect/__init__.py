"""Connections between chunks of an owner's documents: search for candidates, three engines, and storage."""
