"""API calls for search, for questions and their threads, and for connections between documents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal
from uuid import UUID

from octavo.client.calls import MOST_LISTED, Call, Calls, Stream, given
from octavo.client.jobs import SILENCE_SECONDS, read_data
from octavo.client.transport import (
    RemoteProblem,
    Repeat,
    Request,
    Transport,
    Unreachable,
    read_problem,
    read_record,
)
from octavo.core.http import EVENT_STREAM, Page, read_events
from octavo.records.search import (
    AnswerSources,
    AskScope,
    Connection,
    ConnectionMap,
    ConnectionPage,
    FoundPassages,
    Mode,
    RelatedDocument,
    SearchPage,
    SimilarTag,
    Statement,
    Thread,
    ThreadReference,
    ThreadSummary,
)

Decision = Literal["confirm", "dismiss", "undo"]

AnswerPart = ThreadReference | FoundPassages | Statement | AnswerSources
ANSWER_PARTS: dict[str, type[AnswerPart]] = {
    "thread": ThreadReference,
    "passages": FoundPassages,
    "text": Statement,
    "citations": AnswerSources,
}


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Limits a search to the documents that match every filter.

    `document`, `tag` and `kind` accept several values, of which a document must match at least one. If `versions` is
    true, superseded versions are included. `field` is a custom field and its value, as in `Project:Coast`, or only the
    name of the field.
    """

    document: Sequence[UUID] = ()
    tag: Sequence[str] = ()
    collection: str | None = None
    kind: Sequence[str] = ()
    language: str | None = None
    since: date | None = None
    until: date | None = None
    versions: bool = False
    field: str | None = None

    def as_query(self) -> dict[str, object]:
        several = {"document": list(self.document), "tag": list(self.tag), "kind": list(self.kind)}
        single = given(collection=self.collection, language=self.language, since=self.since, until=self.until)
        return {**several, **single, **given(versions=self.versions or None, field=self.field)}


class SearchCalls(Calls):
    """API calls for search, answers and connections."""

    @Call
    async def search(
        self,
        query: str,
        *,
        mode: Mode = "hybrid",
        limit: int = 20,
        cursor: str | None = None,
        filters: SearchFilters | None = None,
    ) -> SearchPage:
        """Find the chunks that match a query best. If `filters` is given, only matching documents are searched."""
        chosen = (filters or SearchFilters()).as_query()
        return await self._get(SearchPage, "/search", **chosen, q=query, mode=mode, limit=limit, cursor=cursor)

    @Call
    async def related_documents(self, document: UUID, *, limit: int = 10) -> list[RelatedDocument]:
        """List documents on similar topics, most similar first."""
        return (await self._list(RelatedDocument, f"/documents/{document}/related", limit=limit)).items

    @Call
    async def similar_tags(self, name: str, *, limit: int = 10) -> list[SimilarTag]:
        """List your tags that are similar in meaning to `name`, most similar first."""
        return (await self._list(SimilarTag, "/tags/similar", name=name, limit=limit)).items

    # Questions -----------------------------------------------------------------------------------------------------

    @Stream
    async def ask(
        self,
        question: str,
        documents: Sequence[UUID] = (),
        *,
        thread: UUID | None = None,
        scope: AskScope | None = None,
    ) -> AsyncGenerator[AnswerPart]:
        """Yield the answer to a question in parts: its thread, the passages found, its statements, and its citations.

        By default, the answer can use all documents or, in an existing thread, the documents of the previous question.
        """
        chosen = scope or (AskScope(document_ids=list(documents)) if documents else None)
        body: dict[str, object] = {"question": question}
        if thread:
            body["thread_id"] = str(thread)
        if chosen:
            ids = [str(one) for one in chosen.document_ids or ()]
            fields = {"collection": chosen.collection, "query": chosen.query, "document_ids": ids}
            body["scope"] = {name: value for name, value in fields.items() if value}
        async with aclosing(stream_answer(self._transport, body)) as parts:
            async for record, data in parts:
                yield read_record(record, data)

    @Call
    async def list_threads(self, *, cursor: str | None = None, limit: int = MOST_LISTED) -> Page[ThreadSummary]:
        """List threads, the most recently used first."""
        return await self._list(ThreadSummary, "/threads", cursor=cursor, limit=limit)

    @Call
    async def show_thread(self, thread: UUID) -> Thread:
        return await self._get(Thread, f"/threads/{thread}")

    @Call
    async def read_thread(self, thread: UUID, *, turn: UUID | None = None) -> str:
        """Return a thread, or one of its turns, as Markdown."""
        return (await self._read(f"/threads/{thread}/markdown", turn=turn)).decode()

    @Call
    async def delete_thread(self, thread: UUID) -> None:
        await self._delete(f"/threads/{thread}")

    # Connections ---------------------------------------------------------------------------------------------------

    @Call
    async def list_connections(
        self,
        document: UUID,
        *,
        engine: str | None = None,
        status: str | None = None,
        chunk: UUID | None = None,
        cursor: str | None = None,
        limit: int = MOST_LISTED,
    ) -> ConnectionPage:
        """List the connections of a document to other documents, most important first. Also returns the state of the
        comparison.
        """
        path = f"/documents/{document}/connections"
        return await self._get(
            ConnectionPage, path, engine=engine, status=status, chunk_id=chunk, cursor=cursor, limit=limit
        )

    @Call
    async def find_connections(self, part: str, *, limit: int | None = None) -> list[Connection]:
        """Find connections whose id begins or ends with `part`."""
        return (await self._list(Connection, "/connections", id=part, limit=limit)).items

    @Call
    async def judge_connection(self, connection: UUID, decision: Decision) -> Connection:
        return await self._post(Connection, f"/connections/{connection}/{decision}", repeat=Repeat.SAFE)

    @Call
    async def connection_map(
        self, *, focus: UUID | None = None, engine: str | None = None, least: float | None = None
    ) -> ConnectionMap:
        """Return a graph of documents (nodes) and connections (edges).

        If `focus` is a document, only its connections are included. By default, the connections of all documents are
        included. `least` is the minimum strength of a connection.
        """
        return await self._get(ConnectionMap, "/connections/map", focus=focus, engine=engine, min=least)

    @Call
    async def read_weights(self) -> dict[str, int]:
        """Return the weight of each type of connection, from 0 to 100."""
        return await self._get(dict[str, int], "/connections/weights")

    @Call
    async def set_weights(self, weights: Mapping[str, int]) -> dict[str, int]:
        """Set the weights of all types of connections. The weights apply to all lists immediately."""
        return await self._put(dict[str, int], "/connections/weights", weights)

    @Call
    async def rebuild_connections(self, documents: Sequence[UUID] | None = None) -> list[UUID]:
        """Queue jobs that compare documents again with the account's other documents. Returns the ids of the jobs.

        If `documents` is None, all documents are compared again.
        """
        wanted = {"document_ids": [str(one) for one in documents]} if documents is not None else {}
        return (await self._post(dict[str, list[UUID]], "/connections/rebuild", wanted))["jobs"]


async def stream_answer(
    transport: Transport, body: Mapping[str, object]
) -> AsyncGenerator[tuple[type[AnswerPart], Any]]:
    """Yield each part of an answer as a pair: its record type and its data. The last part contains the sources.

    A broken stream is not retried, because answers cost money.
    """
    request = Request("POST", "/ask", Repeat.NEVER, headers={"accept": EVENT_STREAM}, json=body)
    async with transport.open(request, silence_seconds=SILENCE_SECONDS) as response:
        if not response.is_success:
            await response.aread()
            raise read_problem(response)
        async with aclosing(read_events(response.aiter_bytes())) as events:
            async for event in events:
                data = read_data(event)
                if event.name == "error":
                    raise RemoteProblem(int(data["status"]), str(data["code"]), str(data["title"]), data["detail"])
                if record := ANSWER_PARTS.get(event.name):
                    yield record, data
                if event.name == "citations":
                    return
    raise Unreachable(f"{transport.address} closed the connection before the response was complete.")
