"""Runs prompts on documents that are too large for one model call: in segments, with the answers combined."""
