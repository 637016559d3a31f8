"""Cuts extracted documents into chunks. All code is pure, except for `from_document`, which runs in the sandbox."""
