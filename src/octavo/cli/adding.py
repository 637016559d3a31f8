"""Sends many files at once, and knows at every moment what became of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from octavo.cli.items import How, Item, send
from octavo.cli.paths import Refused
from octavo.core.errors import Empty, OctavoError, TooLarge
from octavo.core.types import Extraction

if TYPE_CHECKING:
    from octavo.client import Client, Limits, Outcome
    from octavo.client.uploads import Policy

# What is true for one file is true for all.
FATAL = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


@dataclass(frozen=True, slots=True)
class Wanted:
    """How files are added, and what is set on their documents afterwards. `version_of`: the older version of one."""

    duplicates: Policy = "reuse"
    extraction: Extraction = Extraction.PLAIN
    title: str | None = None
    collection: str | None = None
    tags: Sequence[str] = ()
    version_of: UUID | None = None

    @property
    def changes(self) -> dict[str, object]:
        given = {"title": self.title, "collection": self.collection, "tags": list(self.tags) or None}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Added:
    """`error`: why title, collection or tags could not be set on it."""

    file: Item
    outcome: Outcome
    error: OctavoError | None = None


class Display(Protocol):
    """Shows how it goes; `progress` gets the bytes that are sent of a file."""

    def begin(self, file: Item) -> None: ...
    def progress(self, file: Item, sent: int) -> None: ...
    def end(self, file: Item, result: Added | Refused | None) -> None: ...


@dataclass(slots=True)
class Adding:
    """One run. `failure`: why it ended before all files were sent; `left`: how many were not."""

    wanted: Wanted
    left: int = 0
    added: list[Added] = field(default_factory=list[Added])
    refused: list[Refused] = field(default_factory=list[Refused])
    failure: OctavoError | None = None

    @property
    def new(self) -> list[Added]:
        return [one for one in self.added if one.outcome.state == "uploaded"]

    @property
    def existing(self) -> list[Added]:
        return [one for one in self.added if one.outcome.state == "deduplicated"]

    @property
    def is_whole(self) -> bool:
        """Whether everything was done that was asked for."""
        return not (self.refused or self.left or self.failure or any(one.error for one in self.added))

    async def run(self, client: Client, files: Sequence[Item], at_once: int, display: Display) -> None:
        """Until all are sent, or one fails in a way that all would."""
        self.left = len(files)
        limits = (await client.read_settings()).limits
        waiting = iter(files)
        workers = min(at_once, limits.concurrent_uploads, len(files))
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work(client, waiting, limits, display))

    async def _work(self, client: Client, waiting: Iterator[Item], limits: Limits, display: Display) -> None:
        for file in waiting:  # shared by all workers, each takes the next
            if self.failure:
                return
            display.begin(file)
            result = await self._add(client, file, limits, partial(display.progress, file))
            self.left -= 1 if result else 0
            display.end(file, result)

    async def _add(
        self, client: Client, file: Item, limits: Limits, on_progress: Callable[[int], None]
    ) -> Added | Refused | None:
        how = How(duplicates=self.wanted.duplicates, extraction=self.wanted.extraction)
        try:
            check_limits(file, limits)
            outcome = await send(client, file, how, self.wanted.version_of, on_progress)
        except OctavoError as error:
            return self._refuse(file, error)
        added = Added(file, outcome, await self._edit(client, outcome))
        self.added.append(added)
        return added

    async def _edit(self, client: Client, outcome: Outcome) -> OctavoError | None:
        """A document that was there before keeps the tags that it has."""
        changes = self.wanted.changes
        try:
            if self.wanted.tags and outcome.state == "deduplicated":
                before = (await client.show_document(outcome.document_id)).tags
                changes["tags"] = [*before, *self.wanted.tags]
            if changes:
                await client.edit_document(outcome.document_id, changes)
        except OctavoError as error:
            return error
        return None

    def _refuse(self, file: Item, error: OctavoError) -> Refused | None:
        from octavo.client import Unreachable

        if isinstance(error, Unreachable) or error.status in FATAL:
            self.failure = error
            return None
        refused = Refused(file.shown, error)
        self.refused.append(refused)
        return refused


def check_limits(file: Item, limits: Limits) -> None:
    """What the server would refuse anyway is not sent."""
    if file.size == 0:
        raise Empty
    if file.size > limits.upload_bytes:
        raise TooLarge(f"At most {limits.upload_bytes:,} bytes are allowed.")
