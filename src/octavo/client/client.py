"""The client: one method for each call of the API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Literal, Self
from uuid import UUID

import httpx

from octavo.client.analyses import AnalysisCalls
from octavo.client.automation import AutomationCalls
from octavo.client.conversions import ConversionCalls
from octavo.client.events import AnswerPart, Event, EventCursor, follow, read_data, stream_answer
from octavo.client.transport import (
    SESSION_COOKIE,
    Record,
    Request,
    RetryPolicy,
    Transport,
    read_key,
    read_page,
    read_record,
)
from octavo.client.uploads import UploadCalls, unless_plain
from octavo.core.pagination import Page
from octavo.core.types import Extraction
from octavo.records.account import (
    Access,
    BudgetsInForce,
    DocumentBudget,
    DocumentEstimate,
    KeyScope,
    KeyView,
    ModelServer,
    ModelsInForce,
    ModelTest,
    NewKey,
    Published,
    RemoteProvider,
    Usage,
)
from octavo.records.documents import (
    BulkAnswer,
    Chunk,
    Comparison,
    Document,
    FactView,
    FigureView,
    Highlight,
    PageView,
    ReadingPosition,
    RegionView,
    Retried,
    TextMatches,
    UploadState,
    UploadView,
    Version,
)
from octavo.records.jobs import ImportState, JobView
from octavo.records.search import (
    AskScope,
    Connection,
    ConnectionPage,
    Mode,
    RelatedDocument,
    SearchPage,
    Thread,
    ThreadSummary,
)

DocumentStatus = Literal["pending", "completed", "failed"]
BulkAction = Literal["delete", "restore", "purge"]
Decision = Literal["confirm", "dismiss", "undo"]

MOST_LISTED = 500
MOST_CHANGED = 500
MOST_TEXT_BYTES = 64 << 20
CONNECTIONS = 10


@dataclass(frozen=True, slots=True)
class Filters:
    """Selects the documents to list. `q` searches title, file name and author; `id` is the start or the end of an id.

    `sender` is a part of the sender's name; `before` (exclusive) and `after` are days, months or years; sizes are in
    bytes. `versions` includes superseded versions.
    """

    id: str | None = None
    q: str | None = None
    status: DocumentStatus | None = None
    tag: str | None = None
    collection: str | None = None
    trashed: bool = False
    versions: bool = False
    kind: str | None = None
    sender: str | None = None
    before: str | None = None
    after: str | None = None
    amount_min: float | None = None
    amount_max: float | None = None
    language: str | None = None
    state: str | None = None
    size_min: int | None = None
    size_max: int | None = None
    sort: str | None = None


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Limits a search to the documents that match every filter.

    `document`, `tag` and `kind` accept several values, one of which must match. `versions` includes superseded
    versions.
    """

    document: Sequence[UUID] = ()
    tag: Sequence[str] = ()
    collection: str | None = None
    kind: Sequence[str] = ()
    language: str | None = None
    since: date | None = None
    until: date | None = None
    versions: bool = False

    def as_query(self) -> dict[str, str | list[str]]:
        several = {"document": [str(one) for one in self.document], "tag": list(self.tag), "kind": list(self.kind)}
        single = {"collection": self.collection, "language": self.language, "since": self.since, "until": self.until}
        if self.versions:
            single["versions"] = "true"
        return {**several, **{name: str(value) for name, value in single.items() if value is not None}}


class Client(UploadCalls):
    """A client for one server. It acts for the account that the API key or the session belongs to.

    `hint` is shown to users if the server is unreachable. `http` replaces the network, for example in one process.
    """

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        session: str | None = None,
        connections: int = CONNECTIONS,
        retry_policy: RetryPolicy | None = None,
        hint: str = "Is the server running, and is the address right?",
        http: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        headers = {"authorization": f"Bearer {read_key(key)}"} if key else {}
        headers |= {"cookie": f"{SESSION_COOKIE}={session}"} if session else {}
        self._policy = retry_policy or RetryPolicy()
        super().__init__(
            Transport(
                address, headers=headers, connections=connections, retry_policy=self._policy, hint=hint, http=http
            )
        )

    @property
    def address(self) -> str:
        return self._transport.address

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.__aexit__()

    @property
    def analyses(self) -> AnalysisCalls:
        """The API calls for analyses of whole documents, and for saved prompts."""
        return AnalysisCalls(self._transport)

    @property
    def automation(self) -> AutomationCalls:
        """API calls for sources, custom fields and rules."""
        return AutomationCalls(self._transport)

    @property
    def conversions(self) -> ConversionCalls:
        """The API calls for conversions of business documents to XML, and for mappings."""
        return ConversionCalls(self._transport)

    # Documents ---------------------------------------------------------------------------------------------------

    async def list_documents(
        self, filters: Filters | None = None, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Document]:
        """List documents, newest first."""
        return await self._list(
            Document, "/documents", asdict(filters or Filters()) | {"cursor": cursor, "limit": limit}
        )

    async def walk_documents(self, filters: Filters | None = None) -> AsyncIterator[Document]:
        """Yield all documents. They are fetched page by page."""
        cursor: str | None = None
        while True:
            page = await self.list_documents(filters, cursor=cursor)
            for document in page.items:
                yield document
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    async def show_document(self, document: UUID) -> Document:
        return read_record(Document, await self._transport.get(f"/documents/{document}"))

    async def edit_document(self, document: UUID, changes: Mapping[str, object]) -> Document:
        """Change the given fields of a document. All other fields stay unchanged."""
        return await self._call(Document, Request("PATCH", f"/documents/{document}", repeatable=True, json=changes))

    async def list_facts(self, document: UUID) -> list[FactView]:
        """List the facts of a document: kind, title, sender, number, date, amount and others."""
        return (await self._list(FactView, f"/documents/{document}/facts", {})).items

    async def correct_facts(self, document: UUID, facts: Mapping[str, str | None]) -> list[FactView]:
        """Correct facts. Pass None for a fact that the document does not have."""
        request = Request("PATCH", f"/documents/{document}/facts", repeatable=True, json={**facts})
        return read_page(FactView, await self._transport.call(request)).items

    async def change_documents(self, action: BulkAction, documents: Sequence[UUID]) -> int:
        """Apply an action to documents, in requests of up to 500 documents. Returns the number of changed documents.

        If a request fails, none of its documents are changed.
        """
        changed = 0
        for begin in range(0, len(documents), MOST_CHANGED):
            ids = [str(one) for one in documents[begin : begin + MOST_CHANGED]]
            body = await self._transport.call(Request("POST", "/documents/bulk", json={"ids": ids, "action": action}))
            changed += read_record(BulkAnswer, body).changed
        return changed

    async def edit_matching(self, filters: Mapping[str, object], changes: Mapping[str, object]) -> BulkAnswer:
        """Edit all documents that match these filters. Their names are those of `list_documents`."""
        body = {"filter": {**filters}, "action": "edit", "edit": {**changes}}
        return await self._call(BulkAnswer, Request("POST", "/documents/bulk", json=body))

    async def undo_change(self, change: UUID) -> int:
        """Undo an edit or a deletion of many documents. Returns the number of restored documents."""
        body = await self._transport.call(Request("POST", f"/documents/bulk/{change}/undo", repeatable=True))
        return read_record(BulkAnswer, body).changed

    async def retry_document(
        self,
        document: UUID,
        from_stage: str | None = None,
        *,
        password: str | None = None,
        extraction: Extraction = Extraction.PLAIN,
    ) -> Retried:
        """Retry a failed document, or process a complete document again. An encrypted PDF needs its password."""
        given = {"from_stage": from_stage, "password": password, **unless_plain(extraction)}
        body = {name: value for name, value in given.items() if value is not None}
        return await self._call(Retried, Request("POST", f"/documents/{document}/retry", json=body))

    async def list_uploads(
        self, state: UploadState = "rejected", *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[UploadView]:
        """List uploads in one state, newest first. Refused uploads have the reason in `error`."""
        return await self._list(UploadView, "/uploads", {"state": state, "cursor": cursor, "limit": limit})

    async def reembed(self, model: str | None = None) -> int:
        """Create missing embeddings with this model, by default the server's model.

        Returns the number of queued documents.
        """
        body = await self._transport.call(Request("POST", "/embeddings", json={"model": model} if model else {}))
        return read_record(dict[str, int], body)["queued"]

    async def list_pages(
        self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[PageView]:
        """List the pages of a document. `unsure` is the reason why the text of a page may be wrong."""
        return await self._list(PageView, f"/documents/{document}/pages", {"cursor": cursor, "limit": limit})

    async def read_markdown(self, document: UUID, *, most_bytes: int = MOST_TEXT_BYTES) -> str:
        """Return the text of a document as Markdown. Of a longer text, only the first `most_bytes` bytes are read."""
        headers = {"range": f"bytes=0-{most_bytes - 1}"}
        request = Request("GET", f"/documents/{document}/markdown", repeatable=True, headers=headers)
        response = await self._transport.send(request)
        return response.content.decode(errors="ignore") if response else ""  # the last character may be cut

    async def list_regions(self, document: UUID, page: int) -> Page[RegionView]:
        """List the regions of a page and their kinds, in reading order."""
        return await self._list(RegionView, f"/documents/{document}/regions", {"page": page})

    async def list_figures(
        self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[FigureView]:
        """List the figures of a document, in the order of the text."""
        return await self._list(FigureView, f"/documents/{document}/figures", {"cursor": cursor, "limit": limit})

    async def list_chunks(self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED) -> Page[Chunk]:
        """List the chunks of a document, in order."""
        return await self._list(Chunk, f"/documents/{document}/chunks", {"cursor": cursor, "limit": limit})

    async def find_in_document(
        self, document: UUID, q: str, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> TextMatches:
        """Find words in the text of a document, ignoring case, accents and white space."""
        query = {"q": q, "limit": str(limit)} | ({"cursor": cursor} if cursor else {})
        return read_record(TextMatches, await self._transport.get(f"/documents/{document}/find", query))

    async def read_position(self, document: UUID) -> ReadingPosition:
        return read_record(ReadingPosition, await self._transport.get(f"/documents/{document}/position"))

    async def keep_position(self, document: UUID, start: int) -> None:
        """Keep the reading position, as a character position in the Markdown."""
        request = Request("PUT", f"/documents/{document}/position", repeatable=True, json={"start": start})
        await self._transport.call(request)

    async def list_highlights(
        self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Highlight]:
        return await self._list(Highlight, f"/documents/{document}/highlights", {"cursor": cursor, "limit": limit})

    async def find_highlights(
        self, q: str | None = None, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Highlight]:
        """List the highlights of all documents, newest first.

        If `q` is given, its words must be in the quote or the note.
        """
        return await self._list(Highlight, "/highlights", {"q": q, "cursor": cursor, "limit": limit})

    async def add_highlight(self, document: UUID, passage: Mapping[str, object]) -> Highlight:
        """Highlight a passage of a document.

        `passage` contains its `quote`, or its `start` and `end`, and optionally a `colour` and a `note`.
        """
        return await self._call(Highlight, Request("POST", f"/documents/{document}/highlights", json=passage))

    async def edit_highlight(self, highlight: UUID, changes: Mapping[str, object]) -> Highlight:
        """Change the `note` or the `colour` of a highlight."""
        request = Request("PATCH", f"/highlights/{highlight}", repeatable=True, json=changes)
        return await self._call(Highlight, request)

    async def delete_highlight(self, highlight: UUID) -> None:
        await self._transport.call(Request("DELETE", f"/highlights/{highlight}", repeatable=True))

    async def list_children(
        self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Document]:
        """List the documents made from the files of an archive or the attachments of an email, in order."""
        return await self._list(Document, f"/documents/{document}/children", {"cursor": cursor, "limit": limit})

    async def list_versions(self, document: UUID) -> list[Version]:
        """List all versions of a document, newest first."""
        return (await self._list(Version, f"/documents/{document}/versions", {})).items

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
        given = {"since": since, "since_revision": since_revision, "revision": revision}
        query = {name: str(value) for name, value in given.items() if value is not None}
        return read_record(Comparison, await self._transport.get(f"/documents/{document}/diff", query))

    # Search, answers and connections -----------------------------------------------------------------------------

    async def search(
        self,
        query: str,
        *,
        mode: Mode = "hybrid",
        limit: int = 20,
        cursor: str | None = None,
        filters: SearchFilters | None = None,
    ) -> SearchPage:
        """Find the best matching chunks, in all documents or in those that the filters select."""
        wanted = {**(filters or SearchFilters()).as_query(), "q": query, "mode": mode, "limit": str(limit)}
        wanted |= {"cursor": cursor} if cursor else {}
        return read_record(SearchPage, await self._transport.get("/search", wanted))

    async def ask(
        self,
        question: str,
        documents: Sequence[UUID] = (),
        *,
        thread: UUID | None = None,
        scope: AskScope | None = None,
    ) -> AsyncGenerator[AnswerPart]:
        """Yield the answer to a question: its thread, the passages found, its statements, and its citations.

        By default, all documents are used, or those of the previous question if `thread` continues a thread.
        """
        chosen = scope or (AskScope(document_ids=list(documents)) if documents else None)
        body: dict[str, object] = {"question": question}
        if thread:
            body["thread_id"] = str(thread)
        if chosen:
            ids = [str(one) for one in chosen.document_ids or ()]
            given = {"collection": chosen.collection, "query": chosen.query, "document_ids": ids}
            body["scope"] = {name: value for name, value in given.items() if value}
        async with aclosing(stream_answer(self._transport, body)) as parts:
            async for record, data in parts:
                yield read_record(record, data)

    async def list_threads(self, *, cursor: str | None = None, limit: int = MOST_LISTED) -> Page[ThreadSummary]:
        """List threads, the most recently used first."""
        return await self._list(ThreadSummary, "/threads", {"cursor": cursor, "limit": limit})

    async def show_thread(self, thread: UUID) -> Thread:
        return read_record(Thread, await self._transport.get(f"/threads/{thread}"))

    async def delete_thread(self, thread: UUID) -> None:
        await self._transport.call(Request("DELETE", f"/threads/{thread}", repeatable=True))

    async def list_connections(
        self,
        document: UUID,
        *,
        engine: str | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = MOST_LISTED,
    ) -> ConnectionPage:
        """List connections to other documents, most important first, and the state of the comparison."""
        wanted = {"engine": engine, "status": status, "cursor": cursor, "limit": limit}
        query = {name: as_query(value) for name, value in wanted.items() if value is not None}
        return read_record(ConnectionPage, await self._transport.get(f"/documents/{document}/connections", query))

    async def find_connections(self, part: str) -> list[Connection]:
        """Find connections whose id begins or ends with `part`."""
        return (await self._list(Connection, "/connections", {"id": part})).items

    async def judge_connection(self, connection: UUID, decision: Decision) -> Connection:
        return await self._call(Connection, Request("POST", f"/connections/{connection}/{decision}", repeatable=True))

    async def read_weights(self) -> dict[str, int]:
        """Return the weight of each type of connection, from 0 to 100."""
        return read_record(dict[str, int], await self._transport.get("/connections/weights"))

    async def set_weights(self, weights: Mapping[str, int]) -> dict[str, int]:
        """Set the weights of all types of connections. The weights apply to all lists immediately."""
        body = await self._transport.call(Request("PUT", "/connections/weights", repeatable=True, json=weights))
        return read_record(dict[str, int], body)

    async def related_documents(self, document: UUID, *, limit: int = 10) -> list[RelatedDocument]:
        """List documents on similar topics, most similar first."""
        return (await self._list(RelatedDocument, f"/documents/{document}/related", {"limit": limit})).items

    async def rebuild_connections(self, documents: Sequence[UUID] | None = None) -> list[UUID]:
        """Compare these documents, or all documents, with the other documents in the account again.

        Returns the ids of the jobs.
        """
        wanted = {"document_ids": [str(one) for one in documents]} if documents is not None else {}
        body = await self._transport.call(Request("POST", "/connections/rebuild", json=wanted))
        return read_record(dict[str, list[UUID]], body)["jobs"]

    # Jobs and events ---------------------------------------------------------------------------------------------

    async def list_jobs(
        self,
        *,
        status: str | None = None,
        kind: str | None = None,
        document: UUID | None = None,
        cursor: str | None = None,
        limit: int = MOST_LISTED,
    ) -> Page[JobView]:
        """List jobs, newest first."""
        wanted = {"status": status, "kind": kind, "document_id": document, "cursor": cursor, "limit": limit}
        return await self._list(JobView, "/jobs", wanted)

    async def show_job(self, job: UUID) -> JobView:
        return read_record(JobView, await self._transport.get(f"/jobs/{job}"))

    async def cancel_job(self, job: UUID) -> JobView:
        return await self._call(JobView, Request("POST", f"/jobs/{job}/cancel"))

    async def prioritise_job(self, job: UUID) -> JobView:
        """Move an unfinished job into the interactive lane, before imports."""
        return await self._call(JobView, Request("POST", f"/jobs/{job}/prioritise", repeatable=True))

    async def import_state(self) -> ImportState:
        """Return whether imports are paused, and how many of their jobs are waiting."""
        return read_record(ImportState, await self._transport.get("/imports"))

    async def pause_imports(self) -> ImportState:
        """Pause imports. Running jobs continue."""
        return await self._call(ImportState, Request("POST", "/imports/pause", repeatable=True))

    async def resume_imports(self) -> ImportState:
        return await self._call(ImportState, Request("POST", "/imports/resume", repeatable=True))

    async def latest_event(self) -> str:
        """Return the cursor of the latest event. Pass it to `events` to get only later events."""
        return read_record(EventCursor, await self._transport.get("/events", {"format": "json"})).cursor

    async def events(self, *, after: str | None = None) -> AsyncGenerator[Event]:
        """Yield all events from now on, or after a cursor, until the generator is closed. Each event is yielded once,
        in order.

        After a broken connection, the stream resumes after the last event. Raises TOO_FAR_BEHIND if too many events
        were missed.
        """
        async with aclosing(follow(self._transport, self._policy, after)) as events:
            async for event in events:
                if event.name == "message":
                    yield read_record(Event, {**read_data(event), "cursor": event.id})

    # The installation, costs and keys ----------------------------------------------------------------------------

    async def read_settings(self) -> Published:
        return read_record(Published, await self._transport.get("/settings"))

    async def read_usage(self, month: str | None = None) -> Usage:
        """Return the cost of model calls in a month, such as `2026-11`; by default in the current month."""
        return read_record(Usage, await self._transport.get("/usage", {"month": month} if month else {}))

    async def read_budgets(self) -> BudgetsInForce:
        return read_record(BudgetsInForce, await self._transport.get("/settings/budgets"))

    async def set_budgets(self, changes: Mapping[str, float | None]) -> BudgetsInForce:
        """Set budgets in US dollars. Only administrators can do this.

        `document`: per document. `owner`: per account and month. `month`: per month for all accounts together. None
        restores the default, and budgets that are not passed stay unchanged.
        """
        return await self._call(BudgetsInForce, Request("PUT", "/settings/budgets", repeatable=True, json=changes))

    async def read_models(self) -> ModelsInForce:
        return read_record(ModelsInForce, await self._transport.get("/models"))

    async def choose_models(self, changes: Mapping[str, Any]) -> ModelsInForce:
        """Choose the `order` of the providers, and the models of `tasks` and of the `embedding` (administrators only).

        A task that is set to None uses the first provider that can do it.
        """
        return await self._call(ModelsInForce, Request("PUT", "/models", repeatable=True, json=changes))

    async def set_provider(self, provider: RemoteProvider, changes: Mapping[str, Any]) -> ModelsInForce:
        """Set the `key`, `url`, `model` or `context` of a provider; None restores the default (administrators only)."""
        return await self._call(ModelsInForce, Request("PUT", f"/models/{provider}", repeatable=True, json=changes))

    async def remove_provider(self, provider: RemoteProvider) -> None:
        await self._transport.call(Request("DELETE", f"/models/{provider}", repeatable=True))

    async def test_provider(self, provider: RemoteProvider) -> ModelTest:
        """Call the provider's model once. Its cost counts towards the budget."""
        return await self._call(ModelTest, Request("POST", f"/models/{provider}/test"))

    async def find_model_servers(self) -> Page[ModelServer]:
        """Look for model servers on the machine on which Octavo runs."""
        found = await self._transport.call(Request("POST", "/model-servers", repeatable=True))
        return read_page(ModelServer, found)

    async def read_document_budget(self, document: UUID) -> DocumentBudget:
        return read_record(DocumentBudget, await self._transport.get(f"/documents/{document}/budget"))

    async def estimate_document(self, document: UUID, prompts: int = 1) -> DocumentEstimate:
        """Estimate the cost of model calls for a document. Nothing is spent."""
        found = await self._transport.get(f"/documents/{document}/estimate", {"prompts": str(prompts)})
        return read_record(DocumentEstimate, found)

    async def estimate(self, words: int, pages: int = 0, prompts: int = 1) -> DocumentEstimate:
        """Estimate the cost of model calls for a document that has not been added yet."""
        asked = {"words": str(words), "pages": str(pages), "prompts": str(prompts)}
        return read_record(DocumentEstimate, await self._transport.get("/estimate", asked))

    async def set_document_budget(self, document: UUID, usd: float | None) -> DocumentBudget:
        """Set the budget of one document in US dollars; None restores the default."""
        request = Request("PUT", f"/documents/{document}/budget", repeatable=True, json={"usd": usd})
        return await self._call(DocumentBudget, request)

    async def read_access(self) -> Access:
        return read_record(Access, await self._transport.get("/session"))

    async def list_keys(self) -> Page[KeyView]:
        return await self._list(KeyView, "/keys", {})

    async def make_key(self, name: str, scope: KeyScope, expires_in_days: int | None = None) -> NewKey:
        wanted = {"name": name, "scope": scope, "expires_in_days": expires_in_days}
        return await self._call(NewKey, Request("POST", "/keys", json=wanted))

    async def revoke_key(self, key: UUID) -> None:
        await self._transport.call(Request("DELETE", f"/keys/{key}", repeatable=True))

    async def sign_out(self) -> None:
        """End this client's session."""
        await self._transport.call(Request("DELETE", "/session", repeatable=True))

    async def _call(self, record: type[Record], request: Request) -> Record:
        return read_record(record, await self._transport.call(request))

    async def _list(self, record: type[Record], path: str, wanted: Mapping[str, object]) -> Page[Record]:
        query = {name: as_query(value) for name, value in wanted.items() if value is not None}
        return read_page(record, await self._transport.get(path, query))


def as_query(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
