"""Connections between chunks of an owner's documents: candidate search, three pure engines, and storage."""
