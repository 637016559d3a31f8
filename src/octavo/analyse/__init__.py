"""Runs prompts on documents that are too large for one model call: segment by segment, then combines the answers."""
