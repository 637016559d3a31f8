"""Rewriting as the pipeline calls it: what a model wrote is read in the sandbox, as everything else is."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping

from octavo.extract.contract import Extracted, from_json, to_json
from octavo.sandbox import Sandbox


async def rewrite_in_sandbox(sandbox: Sandbox, plain: Extracted, texts: Mapping[int, str], made_by: str) -> Extracted:
    """One document of what the model wrote and of what is kept; see `rewriting.rewrite`."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output:
        given.write(await asyncio.to_thread(to_json, plain) + b"\n" + json.dumps(texts).encode())
        given.flush()
        arguments = {"made_by": made_by}
        await sandbox.run("octavo.extract.by_model.run:run_rewrite", arguments, input_file=given, output_file=output)
        return await asyncio.to_thread(lambda: from_json(output.read()))
