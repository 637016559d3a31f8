"""Calls for conversions and mappings."""

from __future__ import annotations

from os import fsencode
from pathlib import Path
from typing import Literal
from urllib.parse import quote
from uuid import UUID

from octavo.client.transport import Request, Transport, read_page, read_record
from octavo.client.uploads import FileBody
from octavo.records.conversions import ConversionView, MappingSummary, MappingView

Form = Literal["xml", "plain", "json"]


class ConversionCalls:
    """Convert business documents, and manage mappings."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def convert(self, path: Path, name: str, mapping: str | None = None) -> ConversionView:
        """Submit a PDF. A retry after a broken connection returns the conversion of the first attempt.

        Without a mapping, the server uses its default.
        """
        size = path.stat().st_size  # noqa: ASYNC240 - quicker than a thread call
        headers = {
            "x-upload-filename": quote(fsencode(name)),
            "content-type": "application/pdf",
            "content-length": str(size),
        }
        request = Request(
            "POST",
            "/conversions",
            repeatable=True,
            query={"mapping": mapping} if mapping else {},
            headers=headers,
            body=lambda: FileBody(path, size, None),
        )
        return read_record(ConversionView, await self._transport.call(request))

    async def show(self, conversion: UUID) -> ConversionView:
        return read_record(ConversionView, await self._transport.get(f"/conversions/{conversion}"))

    async def download(self, conversion: UUID, form: Form = "xml") -> bytes:
        request = Request("GET", f"/conversions/{conversion}/download", repeatable=True, query={"form": form})
        response = await self._transport.send(request)
        return response.content if response else b""

    async def list_mappings(self) -> list[MappingSummary]:
        return read_page(MappingSummary, await self._transport.get("/mappings")).items

    async def show_mapping(self, name: str) -> MappingView:
        return read_record(MappingView, await self._transport.get(f"/mappings/{quote(name, safe='')}"))

    async def add_mapping(self, file: str, text: str) -> MappingView:
        request = Request("POST", "/mappings", repeatable=True, json={"file": file, "text": text})
        return read_record(MappingView, await self._transport.call(request))
