"""Sends many files, links and texts in parallel and records the result of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypedDict
from uuid import UUID

from octavo.cli.local_files import LocalFile, RefusedFile
from octavo.core.errors import Empty, OctavoError, TooLarge
from octavo.core.formatting import format_bytes
from octavo.core.types import Extraction, new_id

if TYPE_CHECKING:
    from octavo.client import Client, Limits, Outcome
    from octavo.client.uploads import Policy


SHOWN_CHARACTERS = 60
# More files than this form an import, which is processed after documents that are added by hand.
BY_HAND = 5
SCHEMES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a web page or a video."""

    url: str

    @property
    def shown(self) -> str:
        return self.url

    name = shown

    @property
    def size(self) -> int:
        return len(self.url)


@dataclass(frozen=True, slots=True)
class Text:
    """Text that was typed or piped."""

    text: str
    title: str | None = None

    @property
    def shown(self) -> str:
        line = self.title or " ".join(self.text.split())
        return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"

    name = shown

    @property
    def size(self) -> int:
        return len(self.text.strip().encode(errors="replace"))


Item = LocalFile | Link | Text


def is_link(named: str) -> bool:
    return named.lower().startswith(SCHEMES)


class ItemOptions(TypedDict):
    """The options for adding one file, link or text."""

    duplicates: Policy
    extraction: Extraction
    source: str | None
    collection: str | None


async def send(
    client: Client, item: Item, options: ItemOptions, version_of: UUID | None, on_progress: Callable[[int], None]
) -> Outcome:
    """Add one file, link or text. If `version_of` is given, a file becomes a new version of that document."""
    if isinstance(item, Link):
        return await client.add_link(item.url, **options)
    if isinstance(item, Text):
        return await client.add_text(item.text, title=item.title, **options)
    return await client.add_file(item.path, name=item.name, version_of=version_of, on_progress=on_progress, **options)


# With these statuses, all other files would be refused, too.
FATAL = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


@dataclass(frozen=True, slots=True)
class AddOptions:
    """How files are added, and the fields to set on their documents.

    If `version_of` is given, the file becomes a new version of that document.
    """

    duplicates: Policy = "reuse"
    extraction: Extraction = Extraction.PLAIN
    title: str | None = None
    collection: str | None = None
    tags: Sequence[str] = ()
    version_of: UUID | None = None
    source: str | None = None

    @property
    def changes(self) -> dict[str, object]:
        given = {"title": self.title, "collection": self.collection, "tags": list(self.tags) or None}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class AddedItem:
    """A file, link or text that was added. `error` is the reason why its title, collection or tags could not be set."""

    file: Item
    outcome: Outcome
    error: OctavoError | None = None


class Display(Protocol):
    """Shows the progress of `octavo add`. `sent` is how many bytes of the file have been sent so far."""

    def begin(self, file: Item) -> None: ...
    def progress(self, file: Item, sent: int) -> None: ...
    def end(self, file: Item, result: AddedItem | RefusedFile | None) -> None: ...


@dataclass(slots=True)
class UploadBatch:
    """Sends a batch of files and collects the results.

    `failure` is the reason why sending ended early. `left` is the number of files that were not sent.
    """

    options: AddOptions
    left: int = 0
    added: list[AddedItem] = field(default_factory=list[AddedItem])
    refused: list[RefusedFile] = field(default_factory=list[RefusedFile])
    failure: OctavoError | None = None

    @property
    def new(self) -> list[AddedItem]:
        return [one for one in self.added if one.outcome.state == "uploaded"]

    @property
    def existing(self) -> list[AddedItem]:
        return [one for one in self.added if one.outcome.state == "deduplicated"]

    @property
    def is_whole(self) -> bool:
        """Whether all files were added without an error."""
        return not (self.refused or self.left or self.failure or any(one.error for one in self.added))

    async def run(self, client: Client, files: Sequence[Item], at_once: int, display: Display) -> None:
        """Send all files, up to `at_once` in parallel. Stops early at an error that affects all of them."""
        self.left = len(files)
        if len(files) > BY_HAND:
            await client.join_import(new_id())
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
    ) -> AddedItem | RefusedFile | None:
        given = self.options
        options = ItemOptions(
            duplicates=given.duplicates, extraction=given.extraction, source=given.source, collection=given.collection
        )
        try:
            check_limits(file, limits)
            outcome = await send(client, file, options, self.options.version_of, on_progress)
        except OctavoError as error:
            return self._refuse(file, error)
        added = AddedItem(file, outcome, await self._edit(client, outcome))
        self.added.append(added)
        return added

    async def _edit(self, client: Client, outcome: Outcome) -> OctavoError | None:
        """Set the title, collection and tags of an added document. Returns the error if this fails.

        If the document already existed, it also keeps its earlier tags.
        """
        changes = self.options.changes
        try:
            if self.options.tags and outcome.state == "deduplicated":
                before = (await client.show_document(outcome.document_id)).tags
                changes["tags"] = [*before, *self.options.tags]
            if changes:
                await client.edit_document(outcome.document_id, changes)
        except OctavoError as error:
            return error
        return None

    def _refuse(self, file: Item, error: OctavoError) -> RefusedFile | None:
        from octavo.client import Unreachable

        if isinstance(error, Unreachable) or error.status in FATAL:
            self.failure = error
            return None
        refused = RefusedFile(file.shown, error)
        self.refused.append(refused)
        return refused


def check_limits(file: Item, limits: Limits) -> None:
    """Raise an error for a file that is empty or too large, before it is sent."""
    if file.size == 0:
        raise Empty
    if file.size > limits.upload_bytes:
        raise TooLarge(f"The limit is {format_bytes(limits.upload_bytes)}.")
