"""What can be added: files, links and text; each has a name to show and a size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict
from uuid import UUID

from octavo.cli.paths import LocalFile
from octavo.core.types import Extraction

if TYPE_CHECKING:
    from octavo.client import Client, Outcome
    from octavo.client.uploads import Policy

SHOWN_CHARACTERS = 60
SCHEMES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Link:
    """A web page or a video, by its address."""

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
    """Text that was typed or came through a pipe."""

    text: str
    title: str | None = None
    source: str | None = None

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


class How(TypedDict):
    """How each of them is brought in."""

    duplicates: Policy
    extraction: Extraction


async def send(
    client: Client, item: Item, how: How, version_of: UUID | None, on_progress: Callable[[int], None]
) -> Outcome:
    """Bring one of them in; a file also as a new version."""
    if isinstance(item, Link):
        return await client.add_link(item.url, **how)
    if isinstance(item, Text):
        return await client.add_text(item.text, title=item.title, source=item.source, **how)
    return await client.add_file(item.path, name=item.name, version_of=version_of, on_progress=on_progress, **how)
