"""Turns files into Markdown with pages, blocks and an outline.

`extract` is for programs that need the text of a file without running a whole Octavo.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from octavo.extract.extracted import Extracted


def extract(path: str | PathLike[str], *, password: str | None = None) -> Extracted:
    """Read the text of a file in a sandbox that is started for it. Asynchronous code should use `open_reader`.

    Raises an error of `octavo.core.errors` if the file cannot be read, and `OSError` if it does not exist.
    """
    # Imported late: children of the sandbox import this package and need none of these.
    import asyncio
    from pathlib import Path

    from octavo.extract.file_reader import open_reader

    async def read() -> Extracted:
        async with open_reader() as reader:
            return await reader.read(Path(path), password=password)

    return asyncio.run(read())
