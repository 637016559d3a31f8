"""The calls of the API, one method each, and uploads put together from them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from mimetypes import guess_type
from os import fsencode
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote
from uuid import UUID

from octavo.client.address import read_key
from octavo.client.analysing import AnalysisCalls
from octavo.client.answers import AnswerSources, AnswerText, follow_answer
from octavo.client.bodies import FileBody, OnProgress
from octavo.client.budgets import BudgetCalls
from octavo.client.connections import Connection, Decision, Rebuilding
from octavo.client.conversions import ConversionCalls
from octavo.client.errors import Damaged
from octavo.client.following import follow, read_data
from octavo.client.patience import Patience
from octavo.client.reading import Record, read_page, read_record
from octavo.client.records import (
    Action,
    Changed,
    Chunk,
    Document,
    Embedding,
    Event,
    Filters,
    Job,
    Key,
    NewKey,
    Outcome,
    Place,
    Policy,
    Published,
    Received,
    Retried,
    Scope,
    Ticket,
)
from octavo.client.searching import Found, Mode, Narrowed
from octavo.client.usage import Usage
from octavo.client.versions import Comparison, Version
from octavo.client.wire import SESSION_COOKIE, Ask, Query, Wire
from octavo.core.errors import StorageFailed
from octavo.core.pagination import Page
from octavo.core.types import Extraction

# Up to here a file goes in one call; a larger one in three, of which each can be repeated by itself.
ONE_CALL_BYTES = 8 << 20
MOST_LISTED = 500
MOST_CHANGED = 500
CONNECTIONS = 10


@dataclass(frozen=True, slots=True)
class File:
    """What to send: bytes on this machine, and the name that they are known by."""

    path: Path
    name: str
    size: int

    @property
    def content_type(self) -> str:
        """A guess from the name; the server looks for itself."""
        return guess_type(self.name)[0] or "application/octet-stream"


class Client:
    """Acts for the owner of a key or of a session on one server. `hint`: what to do when it cannot be reached."""

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        session: str | None = None,
        connections: int = CONNECTIONS,
        patience: Patience | None = None,
        hint: str = "Is it running, and is the address right?",
    ) -> None:
        headers = {"authorization": f"Bearer {read_key(key)}"} if key else {}
        headers |= {"cookie": f"{SESSION_COOKIE}={session}"} if session else {}
        self._patience = patience or Patience()
        self._wire = Wire(address, headers=headers, connections=connections, patience=self._patience, hint=hint)

    @property
    def address(self) -> str:
        return self._wire.address

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._wire.__aexit__()

    # Adding ------------------------------------------------------------------------------------------------------

    async def add_file(
        self,
        path: Path,
        *,
        name: str | None = None,
        duplicates: Policy = "reuse",
        extraction: Extraction = Extraction.PLAIN,
        version_of: UUID | None = None,
        on_progress: OnProgress | None = None,
    ) -> Outcome:
        """Bring a file in, also as a new version of a document.

        `on_progress` is told how many bytes are sent; after a broken transfer it begins again.
        """
        try:
            size = path.stat().st_size  # noqa: ASYNC240 - quicker than a visit to a thread
            file = File(path, path.name if name is None else name, size)
            return await self._add(file, duplicates, extraction, version_of, on_progress)
        except OSError as error:  # of reading it; those of the network have other names here
            raise StorageFailed(f"{path}: {error.strerror}.") from error

    async def _add(
        self,
        file: File,
        duplicates: Policy,
        extraction: Extraction,
        version_of: UUID | None,
        on_progress: OnProgress | None,
    ) -> Outcome:
        if duplicates == "reuse" and extraction is Extraction.PLAIN and file.size <= ONE_CALL_BYTES:
            return await self._add_in_one_call(file, version_of, on_progress)
        ticket = await self.begin_upload(file, duplicates, extraction, version_of)
        await self.send_content(ticket.upload_id, file, on_progress)
        return await self.finalize_upload(ticket.upload_id)

    async def _add_in_one_call(self, file: File, version_of: UUID | None, on_progress: OnProgress | None) -> Outcome:
        """Made again after a broken connection, it finds the document of the first time."""
        headers = {"x-upload-filename": quote(fsencode(file.name))}
        path = f"/documents?version_of={version_of}" if version_of else "/documents"
        answer, digest = await self._send_file("POST", path, file, headers, on_progress)
        outcome = read_record(Outcome, answer)
        if outcome.sha256 not in {None, digest}:
            raise Damaged(file.name)
        return outcome

    async def add_link(
        self, url: str, *, duplicates: Policy = "reuse", extraction: Extraction = Extraction.PLAIN
    ) -> Outcome:
        """Bring a web page or a video in, by its address."""
        return await self._add_given({"url": url}, duplicates, extraction)

    async def add_text(
        self,
        text: str,
        *,
        title: str | None = None,
        source: str | None = None,
        duplicates: Policy = "reuse",
        extraction: Extraction = Extraction.PLAIN,
    ) -> Outcome:
        """Bring text in. `source` says where it is from."""
        given = {"text": text, "title": title, "source": source}
        said = {name: value for name, value in given.items() if value is not None}
        return await self._add_given(said, duplicates, extraction)

    async def _add_given(self, given: Mapping[str, str], duplicates: Policy, extraction: Extraction) -> Outcome:
        """Made again after a broken connection, it finds the document of the first time, if that may be used."""
        asked = {**given, "duplicates": duplicates, **unless_plain(extraction)}
        ask = Ask("POST", "/documents", repeatable=duplicates == "reuse", json=asked)
        return read_record(Outcome, await self._wire.call(ask))

    async def begin_upload(
        self,
        file: File,
        duplicates: Policy = "reuse",
        extraction: Extraction = Extraction.PLAIN,
        version_of: UUID | None = None,
    ) -> Ticket:
        """Announce a file. Made twice, the first is forgotten by the server after a day."""
        announced = {
            "filename": fsencode(file.name).decode(errors="replace"),
            "content_type": file.content_type,
            "bytes": file.size,
            "duplicates": duplicates,
            **unless_plain(extraction),
            **({"version_of": str(version_of)} if version_of else {}),
        }
        ask = Ask("POST", "/uploads", repeatable=True, json=announced)
        return read_record(Ticket, await self._wire.call(ask))

    async def send_content(self, upload: UUID, file: File, on_progress: OnProgress | None = None) -> Received:
        """The bytes, always by the server itself: a signed link of its storage would lead to another address."""
        answer, digest = await self._send_file("PUT", f"/uploads/{upload}/content", file, {}, on_progress)
        received = read_record(Received, answer)
        if received.sha256 != digest:
            raise Damaged(file.name)
        return received

    async def finalize_upload(self, upload: UUID) -> Outcome:
        ask = Ask("POST", f"/uploads/{upload}/finalize", repeatable=True)
        return read_record(Outcome, await self._wire.call(ask))

    async def _send_file(
        self, method: str, path: str, file: File, headers: Mapping[str, str], on_progress: OnProgress | None
    ) -> tuple[Any, str]:
        """The answer, and the SHA-256 of what was sent for it."""
        body = FileBody(file.path, file.size, on_progress)

        def new_body() -> FileBody:
            nonlocal body
            body = FileBody(file.path, file.size, on_progress)
            return body

        about = {"content-type": file.content_type, "content-length": str(file.size)}
        ask = Ask(method, path, repeatable=True, headers={**about, **headers}, body=new_body)
        return await self._wire.call(ask), body.sha256

    # Documents ---------------------------------------------------------------------------------------------------

    async def list_documents(
        self, filters: Filters | None = None, *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Document]:
        """Newest first."""
        wanted = asdict(filters or Filters()) | {"cursor": cursor, "limit": limit}
        return await self._list(Document, "/documents", wanted)

    async def walk_documents(self, filters: Filters | None = None) -> AsyncIterator[Document]:
        """All of them, page by page."""
        cursor: str | None = None
        while True:
            page = await self.list_documents(filters, cursor=cursor)
            for document in page.items:
                yield document
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    async def show_document(self, document: UUID) -> Document:
        return read_record(Document, await self._get(f"/documents/{document}"))

    async def edit_document(self, document: UUID, changes: Mapping[str, object]) -> Document:
        """Only the fields that are given are changed."""
        ask = Ask("PATCH", f"/documents/{document}", repeatable=True, json=dict(changes))
        return read_record(Document, await self._wire.call(ask))

    async def change_documents(self, action: Action, documents: Sequence[UUID]) -> int:
        """One thing for all of them or, when one cannot, for none; more than 500 go in several calls."""
        changed = 0
        for begin in range(0, len(documents), MOST_CHANGED):
            ids = [str(one) for one in documents[begin : begin + MOST_CHANGED]]
            ask = Ask("POST", "/documents/bulk", json={"ids": ids, "action": action})
            changed += read_record(Changed, await self._wire.call(ask)).changed
        return changed

    async def retry_document(
        self,
        document: UUID,
        from_stage: str | None = None,
        *,
        password: str | None = None,
        extraction: Extraction = Extraction.PLAIN,
    ) -> Retried:
        """Go on with what failed, or process again what is complete; a PDF that is locked, with its password."""
        given = {"from_stage": from_stage, "password": password, **unless_plain(extraction)}
        wanted = {name: value for name, value in given.items() if value is not None}
        ask = Ask("POST", f"/documents/{document}/retry", json=wanted)
        return read_record(Retried, await self._wire.call(ask))

    async def reembed(self, model: str | None = None) -> int:
        """Make the vectors that documents lack, of this model or of the server's; answers for how many documents."""
        ask = Ask("POST", "/embeddings", json={"model": model} if model else {})
        return read_record(Embedding, await self._wire.call(ask)).queued

    async def list_versions(self, document: UUID) -> list[Version]:
        """All versions of it, newest first."""
        return (await self._list(Version, f"/documents/{document}/versions", {})).items

    async def compare(
        self,
        document: UUID,
        *,
        since: UUID | None = None,
        since_revision: int | None = None,
        revision: int | None = None,
    ) -> Comparison:
        """What changed up to a document, since another or a revision; without either, since the one before it."""
        wanted = {"since": since, "since_revision": since_revision, "revision": revision}
        query = {name: str(value) for name, value in wanted.items() if value is not None}
        return read_record(Comparison, await self._get(f"/documents/{document}/diff", query))

    async def ask(self, question: str, documents: Sequence[UUID] = ()) -> AsyncGenerator[AnswerText | AnswerSources]:
        """An answer from these documents or from all: its statements as they come, then what they cite."""
        async with aclosing(follow_answer(self._wire, question, documents)) as events:
            async for form, said in events:
                yield read_record(form, said)

    async def list_chunks(self, document: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED) -> Page[Chunk]:
        """The pieces of its text, in order."""
        return await self._list(Chunk, f"/documents/{document}/chunks", {"cursor": cursor, "limit": limit})

    async def search(
        self,
        query: str,
        *,
        mode: Mode = "hybrid",
        limit: int = 20,
        cursor: str | None = None,
        chosen: Narrowed | None = None,
    ) -> Found:
        """The passages that answer best, of all documents or of those that are chosen."""
        wanted = {**(chosen or Narrowed()).as_query(), "q": query, "mode": mode, "limit": str(limit)}
        wanted |= {"cursor": cursor} if cursor else {}
        return read_record(Found, await self._get("/search", wanted))

    async def list_connections(
        self,
        document: UUID,
        *,
        engine: str | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = MOST_LISTED,
    ) -> Page[Connection]:
        """What a document agrees with, contradicts and is bridged to; the most important first."""
        wanted = {"engine": engine, "status": status, "cursor": cursor, "limit": limit}
        return await self._list(Connection, f"/documents/{document}/connections", wanted)

    async def judge_connection(self, connection: UUID, decision: Decision) -> Connection:
        ask = Ask("POST", f"/connections/{connection}/{decision}", repeatable=True)
        return read_record(Connection, await self._wire.call(ask))

    async def rebuild_connections(self, documents: Sequence[UUID] | None = None) -> list[UUID]:
        """Compare these documents anew, or all; answers the jobs that do it."""
        wanted = {"document_ids": [str(one) for one in documents]} if documents is not None else {}
        return read_record(Rebuilding, await self._wire.call(Ask("POST", "/connections/rebuild", json=wanted))).jobs

    @property
    def analyses(self) -> AnalysisCalls:
        """Prompts asked of whole documents, and the library of prompts."""
        return AnalysisCalls(self._wire)

    @property
    def conversions(self) -> ConversionCalls:
        """Business documents to XML, and the mappings for that."""
        return ConversionCalls(self._wire)

    # Jobs --------------------------------------------------------------------------------------------------------

    async def list_jobs(
        self,
        *,
        status: str | None = None,
        kind: str | None = None,
        document: UUID | None = None,
        cursor: str | None = None,
        limit: int = MOST_LISTED,
    ) -> Page[Job]:
        """Newest first."""
        wanted = {"status": status, "kind": kind, "document_id": document, "cursor": cursor, "limit": limit}
        return await self._list(Job, "/jobs", wanted)

    async def show_job(self, job: UUID) -> Job:
        return read_record(Job, await self._get(f"/jobs/{job}"))

    async def cancel_job(self, job: UUID) -> Job:
        return read_record(Job, await self._wire.call(Ask("POST", f"/jobs/{job}/cancel")))

    # Events ------------------------------------------------------------------------------------------------------

    async def latest_event(self) -> str:
        """Where the events are now, to follow them from here on."""
        return read_record(Place, await self._get("/events", {"format": "json"})).cursor

    async def events(self, *, after: str | None = None) -> AsyncGenerator[Event]:
        """All that happens from now on, or after an earlier event's cursor: in order, each once, until it is closed.

        A broken connection is opened again where it was. TOO_FAR_BEHIND is raised when too much was missed.
        """
        async with aclosing(follow(self._wire, self._patience, after)) as messages:
            async for message in messages:
                if message.name == "message":
                    yield read_record(Event, {**read_data(message), "cursor": message.id})

    # The installation and who asks -------------------------------------------------------------------------------

    async def read_settings(self) -> Published:
        return read_record(Published, await self._get("/settings"))

    async def read_usage(self, month: str | None = None) -> Usage:
        """What models cost in a month, as `2026-11`; in this one, if none is named."""
        return read_record(Usage, await self._get("/usage", {"month": month} if month else {}))

    @property
    def budgets(self) -> BudgetCalls:
        """What models may cost."""
        return BudgetCalls(self._wire)

    async def list_keys(self) -> Page[Key]:
        return await self._list(Key, "/keys", {})

    async def make_key(self, name: str, scope: Scope, expires_in_days: int | None = None) -> NewKey:
        wanted = {"name": name, "scope": scope, "expires_in_days": expires_in_days}
        return read_record(NewKey, await self._wire.call(Ask("POST", "/keys", json=wanted)))

    async def revoke_key(self, key: UUID) -> None:
        await self._wire.call(Ask("DELETE", f"/keys/{key}", repeatable=True))

    async def sign_out(self) -> None:
        """End the session that this client was given."""
        await self._wire.call(Ask("DELETE", "/session", repeatable=True))

    async def _get(self, path: str, query: Query | None = None) -> Any:  # noqa: ANN401 - any JSON
        return await self._wire.call(Ask("GET", path, repeatable=True, query=query or {}))

    async def _list(self, record: type[Record], path: str, wanted: Mapping[str, object]) -> Page[Record]:
        query = {name: as_query(value) for name, value in wanted.items() if value is not None}
        return read_page(record, await self._get(path, query))


def unless_plain(extraction: Extraction) -> dict[str, str]:
    """What is usual goes without saying, so that older servers understand it."""
    return {} if extraction is Extraction.PLAIN else {"extraction": extraction.value}


def as_query(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
