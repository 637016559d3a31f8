"""API calls for documents: list, read, edit, download and compare them, with collections, tags and highlights."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from octavo.client.calls import MOST_LISTED, Call, Calls, Stream, given, wait_until
from octavo.client.transport import OnProgress, Repeat, Request, read_page
from octavo.client.uploads import ContentFilters, unless_plain
from octavo.core.http import Page
from octavo.core.types import Extraction
from octavo.records.documents import (
    BulkAnswer,
    Chunk,
    Collection,
    Comparison,
    Document,
    EmbeddingProgress,
    FactView,
    FigureView,
    Highlight,
    PageView,
    ReadingPosition,
    RegionView,
    Retried,
    SavedView,
    SignedLink,
    Tag,
    TextMatches,
    Version,
)
from octavo.records.jobs import EventView

DocumentStatus = Literal["pending", "completed", "failed"]
BulkAction = Literal["delete", "restore", "purge"]
MOST_CHANGED = 500
MOST_TEXT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Filters(ContentFilters):
    """Selects the documents to list. `id` is the beginning or end of an id.

    `field` is a custom field, or a field and its value, as in `Project:Coast`. If `versions` is true, superseded
    versions are included.
    """

    id: str | None = None
    status: DocumentStatus | None = None
    trashed: bool = False
    versions: bool = False
    state: str | None = None
    import_id: UUID | None = None
    field: str | None = None
    sort: str | None = None


class DocumentCalls(Calls):
    """API calls for documents."""

    @Call
    async def list_documents(
        self, filters: Filters | None = None, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Document]:
        """List documents, newest first unless the filters set another `sort` order."""
        return await self._list(Document, "/documents", **asdict(filters or Filters()), cursor=cursor, limit=limit)

    @Stream
    async def walk_documents(self, filters: Filters | None = None) -> AsyncGenerator[Document]:
        """Yield all documents that match the filters. Requests one page of results at a time."""
        cursor: str | None = None
        while True:
            page = await self.list_documents(filters, cursor=cursor)
            for document in page.items:
                yield document
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    @Call
    async def show_document(self, document: UUID, *, trashed: bool = False) -> Document:
        """Return a document. If `trashed` is true, look for it in the trash instead."""
        return await self._get(Document, f"/documents/{document}", trashed=trashed or None)

    @Call
    async def wait(self, document: UUID, *, timeout_seconds: float | None = None) -> Document:
        """Wait until a document is processed. Its `status` is then `completed` or `failed`.

        Raises TimeoutError after `timeout_seconds`.
        """
        return await wait_until(
            lambda: self.show_document(document), lambda found: found.status != "pending", timeout_seconds
        )

    @Call
    async def edit_document(self, document: UUID, changes: Mapping[str, object]) -> Document:
        """Change these fields of a document. All other fields stay unchanged."""
        return await self._patch(Document, f"/documents/{document}", changes)

    @Call
    async def delete_document(self, document: UUID, *, purge: bool = False) -> None:
        """Move a document to the trash. If `purge` is true, delete it permanently."""
        await self._delete(f"/documents/{document}", purge=purge or None)

    @Call
    async def restore_document(self, document: UUID) -> Document:
        """Restore a document from the trash."""
        return await self._post(Document, f"/documents/{document}/restore", repeat=Repeat.SAFE)

    @Call
    async def retry_document(
        self,
        document: UUID,
        from_stage: str | None = None,
        *,
        password: str | None = None,
        extraction: Extraction = Extraction.PLAIN,
    ) -> Retried:
        """Retry a failed document, or process a complete document again. An encrypted PDF needs its password."""
        body = given(from_stage=from_stage, password=password, **unless_plain(extraction))
        return await self._post(Retried, f"/documents/{document}/retry", body)

    @Call
    async def list_document_events(
        self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[EventView]:
        """List the events of a document, oldest first."""
        return await self._list(EventView, f"/documents/{document}/events", cursor=cursor, limit=limit)

    @Call
    async def list_children(
        self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Document]:
        """List the documents made from the files of an archive or the attachments of an email, in order."""
        return await self._list(Document, f"/documents/{document}/children", cursor=cursor, limit=limit)

    @Call
    async def list_versions(self, document: UUID) -> list[Version]:
        """List all versions of a document, newest first."""
        return (await self._list(Version, f"/documents/{document}/versions")).items

    @Call
    async def compare(
        self,
        document: UUID,
        *,
        since: UUID | None = None,
        since_revision: int | None = None,
        revision: int | None = None,
    ) -> Comparison:
        """Compare a document with another document or revision.

        By default, compare it with its previous version or revision.
        """
        return await self._get(
            Comparison, f"/documents/{document}/diff", since=since, since_revision=since_revision, revision=revision
        )

    # Facts ---------------------------------------------------------------------------------------------------------

    @Call
    async def list_facts(self, document: UUID) -> list[FactView]:
        """List the facts of a document: kind, title, sender, number, date, amount and others."""
        return (await self._list(FactView, f"/documents/{document}/facts")).items

    @Call
    async def correct_facts(self, document: UUID, facts: Mapping[str, str | None]) -> list[FactView]:
        """Correct facts. Pass None for a fact that the document does not have."""
        request = Request("PATCH", f"/documents/{document}/facts", json={**facts})
        return read_page(FactView, await self._transport.call(request)).items

    # Many documents ------------------------------------------------------------------------------------------------

    @Call
    async def change_documents(self, action: BulkAction, documents: Sequence[UUID]) -> int:
        """Apply an action to documents, in requests of up to 500 documents. Returns the number of changed documents.

        If a request fails, none of its documents are changed.
        """
        changed = 0
        for begin in range(0, len(documents), MOST_CHANGED):
            ids = [str(one) for one in documents[begin : begin + MOST_CHANGED]]
            changed += (await self._post(BulkAnswer, "/documents/bulk", {"ids": ids, "action": action})).changed
        return changed

    @Call
    async def edit_matching(self, filters: Mapping[str, object], changes: Mapping[str, object]) -> BulkAnswer:
        """Edit all documents that match these filters. Filters have the same names as in `list_documents`."""
        body = {"filter": {**filters}, "action": "edit", "edit": {**changes}}
        return await self._post(BulkAnswer, "/documents/bulk", body)

    @Call
    async def delete_matching(self, filters: Mapping[str, object]) -> BulkAnswer:
        """Move all documents that match these filters to the trash."""
        return await self._post(BulkAnswer, "/documents/bulk", {"filter": {**filters}, "action": "delete"})

    @Call
    async def undo_change(self, change: UUID) -> int:
        """Undo an edit or a deletion of many documents. Returns the number of restored documents."""
        return (await self._post(BulkAnswer, f"/documents/bulk/{change}/undo", repeat=Repeat.SAFE)).changed

    @Call
    async def download_documents(
        self, to: Path, documents: Sequence[UUID] | None = None, filters: Mapping[str, object] | None = None
    ) -> int:
        """Download the files of documents, selected by id or by filters, as one ZIP file. Returns its size."""
        chosen = {"ids": [str(one) for one in documents]} if documents is not None else {"filter": dict(filters or {})}
        return await self._transport.save(Request("POST", "/documents/bulk/download", Repeat.SAFE, json=chosen), to)

    @Call
    async def reembed(self, model: str | None = None) -> int:
        """Queue a job for each document that lacks embeddings of this model. The default is the server's model.

        Returns the number of queued documents.
        """
        return (await self._post(dict[str, int], "/embeddings", given(model=model)))["queued"]

    @Call
    async def embedding_progress(self) -> EmbeddingProgress:
        """Return how many documents already have embeddings made with the server's model."""
        return await self._get(EmbeddingProgress, "/embeddings")

    # Text and files ------------------------------------------------------------------------------------------------

    @Call
    async def read_markdown(self, document: UUID, *, most_bytes: int = MOST_TEXT_BYTES, plain: bool = False) -> str:
        """Return the text of a document as Markdown. At most the first `most_bytes` bytes are read.

        If `plain` is true, return the text as it was extracted, even if a model changed it later.
        """
        headers = {"range": f"bytes=0-{most_bytes - 1}"}
        query = {"plain": "true"} if plain else {}
        response = await self._transport.send(
            Request("GET", f"/documents/{document}/markdown", query=query, headers=headers)
        )
        return response.content.decode(errors="ignore") if response else ""  # the last character may be cut

    @Call
    async def download_markdown(
        self, document: UUID, to: Path, *, plain: bool = False, on_progress: OnProgress | None = None
    ) -> int:
        """Download the text of a document as a Markdown file. Returns its size."""
        return await self._save(to, f"/documents/{document}/markdown", on_progress, plain=plain or None)

    @Call
    async def download_source(self, document: UUID, to: Path, *, on_progress: OnProgress | None = None) -> int:
        """Download the original file of a document. Returns its size."""
        return await self._save(to, f"/documents/{document}/source", on_progress)

    @Call
    async def download_export(self, document: UUID, to: Path, *, form: Literal["json", "zip"] = "json") -> int:
        """Download all data of a document as JSON, or its text and figures as a ZIP file. Returns its size."""
        return await self._save(to, f"/documents/{document}/export", format=form)

    @Call
    async def make_link(self, document: UUID, kind: Literal["source", "markdown"] = "source") -> SignedLink:
        """Create a link for downloading a file without signing in. The link expires after five minutes."""
        return await self._post(SignedLink, f"/documents/{document}/link?kind={kind}", repeat=Repeat.SAFE)

    @Call
    async def document_picture(self, document: UUID) -> bytes:
        """Return the picture of a document that is itself a picture, such as a photo."""
        return await self._read(f"/documents/{document}/picture")

    @Call
    async def page_picture(
        self,
        document: UUID,
        number: int,
        *,
        width: int | None = None,
        chunk: UUID | None = None,
        box: Sequence[str] = (),
    ) -> bytes:
        """Return a page as a PNG picture, with a chunk or boxes marked.

        A box is written as `left,top,right,bottom`, in points.
        """
        return await self._read(
            f"/documents/{document}/pages/{number}.png", width=width, chunk=chunk, box=list(box) or None
        )

    @Call
    async def figure_picture(self, document: UUID, number: int, *, width: int | None = None) -> bytes:
        """Return a figure as a PNG picture."""
        return await self._read(f"/documents/{document}/figures/{number}.png", width=width)

    @Call
    async def list_pages(
        self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[PageView]:
        """List the pages of a document. `unsure` says why the text of a page may be wrong."""
        return await self._list(PageView, f"/documents/{document}/pages", cursor=cursor, limit=limit)

    @Call
    async def list_regions(self, document: UUID, page: int) -> Page[RegionView]:
        """List the regions of a page and their kinds, in reading order."""
        return await self._list(RegionView, f"/documents/{document}/regions", page=page)

    @Call
    async def list_figures(
        self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[FigureView]:
        """List the figures of a document, in the order of the text."""
        return await self._list(FigureView, f"/documents/{document}/figures", cursor=cursor, limit=limit)

    @Call
    async def list_chunks(self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED) -> Page[Chunk]:
        """List the chunks of a document, in order."""
        return await self._list(Chunk, f"/documents/{document}/chunks", cursor=cursor, limit=limit)

    @Call
    async def find_in_document(
        self, document: UUID, q: str, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> TextMatches:
        """Find words in the text of a document, ignoring case, accents and white space."""
        return await self._get(TextMatches, f"/documents/{document}/find", q=q, cursor=cursor, limit=limit)

    @Call
    async def read_position(self, document: UUID) -> ReadingPosition:
        return await self._get(ReadingPosition, f"/documents/{document}/position")

    @Call
    async def keep_position(self, document: UUID, start: int) -> None:
        """Save the reading position, as a character position in the Markdown."""
        await self._transport.call(Request("PUT", f"/documents/{document}/position", json={"start": start}))

    # Highlights ----------------------------------------------------------------------------------------------------

    @Call
    async def list_highlights(
        self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Highlight]:
        return await self._list(Highlight, f"/documents/{document}/highlights", cursor=cursor, limit=limit)

    @Call
    async def find_highlights(
        self, q: str | None = None, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Highlight]:
        """List the highlights of all documents, newest first.

        If `q` is given, its words must be in the quote or the note.
        """
        return await self._list(Highlight, "/highlights", q=q, cursor=cursor, limit=limit)

    @Call
    async def add_highlight(self, document: UUID, passage: Mapping[str, object]) -> Highlight:
        """Highlight a passage of a document.

        `passage` contains the `quote` to highlight, or its `start` and `end`. It can also contain a `colour` and a
        `note`.
        """
        return await self._post(Highlight, f"/documents/{document}/highlights", passage)

    @Call
    async def edit_highlight(self, highlight: UUID, changes: Mapping[str, object]) -> Highlight:
        """Change the `note` or the `colour` of a highlight."""
        return await self._patch(Highlight, f"/highlights/{highlight}", changes)

    @Call
    async def delete_highlight(self, highlight: UUID) -> None:
        await self._delete(f"/highlights/{highlight}")

    # Collections, tags and views -----------------------------------------------------------------------------------

    @Call
    async def list_collections(self) -> list[Collection]:
        """List collections by name."""
        return (await self._list(Collection, "/collections")).items

    @Call
    async def add_collection(self, name: str) -> Collection:
        """Create a collection, or return the one with this name."""
        return await self._post(Collection, "/collections", {"name": name})

    @Call
    async def edit_collection(self, collection: UUID, changes: Mapping[str, object]) -> None:
        """Change the `name` of a collection, or its `keep_days`. If `keep_days` is None, its documents are kept
        forever.
        """
        await self._transport.call(Request("PATCH", f"/collections/{collection}", json=changes))

    @Call
    async def delete_collection(self, collection: UUID) -> None:
        """Delete a collection. Its documents are kept."""
        await self._delete(f"/collections/{collection}")

    @Call
    async def list_tags(self) -> list[Tag]:
        """List tags, most used first."""
        return (await self._list(Tag, "/tags")).items

    @Call
    async def list_views(self) -> list[SavedView]:
        """List saved views by name."""
        return (await self._list(SavedView, "/views")).items

    @Call
    async def add_view(self, name: str, filters: Mapping[str, Any] | None = None, sort: str = "newest") -> SavedView:
        """Save filters and a sort order under a name. Filters have the same names as in `list_documents`."""
        return await self._post(SavedView, "/views", {"name": name, "filter": dict(filters or {}), "sort": sort})

    @Call
    async def delete_view(self, view: UUID) -> None:
        await self._delete(f"/views/{view}")
