"""API calls for conversions of documents to XML, and for mappings (the conversion rules)."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from os import fsencode
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from uuid import UUID

from octavo.client.calls import Call, Calls, given, wait_until
from octavo.client.transport import NotOctavo, Repeat, Request, read_record
from octavo.client.uploads import FileBody
from octavo.core.http import Page
from octavo.records.conversions import (
    ENDED,
    BatchView,
    ConversionView,
    MappingSummary,
    MappingView,
    PageWord,
    RevisionView,
)
from octavo.records.documents import BulkAnswer

Form = Literal["xml", "plain", "json"]


class ConversionCalls(Calls):
    """API calls that convert business documents to XML and manage mappings (the conversion rules)."""

    @Call
    async def convert(self, path: Path, name: str, mapping: str | None = None) -> ConversionView:
        """Send a PDF for conversion. If `mapping` is None, the server uses its default mapping.

        If the connection breaks, the request is retried. The server then returns the conversion that the first attempt
        started.
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
            Repeat.SAFE,
            query={"mapping": mapping} if mapping else {},
            headers=headers,
            body=lambda: FileBody(path, size, None),
        )
        return read_record(ConversionView, await self._transport.call(request))

    @Call
    async def convert_document(self, document: UUID, mapping: str | None = None) -> ConversionView:
        """Convert a PDF in the library without sending it again."""
        path = f"/documents/{document}/convert"
        return await self._post(ConversionView, path, given(mapping=mapping or None), repeat=Repeat.SAFE)

    @Call
    async def convert_again(self, conversion: UUID, mapping: str | None = None) -> ConversionView:
        """Convert the same file again, optionally with another mapping. The earlier conversion is kept."""
        return await self._post(ConversionView, f"/conversions/{conversion}/again", given(mapping=mapping))

    @Call
    async def convert_many(
        self,
        documents: Sequence[UUID] | None = None,
        filters: Mapping[str, str] | None = None,
        mapping: str | None = None,
    ) -> BatchView:
        """Queue the conversion of many documents, selected by id or by filters."""
        which = {"ids": [str(one) for one in documents]} if documents is not None else {"filter": dict(filters or {})}
        body = {**which, "action": "convert", "edit": {"mapping": mapping} if mapping else {}}
        made = await self._post(BulkAnswer, "/documents/bulk", body)
        if made.batch_id is None:
            raise NotOctavo("The batch of conversions has no id.")
        return await self.show_batch(made.batch_id)

    @Call
    async def show_batch(self, batch: UUID) -> BatchView:
        return await self._get(BatchView, f"/conversion-batches/{batch}")

    @Call
    async def list(
        self,
        *,
        status: str | None = None,
        batch: UUID | None = None,
        document: UUID | None = None,
        id_part: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[ConversionView]:
        """List your conversions, newest first, without their values. `id_part` is the beginning or end of an id."""
        return await self._list(
            ConversionView,
            "/conversions",
            status=status,
            id=id_part,
            batch=batch,
            document_id=document,
            cursor=cursor,
            limit=limit,
        )

    @Call
    async def show(self, conversion: UUID) -> ConversionView:
        return await self._get(ConversionView, f"/conversions/{conversion}")

    @Call
    async def wait(self, conversion: UUID, *, timeout_seconds: float | None = None) -> ConversionView:
        """Wait until a conversion completes or fails. Raises TimeoutError after `timeout_seconds`."""
        return await wait_until(lambda: self.show(conversion), lambda found: found.status in ENDED, timeout_seconds)

    @Call
    async def correct(
        self,
        conversion: UUID,
        values: Mapping[str, str | None],
        *,
        rows: Sequence[Mapping[str, Any]] = (),
        accept: Sequence[str] = (),
        restore: Sequence[str] = (),
    ) -> ConversionView:
        """Correct values by name. None clears a value.

        `rows` adds, removes or moves rows of tables. `accept` lists failed checks to ignore. `restore` lists fields to
        reset to their extracted value.
        """
        body = {
            "values": [{"name": name, "value": value} for name, value in values.items()],
            "rows": [{**one} for one in rows],
            "accept": [*accept],
            "restore": [*restore],
        }
        request = Request("PATCH", f"/conversions/{conversion}", Repeat.NEVER, json=body)
        return read_record(ConversionView, await self._transport.call(request))

    @Call
    async def delete(self, conversion: UUID) -> None:
        await self._delete(f"/conversions/{conversion}")

    @Call
    async def list_words(self, conversion: UUID, page: int = 1) -> Sequence[PageWord]:
        """List the words of a page with their positions."""
        return (await self._list(PageWord, f"/conversions/{conversion}/words", page=page)).items

    @Call
    async def list_revisions(self, conversion: UUID) -> Sequence[RevisionView]:
        """List all revisions of a conversion's values."""
        return (await self._list(RevisionView, f"/conversions/{conversion}/revisions")).items

    @Call
    async def page_picture(self, conversion: UUID, number: int, *, width: int | None = None) -> bytes:
        """Return a page as a PNG picture."""
        return await self._read(f"/conversions/{conversion}/pages/{number}.png", width=width)

    @Call
    async def download(self, conversion: UUID, form: Form = "xml") -> bytes:
        return await self._read(f"/conversions/{conversion}/download", form=form)

    @Call
    async def download_source(self, conversion: UUID, to: Path) -> int:
        """Download the source PDF of a conversion. Returns its size."""
        return await self._save(to, f"/conversions/{conversion}/source")

    @Call
    async def samples(self) -> bytes:
        """Return the training samples as JSON Lines: the values of each corrected conversion before and after
        correction.
        """
        return await self._read("/training-samples")

    @Call
    async def model_checks(self) -> bytes:
        """Return the models' answers for missing values as JSON Lines, each with the accepted value, if any."""
        return await self._read("/model-checks")

    # Mappings ------------------------------------------------------------------------------------------------------

    @Call
    async def list_mappings(self) -> builtins.list[MappingSummary]:
        return (await self._list(MappingSummary, "/mappings")).items

    @Call
    async def show_mapping(self, name: str) -> MappingView:
        return await self._get(MappingView, f"/mappings/{quote(name, safe='')}")

    @Call
    async def mapping_schema(self, name: str) -> bytes:
        """Return the XML schema of the documents that a mapping produces."""
        return await self._read(f"/mappings/{quote(name, safe='')}/schema")

    @Call
    async def add_mapping(self, file: str, text: str) -> MappingView:
        return await self._post(MappingView, "/mappings", {"file": file, "text": text}, repeat=Repeat.SAFE)

    @Call
    async def check_mapping(self, file: str, text: str) -> MappingSummary:
        """Check a mapping without adding it."""
        return await self._post(MappingSummary, "/mappings/check", {"file": file, "text": text}, repeat=Repeat.SAFE)

    @Call
    async def delete_mapping(self, name: str) -> None:
        await self._delete(f"/mappings/{quote(name, safe='')}")
