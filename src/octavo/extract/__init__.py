"""Turns files into Markdown with pages, blocks and an outline.

Use `extract` if you only need the text of a file. It needs no database and no worker process.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from octavo.extract.extracted import Extracted


def extract(path: str | PathLike[str], *, password: str | None = None) -> Extracted:
    """Read the text of a file in a new sandbox. Asynchronous code should use `open_reader` instead.

    Raises an error from `octavo.core.errors` if the file cannot be read, and `OSError` if it does not exist.
    """
    # Imported late: children of the sandbox import this package but do not need these modules.
    import asyncio
    from pathlib import Path

    from octavo.extract.file_reader import open_reader

    async def read() -> Extracted:
        async with open_reader(files=[(Path(path), Path(path).name)]) as reader:
            return await reader.read(Path(path), password=password)

    return asyncio.run(read())
