"""A transcript as it was fetched: written where it is fetched, read where it becomes a document."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class RawSnippet:
    text: str
    start: float
    duration: float


@dataclass(frozen=True, slots=True)
class RawTranscript:
    """`kind`: whether a person wrote it. `language` is a code, as `en`."""

    video_id: str
    language: str
    kind: Literal["manual", "generated"]
    snippets: list[RawSnippet]
    title: str | None = None
    author: str | None = None


def to_json(raw: RawTranscript) -> bytes:
    return json.dumps(asdict(raw), ensure_ascii=False, indent=1).encode()


def from_json(document: bytes) -> RawTranscript:
    read: dict[str, Any] = json.loads(document)
    snippets = [RawSnippet(**one) for one in read.pop("snippets")]
    return RawTranscript(snippets=snippets, **read)
