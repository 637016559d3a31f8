"""Turns files into Markdown with pages, blocks and outline. Pure, except where it runs in the sandbox.

`extract` is for programs that have a file and want its text, without an installation of Octavo.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from octavo.extract.extracted import Extracted


def extract(path: str | PathLike[str], *, password: str | None = None) -> Extracted:
    """The text of a file, read in a sandbox that is made for it; from asynchronous code use `open_reader`.

    Raises an error of `octavo.core.errors` for what cannot be read, and `OSError` where there is no file.
    """
    # Imported late: children of the sandbox import this package and need nothing of it.
    import asyncio
    from pathlib import Path

    from octavo.extract.file_reader import open_reader

    async def read() -> Extracted:
        async with open_reader() as reader:
            return await reader.read(Path(path), password=password)

    return asyncio.run(read())
