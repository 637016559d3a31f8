"""Extraction as the pipeline calls it: the file is read in the sandbox, the result is checked here."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from octavo.extract.contract import Extracted, from_json
from octavo.sandbox import Limits, Progress, Sandbox


async def extract_in_sandbox(
    sandbox: Sandbox,
    path: Path,
    filename: str,
    content_type: str = "",
    *,
    limits: Limits | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Extracted:
    """Reads the file at `path`. Raises what `Sandbox.run` raises, `Empty` and `NotSupported` among it."""
    with tempfile.TemporaryFile() as output:
        await sandbox.run(
            "octavo.extract.run:run",
            {"filename": filename, "content_type": content_type},
            input_file=path,
            output_file=output,
            limits=limits,
            on_progress=on_progress,
        )
        return await asyncio.to_thread(lambda: from_json(output.read()))
