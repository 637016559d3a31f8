"""Runs prompts on documents that are too large for one model call.

The document is divided into segments (ranges of pages), and the answers from all segments are combined.
"""
