"""Reads documents in the format that the API returns: lists, single documents, chunks and events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal
from uuid import UUID

from octavo.core.errors import BadInput, NotFound
from octavo.core.http import Page, make_cursor, make_text_cursor, read_cursor, read_text_cursor
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.jobs.views import DEFAULT_LIMIT, MOST_LIMIT, EventView
from octavo.records.documents import Chunk, Concept, Document, DocumentJob, PageBox
from octavo.records.jobs import JobError

QUERIES = load_queries("documents")
FIELDS = load_queries("fields")
IMPROVE_DOCUMENT = "improve_document"
# A dead letter of this kind is retried daily.
IMPROVING = frozenset({"queued", "processing", "paused", "dead_letter"})
COMPARISON = "detect_connections"
# The query `resume_documents` retries dead letters of these kinds, if the document can be read.
RESUMED = frozenset({"process_document", COMPARISON, "embed_document", "embed_tags"})
# The form in which links to videos are stored.
VIDEO = "https://www.youtube.com/watch?v="
# Parameters of the query `documents` that are null unless a caller sets them.
LIST_PARAMETERS = (
    *(
        "document",
        "documents",
        "id_part",
        "status",
        "tab",
        "tag",
        "collection",
        "like",
        "kind",
        "sender",
        "before",
        "after",
        "field",
        "field_value",
    ),
    *("amount_min", "amount_max", "language", "size_min", "size_max", "import_id", "after_at", "after_text"),
    "after_id",
)
Tab = Literal["working", "needs_you", "failed", "stored_only"]
State = Literal["pending", "completed", "failed", "working", "needs_you", "stored_only"]
# A minus sign reverses the order of a fact: `-date` begins with the latest date.
Sort = Literal[
    "newest", "oldest", "title",
    "kind", "-kind", "sender", "-sender", "date", "-date", "amount", "-amount", "language", "-language",
    "collection", "-collection", "state", "-state", "size", "-size",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a list of documents.

    `q` searches title, file name and author. `id` is the beginning or the end of an id. `sender` is a part of the
    sender's name. `before` is exclusive and `after` is inclusive. `size_min` and `size_max` are in bytes. `import_id`
    is the id of an import, or the id that the client chose for it. `field` is the name of a custom field with a value,
    or a name and a value, as in `Project:Coast`. Only the newest version of a document is listed, unless `versions`,
    `trashed` or `id` is set.
    """

    id: str | None = None
    q: str | None = None
    status: str | None = None
    tag: str | None = None
    collection: str | None = None
    trashed: bool = False
    tab: Tab | None = None
    versions: bool = False
    kind: str | None = None
    sender: str | None = None
    before: date | None = None
    after: date | None = None
    amount_min: Decimal | None = None
    amount_max: Decimal | None = None
    language: str | None = None
    state: State | None = None
    size_min: int | None = None
    size_max: int | None = None
    import_id: UUID | None = None
    field: str | None = None


async def list_documents(
    connection: Connection,
    owner: UUID,
    filters: Filters | None = None,
    *,
    sort: Sort = "newest",
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page[Document]:
    rows = await _read(connection, owner, _values(filters or Filters(), sort, cursor), limit + 1)
    page = rows[:limit]
    more = _behind(sort, page[-1]) if len(rows) > limit else None
    return Page(await _as_documents(connection, page), more)


async def select_documents(connection: Connection, owner: UUID, filters: Filters, most: int) -> list[UUID]:
    """Return the ids of all documents that match the filters. Raises `BadInput` if there are more than `most`."""
    query = _unordered(b"id") + b" LIMIT %(most)s"
    rows = await _read(connection, owner, _values(filters, "newest", None), most + 1, query)
    if len(rows) > most:
        raise BadInput(f"More than {most:,} documents match. Use a narrower filter.")
    return [row["id"] for row in rows]


def _values(wanted: Filters, sort: Sort, cursor: str | None) -> Row:
    return {
        **{name: getattr(wanted, name) for name in _SAME_NAME},
        **_state(wanted),
        **_field(wanted.field),
        "id_part": wanted.id.lower() if wanted.id else None,
        "like": like_pattern(wanted.q) if wanted.q else None,
        "sender": like_pattern(wanted.sender) if wanted.sender else None,
        "versions": wanted.versions or wanted.trashed or wanted.id is not None,
        "sort": sort.removeprefix("-"),
        "descending": sort.startswith("-"),
        **_after(sort, cursor),
    }


async def count_documents(connection: Connection, owner: UUID, filters: Filters) -> int:
    """Count the documents that match the filters. If the only filter is a kind or language, a stored count is used."""
    for name in ("kind", "language"):
        value = getattr(filters, name)
        if value and filters == Filters(**{name: value}):
            values = {"owner": owner, "name": name, "value": value}
            return (await fetch_rows(connection, QUERIES.count_kept, values))[0]["number"]
    query = _unordered(b"count(*) AS number")
    return (await _read(connection, owner, _values(filters, "newest", None), None, query))[0]["number"]


def _unordered(columns: bytes) -> bytes:
    """Return a query that selects these columns of the matching documents, without a sort order or a limit.

    The database then neither sorts the documents nor computes other columns.
    """
    return b"SELECT " + columns + b" FROM (" + QUERIES.documents.rpartition(b"\nORDER BY ")[0] + b") AS found"


# Filters that are passed to the query unchanged.
_SAME_NAME = (
    *("tag", "collection", "trashed", "kind", "before", "after", "amount_min", "amount_max", "language"),
    *("size_min", "size_max", "import_id"),
)


def _field(wanted: str | None) -> Row:
    """Return the query values for the `field` filter. Names contain no colon, so the name ends at the first colon."""
    name, _, value = (wanted or "").partition(":")
    return {"field": name.strip() or None, "field_value": value.strip() or None}


def _state(wanted: Filters) -> Row:
    """Return the query values for the `state` filter, which accepts a status or the name of a library tab."""
    if wanted.state in {"pending", "completed", "failed"}:
        return {"status": wanted.state, "tab": wanted.tab}
    return {"status": wanted.status, "tab": wanted.state or wanted.tab}


async def find_documents(connection: Connection, owner: UUID, documents: Sequence[UUID]) -> list[Document]:
    """Return the documents with these ids, newest first. Missing documents and those in the trash are omitted."""
    values: Row = {"documents": list(documents), "trashed": False, "versions": True}
    return await _as_documents(connection, await _read(connection, owner, values, len(documents)))


async def show_document(connection: Connection, owner: UUID, document: UUID, *, trashed: bool = False) -> Document:
    """Read one document. If `trashed` is true, the document must be in the trash. Otherwise, it must not be."""
    rows = await _read(connection, owner, {"document": document, "trashed": trashed, "versions": True}, 1)
    if not rows:
        raise NotFound
    return (await _as_documents(connection, rows))[0]


async def list_parts(
    connection: Connection, owner: UUID, document: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[Document]:
    """Return the documents made from the files in an archive or the attachments of an email.

    They are in their original order. Documents in the trash are omitted.
    """
    await show_document(connection, owner, document)
    after = _number(cursor) if cursor else -1
    values = {"owner": owner, "document": document, "after": after, "most": limit + 1}
    rows = await fetch_rows(connection, QUERIES.parts, values)
    found = {one.id: one for one in await find_documents(connection, owner, [row["document_id"] for row in rows])}
    shown = [found[row["document_id"]] for row in rows[:limit] if row["document_id"] in found]
    return Page(shown, str(rows[limit - 1]["number"]) if len(rows) > limit else None)


async def list_chunks(
    connection: Connection, owner: UUID, document: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[Chunk]:
    """List the chunks of a document in text order."""
    source_url = (await show_document(connection, owner, document)).source_url
    after = _number(cursor) if cursor else -1
    values = {"document": document, "after": after, "most": limit + 1}
    rows = await fetch_rows(connection, QUERIES.chunks, values)
    chunks = [_as_chunk(row, source_url) for row in rows[:limit]]
    return Page(chunks, str(chunks[-1].index) if len(rows) > limit else None)


async def list_events(
    connection: Connection, owner: UUID, document: UUID, *, cursor: str | None = None, limit: int = MOST_LIMIT
) -> Page[EventView]:
    """List the events of a document, oldest first."""
    await show_document(connection, owner, document)
    values = {"document": document, "after": _number(cursor) if cursor else 0, "most": limit + 1}
    rows = await fetch_rows(connection, QUERIES.events_of, values)
    events = [EventView(**row) for row in rows[:limit]]
    return Page(events, str(events[-1].id) if len(rows) > limit else None)


async def _read(
    connection: Connection, owner: UUID, given: Row, most: int | None, query: bytes | None = None
) -> list[Row]:
    values = {name: given.get(name) for name in LIST_PARAMETERS}
    values |= {"sort": given.get("sort", "newest"), "descending": given.get("descending", False)}
    return await fetch_rows(
        connection,
        query or QUERIES.documents,
        values | {"owner": owner, "trashed": given["trashed"], "versions": given["versions"], "most": most},
    )


def _after(sort: Sort, cursor: str | None) -> Row:
    if cursor is None:
        return {}
    if sort in {"newest", "oldest"}:
        at, document = read_cursor(cursor)
        return {"after_at": at, "after_id": document}
    text, document = read_text_cursor(cursor)
    return {"after_text": text or None, "after_id": document}


def _behind(sort: Sort, row: Row) -> str:
    if sort in {"newest", "oldest"}:
        return make_cursor(row["created_at"], row["id"])
    return make_text_cursor(row["order_text"] or "", row["id"])


async def _as_documents(connection: Connection, rows: Sequence[Row]) -> list[Document]:
    """Convert database rows to documents. This takes six queries, regardless of the number of documents."""
    ids = [row["id"] for row in rows]
    tags: dict[UUID, list[str]] = defaultdict(list)
    for row in await fetch_rows(connection, QUERIES.tags_of, {"documents": ids}):
        tags[row["document_id"]].append(row["name"])
    jobs: dict[UUID, list[DocumentJob]] = defaultdict(list)
    for row in await fetch_rows(connection, QUERIES.jobs_of, {"documents": ids}):
        jobs[row["document_id"]].append(DocumentJob(row["id"], row["kind"], row["status"]))
    names: dict[UUID, list[str]] = defaultdict(list)
    for row in await fetch_rows(connection, QUERIES.other_names, {"documents": ids}):
        names[row["document_id"]].append(row["filename"])
    unsure = await fetch_rows(connection, QUERIES.unsure_pages, {"documents": ids})
    reasons = {row["id"]: _quality_reason(row["pages"], row["first"], row["reason"]) for row in unsure}
    fields: dict[UUID, dict[str, str]] = defaultdict(dict)
    for row in await fetch_rows(connection, FIELDS.fields_of, {"documents": ids}):
        fields[row["document_id"]][row["name"]] = row["value"]
    parents = {row["document_id"]: row for row in await fetch_rows(connection, QUERIES.parents, {"documents": ids})}
    return [
        _as_document(
            row | _part_of(parents.get(row["id"])) | {"fields": fields[row["id"]]},
            tags[row["id"]],
            jobs[row["id"]],
            names[row["id"]],
            reasons.get(row["id"]),
        )
        for row in rows
    ]


def _part_of(parent: Row | None) -> Row:
    return {"parent_id": parent["parent_id"], "part_name": parent["name"]} if parent else {}


def _as_document(
    row: Row, tags: list[str], jobs: list[DocumentJob], also_named: list[str], reason: str | None
) -> Document:
    rest = dict(row)
    code, message, cost = rest.pop("error_code"), rest.pop("error_message"), rest.pop("cost_usd")
    del rest["order_text"]
    rest["missing"] = [*rest["missing"], *(["connections"] if _is_uncompared(jobs) else [])]
    if code is None and rest["status"] == "failed":  # a cancelled job has no error
        code, message = "CANCELLED", "Stopped by you."
    return Document(
        tags=tags,
        jobs=jobs,
        also_named=also_named,
        error=JobError(code, message) if code else None,
        cost_usd=float(cost),
        will_be_resumed=rest["status"] == "completed"
        and any(job.kind in RESUMED and job.status == "dead_letter" for job in jobs),
        quality_reason=reason or rest["metadata"].get("reason"),
        will_be_improved=any(job.kind == IMPROVE_DOCUMENT and job.status in IMPROVING for job in jobs),
        **rest,
    )


def _quality_reason(pages: int, first: int, reason: str) -> str:
    """Explain why the text may be wrong: the number of doubtful pages, and what may be wrong with the first one."""
    return f"Page {first}: {reason}" if pages == 1 else f"{pages:,} pages may be wrong. Page {first}: {reason}"


def _is_uncompared(jobs: Sequence[DocumentJob]) -> bool:
    """Whether the document's newest comparison job failed. `jobs` must be in the order in which they were created."""
    newest = next((job.status for job in reversed(jobs) if job.kind == COMPARISON), "")
    return newest in {"failed", "dead_letter"}


def _as_chunk(row: Row, source_url: str | None) -> Chunk:
    rest = dict(row)
    concepts = [Concept(**one) for one in rest.pop("concepts")]
    boxes = [PageBox(page, (left, top, right, bottom)) for page, left, top, right, bottom in rest.pop("boxes")]
    return Chunk(concepts=concepts, url=moment_url(source_url, row["seconds"]), boxes=boxes, **rest)


def moment_url(source_url: str | None, seconds: float | None) -> str | None:
    """Return a link that opens the video at this second. Returns None if `seconds` is None or the source is not a
    video.
    """
    if seconds is None or not source_url or not source_url.startswith(VIDEO):
        return None
    return f"{source_url}&t={int(seconds)}s"


def like_pattern(text: str) -> str:
    """Return a pattern for SQL's LIKE that finds this text anywhere in a value."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _number(cursor: str) -> int:
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 18:  # noqa: PLR2004 - fits a bigint
        raise BadInput("Invalid cursor. Use the next_cursor of the previous page.")
    return int(cursor)
