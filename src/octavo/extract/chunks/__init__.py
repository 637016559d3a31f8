"""Cuts extracted documents into chunks. Pure, except `from_document`, which runs it in the sandbox."""
