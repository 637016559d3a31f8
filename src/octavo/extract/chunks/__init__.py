"""Cuts extracted documents into chunks. Pure, except for `from_document`, which cuts in the sandbox."""
