"""Conversions and mappings: what the server answers about them, and the calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from os import fsencode
from pathlib import Path
from typing import Literal
from urllib.parse import quote
from uuid import UUID

from octavo.client.bodies import FileBody
from octavo.client.reading import read_page, read_record
from octavo.client.records import Problem
from octavo.client.wire import Ask, Wire

Form = Literal["xml", "plain", "json"]
ENDED = frozenset({"complete", "failed", "dead_letter", "cancelled"})


@dataclass(frozen=True, slots=True)
class FoundValue:
    """`box` is left, top, right and bottom in points from the upper left corner of the page."""

    name: str
    value: str
    page: int | None
    box: list[float] | None
    quote: str | None
    confidence: float
    verified: bool


@dataclass(frozen=True, slots=True)
class Conversion:
    id: UUID
    filename: str
    mapping: str
    status: str
    error: Problem | None
    revision: int
    created_at: datetime
    document_id: UUID | None = None
    values: list[FoundValue] = field(default_factory=list[FoundValue])
    missing: list[str] = field(default_factory=list[str])

    @property
    def is_over(self) -> bool:
        return self.status in ENDED


@dataclass(frozen=True, slots=True)
class MappingSummary:
    """`created_at` is None for one that comes with Octavo."""

    name: str
    title: str
    fields: list[str]
    required: list[str]
    created_at: datetime | None
    text: str = ""


class ConversionCalls:
    """One method for each call."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def convert(self, path: Path, name: str, mapping: str) -> Conversion:
        """Made again after a broken connection, it finds the conversion of the first time."""
        size = path.stat().st_size  # noqa: ASYNC240 - quicker than a visit to a thread
        headers = {
            "x-upload-filename": quote(fsencode(name)),
            "content-type": "application/pdf",
            "content-length": str(size),
        }
        query = {"mapping": mapping}
        ask = Ask(
            "POST",
            "/conversions",
            repeatable=True,
            query=query,
            headers=headers,
            body=lambda: FileBody(path, size, None),
        )
        return read_record(Conversion, await self._wire.call(ask))

    async def show(self, conversion: UUID) -> Conversion:
        return read_record(Conversion, await self._wire.call(Ask("GET", f"/conversions/{conversion}", repeatable=True)))

    async def download(self, conversion: UUID, form: Form = "xml") -> bytes:
        ask = Ask("GET", f"/conversions/{conversion}/download", repeatable=True, query={"form": form})
        answer = await self._wire.answer(ask)
        return answer.content if answer else b""

    async def list_mappings(self) -> list[MappingSummary]:
        return read_page(MappingSummary, await self._wire.call(Ask("GET", "/mappings", repeatable=True))).items

    async def show_mapping(self, name: str) -> MappingSummary:
        ask = Ask("GET", f"/mappings/{quote(name, safe='')}", repeatable=True)
        return read_record(MappingSummary, await self._wire.call(ask))

    async def add_mapping(self, file: str, text: str) -> MappingSummary:
        ask = Ask("POST", "/mappings", repeatable=True, json={"file": file, "text": text})
        return read_record(MappingSummary, await self._wire.call(ask))
