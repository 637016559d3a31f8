"""Downloads the target of a link and detects its type. The sandbox extracts its text later."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from octavo.core.types import JSON
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.extracted import SourceType
from octavo.extract.registry import READABLE
from octavo.extract.transcript import write_raw_transcript
from octavo.fetch import FetchLimits
from octavo.intake.errors import PageNotText
from octavo.intake.links import fetch_page, fetch_transcript, video_id
from octavo.pipeline.tools import Tools


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file to extract. `source_type` is None if it must be detected from the content."""

    key: str
    filename: str
    content_type: str
    source_type: SourceType | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class DownloadedSource:
    """The downloaded target of a link. `kind` is the kind of artifact as which it is stored."""

    kind: str
    body: bytes
    content_type: str
    source_type: SourceType
    url: str
    filename: str = ""

    def about(self) -> dict[str, JSON]:
        """Return the properties of the file that later stages need, without its content."""
        names = ("kind", "content_type", "source_type", "url", "filename")
        return {name: str(getattr(self, name)) for name in names}


async def fetch_source(tools: Tools, url: str) -> DownloadedSource:
    settings = tools.settings
    limits = FetchLimits(settings.fetch_bytes, settings.fetch_seconds)
    if video := video_id(url):
        transcript = await fetch_transcript(tools.fetch, video, limits, base=settings.youtube_url)
        body = write_raw_transcript(transcript)
        return DownloadedSource("transcript_raw", body, "application/json", SourceType.YOUTUBE, url)
    page = await fetch_page(tools.fetch, url, limits)
    filename = unquote(PurePosixPath(urlsplit(page.url).path).name)
    found = await asyncio.to_thread(detect, page.body[:HEAD_BYTES], filename, page.content_type)
    if found not in READABLE:
        raise PageNotText
    source_type = SourceType.WEB if found is SourceType.HTML else found
    return DownloadedSource("page_raw", page.body, page.content_type, source_type, page.url, filename)


def as_source_file(fetched: dict[str, JSON]) -> SourceFile:
    """Make a `SourceFile` from the stored output of the stage `fetched`, so that later stages can extract it."""
    fields = {name: str(fetched[name]) for name in ("key", "filename", "content_type", "url")}
    return SourceFile(**fields, source_type=SourceType(str(fetched["source_type"])))
