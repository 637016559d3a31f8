"""Prompts asked of documents that are too large for one call of a model: segments, items, and answers put together."""
