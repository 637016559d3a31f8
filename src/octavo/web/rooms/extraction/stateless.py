"""Reads the text of a file for a program. Nothing is stored, and no model is called.

The file is read in the sandbox, with the same limits as in a worker. The work stops if the program disconnects.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from fastapi import Request

from octavo.core.errors import StorageFailed, TooLarge
from octavo.core.formatting import format_bytes
from octavo.extract.extracted import Extracted, Page
from octavo.intake.upload_rows import clean_filename, intake_limits
from octavo.owners import Caller
from octavo.web.context.intake import early_limited
from octavo.web.context.services import Services
from octavo.web.http.limits import ConcurrencyLimit, TooFast
from octavo.web.live.stream import while_connected

# In each web process: how many files are read in parallel, how many are read or wait, and when to retry.
PARALLEL, MOST_WAITING, BUSY_SECONDS = 4, 40, 5.0
# How many files of one account are received or read at the same time, in all web processes together.
MOST_PER_OWNER = 8


def take_slot(services: Services, caller: Caller) -> AbstractAsyncContextManager[None]:
    """Count a request of this account while its file is received and read. Raises `TooFast` if there are too many."""
    return services.limits.slots.hold(f"extractions {caller.owner_id}", MOST_PER_OWNER, TooFast(BUSY_SECONDS))


async def read_text(
    request: Request, services: Services, caller: Caller, filename: str, body: AsyncIterable[bytes]
) -> Extracted:
    """Receive a file of limited size and return its text. Raises the errors of `FileReader.read`.

    The caller must hold a slot (see `take_slot`).
    """
    limits = intake_limits(services.settings, anonymous=caller.is_anonymous)
    with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
        path = Path(folder, "file")
        await _save(path, early_limited(request, limits, body), limits.upload_bytes)
        return await while_connected(request, _read(services, path, clean_filename(filename)))


async def _save(path: Path, body: AsyncIterable[bytes], most: int) -> None:
    size = 0
    try:
        with path.open("wb") as file:
            async for part in body:
                size += len(part)
                if size > most:
                    raise TooLarge(f"The limit is {format_bytes(most)}.")
                await asyncio.to_thread(file.write, part)
    except OSError as error:
        raise StorageFailed(error.strerror) from None


async def _read(services: Services, path: Path, filename: str) -> Extracted:
    async with services.shared(_make_limit).take():
        return await services.reader.read(path, filename=filename)


def _make_limit(services: Services) -> ConcurrencyLimit:
    del services
    return ConcurrencyLimit(PARALLEL, MOST_WAITING, BUSY_SECONDS)


# Text ---------------------------------------------------------------------------------------------------------------


def page_markdown(extracted: Extracted, pages: list[Page]) -> list[str]:
    """Return the Markdown of each of these pages.

    Pictures are not returned; each is replaced with its description or, if it has none, with a comment.
    """
    return [without_pictures(extracted, page.start, page.end).strip() for page in pages]


def without_pictures(extracted: Extracted, start: int = 0, end: int | None = None) -> str:
    """Return a part of the Markdown. Each picture is replaced with its description or a comment."""
    end = len(extracted.markdown) if end is None else end
    parts, place = list[str](), start
    for figure in sorted(extracted.figures, key=lambda one: one.start):
        address = f"](figures/{figure.number}.png)"
        after = extracted.markdown.find(address, figure.start, end)
        if figure.start < place or after < 0:
            continue
        parts += [extracted.markdown[place : figure.start], figure.alternative or PICTURE]
        place = after + len(address)
    return "".join([*parts, extracted.markdown[place:end]])


# The placeholder that docling writes.
PICTURE = "<!-- image -->"
