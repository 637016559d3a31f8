"""Markdown to safe HTML that knows which characters it came from. Pure: no files, database or requests."""
