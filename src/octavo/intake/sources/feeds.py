"""RSS and Atom feeds. The web page of each new entry is added as a document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from urllib.parse import urljoin

from octavo.core.errors import BadInput
from octavo.extract.office.xml import Element, local_name, parse
from octavo.fetch import BadUrl, FetchLimits
from octavo.intake.errors import BadSource
from octavo.intake.links import canonical_url, check_status, link_source
from octavo.intake.sources.reading import Connections, Look, ReadFile, SeenFile, Source

LIMITS = FetchLimits(bytes=8 << 20, seconds=30.0)
MOST_ENTRIES = 1000
ACCEPT = "application/atom+xml,application/rss+xml,application/xml;q=0.9,text/xml;q=0.9,*/*;q=0.5"
_UNCHANGED = 304
_LINKED = frozenset({"", "alternate"})


class FeedReader:
    """Reads one feed. An entry is identified by the URL of its page."""

    settle_seconds = 0.0
    makes_versions = False

    def __init__(self, source: Source, connections: Connections) -> None:
        self._source = source
        self._connections = connections

    async def look(self) -> Look:
        known = (self._source.position or {}).get("etag")
        headers = {"Accept": ACCEPT} | ({"If-None-Match": known} if isinstance(known, str) else {})
        answer = await self._connections.fetch.get(self._source.address, LIMITS, headers)
        if answer.status == _UNCHANGED:
            return Look((), complete=False)
        check_status(answer)
        links = await asyncio.to_thread(lambda: list(read_links(answer.body, answer.url)))
        etag = answer.headers.get("etag", "")
        position = {"etag": etag} if etag.isascii() and etag.isprintable() and 0 < len(etag) <= 200 else {}  # noqa: PLR2004
        return Look([SeenFile(one, 0) for one in links], complete=False, position=position)

    async def read(self, file: SeenFile) -> ReadFile:
        source = link_source(file.path, allow=self._connections.allow)
        return ReadFile(source.upload, _body(source.body))

    def parents(self, file: SeenFile) -> tuple[str, ...]:
        del file
        return ()

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        """Do nothing, because a feed cannot be changed."""
        return files

    async def aclose(self) -> None:
        """Do nothing, because the HTTP client is shared."""


async def _body(given: bytes) -> AsyncGenerator[bytes]:
    yield given


def read_links(body: bytes, base: str) -> Iterator[str]:
    """Yield the page URLs of a feed's entries, without duplicates. Entries without a valid URL are left out."""
    try:
        root = parse(body.strip())
    except BadInput:
        raise BadSource("This is not an RSS or Atom feed.") from None
    if local_name(root).lower() not in {"rss", "rdf", "feed"}:
        raise BadSource("This is not an RSS or Atom feed.")
    seen: set[str] = set()
    for entry in root.iter():
        link = _link(entry, base) if local_name(entry) in {"item", "entry"} and len(seen) < MOST_ENTRIES else None
        if link and link not in seen:
            seen.add(link)
            yield link


def _link(entry: Element, base: str) -> str | None:
    for child in entry:
        if local_name(child) == "link" and (child.get("rel") or "") in _LINKED:
            written = (child.get("href") or child.text or "").strip()
            try:
                return canonical_url(urljoin(base, written)) if written else None
            except (BadUrl, ValueError):
                return None
    return None
