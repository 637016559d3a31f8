"""API calls for conversions of documents to XML, and for mappings, the rules of a conversion."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from os import fsencode
from pathlib import Path
from typing import Literal
from urllib.parse import quote
from uuid import UUID

from octavo.client.transport import Request, Transport, read_page, read_record
from octavo.client.uploads import FileBody
from octavo.core.pagination import Page
from octavo.records.conversions import BatchView, ConversionView, MappingSummary, MappingView

Form = Literal["xml", "plain", "json"]


class ConversionCalls:
    """API calls that convert business documents to XML, and manage mappings, the rules of a conversion."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def convert(self, path: Path, name: str, mapping: str | None = None) -> ConversionView:
        """Send a PDF for conversion. A retry after a broken connection returns the conversion of the first attempt.

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

    async def convert_document(self, document: UUID, mapping: str | None = None) -> ConversionView:
        """Convert a PDF in the library without sending it again."""
        given = {"mapping": mapping} if mapping else {}
        request = Request("POST", f"/documents/{document}/convert", repeatable=True, json=given)
        return read_record(ConversionView, await self._transport.call(request))

    async def convert_many(
        self,
        documents: Sequence[UUID] | None = None,
        filters: Mapping[str, str] | None = None,
        mapping: str | None = None,
    ) -> BatchView:
        """Queue the conversion of many documents, selected by id or by filters."""
        which = {"ids": [str(one) for one in documents]} if documents is not None else {"filter": dict(filters or {})}
        body = {**which, "action": "convert", "edit": {"mapping": mapping} if mapping else {}}
        made = await self._transport.call(Request("POST", "/documents/bulk", json=body))
        return await self.show_batch(UUID(made["batch_id"]))

    async def show_batch(self, batch: UUID) -> BatchView:
        return read_record(BatchView, await self._transport.get(f"/conversion-batches/{batch}"))

    async def list(
        self,
        *,
        status: str | None = None,
        batch: UUID | None = None,
        id_part: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[ConversionView]:
        """List your conversions, newest first, without their values. `id_part`: the beginning or end of an id."""
        given = {"status": status, "id": id_part, "batch": str(batch) if batch else None, "cursor": cursor}
        given["limit"] = str(limit)
        query = {name: value for name, value in given.items() if value is not None}
        return read_page(ConversionView, await self._transport.get("/conversions", query))

    async def correct(self, conversion: UUID, values: Mapping[str, str | None]) -> ConversionView:
        """Correct values by name; None clears a value."""
        body = {"values": [{"name": name, "value": value} for name, value in values.items()]}
        request = Request("PATCH", f"/conversions/{conversion}", json=body)
        return read_record(ConversionView, await self._transport.call(request))

    async def delete(self, conversion: UUID) -> None:
        await self._transport.send(Request("DELETE", f"/conversions/{conversion}"))

    async def samples(self) -> bytes:
        """Return all corrections as JSON Lines, each with the values before and after it."""
        response = await self._transport.send(Request("GET", "/training-samples", repeatable=True))
        return response.content if response else b""

    async def show(self, conversion: UUID) -> ConversionView:
        return read_record(ConversionView, await self._transport.get(f"/conversions/{conversion}"))

    async def download(self, conversion: UUID, form: Form = "xml") -> bytes:
        request = Request("GET", f"/conversions/{conversion}/download", repeatable=True, query={"form": form})
        response = await self._transport.send(request)
        return response.content if response else b""

    async def list_mappings(self) -> builtins.list[MappingSummary]:
        return read_page(MappingSummary, await self._transport.get("/mappings")).items

    async def show_mapping(self, name: str) -> MappingView:
        return read_record(MappingView, await self._transport.get(f"/mappings/{quote(name, safe='')}"))

    async def delete_mapping(self, name: str) -> None:
        await self._transport.send(Request("DELETE", f"/mappings/{quote(name, safe='')}"))

    async def add_mapping(self, file: str, text: str) -> MappingView:
        request = Request("POST", "/mappings", repeatable=True, json={"file": file, "text": text})
        return read_record(MappingView, await self._transport.call(request))
