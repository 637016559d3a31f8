"""Cuts extracted documents into chunks. Pure, except for `from_document`, which runs in the sandbox."""
