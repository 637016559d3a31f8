"""Renders Markdown as safe HTML blocks with their positions in the Markdown, without files, database or requests."""
