"""Extraction as the pipeline calls it: the file is read in the sandbox, the result is checked here."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from octavo.core.json import JSON
from octavo.extract.contract import Extracted, SourceType, from_json
from octavo.sandbox import Limits, Progress, Sandbox


async def extract_in_sandbox(
    sandbox: Sandbox,
    path: Path,
    filename: str,
    content_type: str = "",
    *,
    source_type: SourceType | None = None,
    url: str = "",
    password: str | None = None,
    limits: Limits | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Extracted:
    """Reads the file at `path`. Raises what `Sandbox.run` raises, `Empty` and `NotSupported` among it.

    `source_type` is given where the content alone does not tell; `url` is where a page came from; `password` opens a
    file that asks for one.
    """
    arguments: dict[str, JSON] = {
        "filename": filename,
        "content_type": content_type,
        "source_type": source_type,
        "url": url,
        "password": password,
    }
    with tempfile.TemporaryFile() as output:
        await sandbox.run(
            "octavo.extract.run:run",
            arguments,
            input_file=path,
            output_file=output,
            limits=limits,
            on_progress=on_progress,
        )
        return await asyncio.to_thread(lambda: from_json(output.read()))
