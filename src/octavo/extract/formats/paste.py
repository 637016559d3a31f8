"""Pasted text: a transcript if it has timestamps, a web page if it is HTML, otherwise Markdown or plain text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from octavo.core.errors import Empty
from octavo.extract.decode import decode
from octavo.extract.extracted import Extracted, Metadata, SourceType
from octavo.extract.formats import markdown, text, web, youtube
from octavo.extract.registry import Hints, Processor
from octavo.extract.text_kinds import text_kind
from octavo.extract.transcript import read_timestamps

_HEAD_CHARACTERS = 64 * 1024


def extract(path: Path, hints: Hints) -> Extracted:
    return replace(from_text(decode(path.read_bytes()), hints.url), source_type=SourceType.PASTE)


def from_text(pasted: str, url: str = "") -> Extracted:
    if not pasted.strip():
        raise Empty("It contains no text.")
    snippets = read_timestamps(pasted)
    if snippets is not None:
        return youtube.from_snippets(snippets, SourceType.PASTE, Metadata())
    kind = text_kind(pasted[:_HEAD_CHARACTERS], ".txt", "text/plain")
    if kind is SourceType.HTML:
        return web.from_html(pasted, url)
    return markdown.from_text(pasted) if kind is SourceType.MARKDOWN else text.from_text(pasted)


PROCESSOR = Processor((SourceType.PASTE,), extract)
