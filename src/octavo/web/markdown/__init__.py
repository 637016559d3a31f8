"""Renders Markdown as safe HTML blocks with their positions in the Markdown. Pure: no files, database or requests."""
