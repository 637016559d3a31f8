"""Turns files into Markdown with pages, blocks and outline. Pure, except `steps.py`, which runs it in the sandbox."""
