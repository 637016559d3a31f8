"""Renders Markdown as blocks of safe HTML with their positions. Uses no files, database or requests."""
