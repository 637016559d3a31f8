"""Conversion as others call it: the rules run in the sandbox, what comes out is checked and rendered here."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence

from octavo.convert.contract import Conversion
from octavo.convert.mapping_text import mapping_from_text
from octavo.convert.records import conversion_from_json
from octavo.convert.suggestions import Suggestion
from octavo.model.json import JSON
from octavo.sandbox import Sandbox

# For the warm parent, so that children need not import it.
PRELOAD = ("octavo.convert.warm", "octavo.convert.run")


async def convert_in_sandbox(
    sandbox: Sandbox, words: bytes, mapping_text: str, file: str, suggestions: Sequence[Suggestion] | None = None
) -> Conversion:
    """`words` are the pages and attachments of a document as JSON, `mapping_text` is the mapping's file."""
    mapping = await asyncio.to_thread(mapping_from_text, mapping_text, file)
    rows: list[JSON] | None = None
    if suggestions is not None:
        rows = [[one.name, one.value, one.quote, one.page] for one in suggestions]
    arguments: dict[str, JSON] = {"mapping": mapping_text, "file": file, "suggestions": rows}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        given.write(words)
        given.flush()
        await sandbox.run("octavo.convert.run:run", arguments, input_file=given, output_file=made)
        return await asyncio.to_thread(lambda: conversion_from_json(made.read(), mapping))
