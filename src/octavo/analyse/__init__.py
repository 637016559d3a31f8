"""Runs prompts on documents that are too large for one model call, segment by segment, and combines the answers."""
