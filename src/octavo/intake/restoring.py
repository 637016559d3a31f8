"""Restores documents and other records from an export, each in one transaction.

The id of a restored record is derived from the account and from its id in the export. A second import therefore finds
the record, and two accounts can import the same export. An export is not trusted: callers validate the records, files
are verified by checksum, and references resolve only to records of the same account.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

import psycopg
from psycopg.types.json import Jsonb

from octavo.connect.evidence import digest_of
from octavo.core.types import new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.intake.errors import InvalidExport, NotRestorable, UploadClosed
from octavo.intake.upload_rows import Upload
from octavo.library.collections import ensure_collection
from octavo.records.documents import KnownDocuments, Restored
from octavo.records.exports import (
    TEXT_FILES,
    AnalysisRecord,
    ChunkRecord,
    ConnectionRecord,
    DocumentImport,
    DocumentRecord,
    Origin,
    PartsRecord,
    RecordsImport,
    ThreadRecord,
)
from octavo.storage import Stored

QUERIES = load_queries("restoring")
PROCESSING = load_queries("processing")
DOCUMENTS = load_queries("documents")
BINARY_FILES = ("source", "unlocked", "page_raw", "transcript_raw", "image_jpeg")


def derived_id(owner: UUID, origin: UUID) -> UUID:
    """Return the id that an exported record gets in this account."""
    return uuid5(owner, origin.bytes.hex())


async def known_documents(connection: Connection, owner: UUID, origins: Sequence[Origin]) -> KnownDocuments:
    """Map the ids of exported documents to the account's own documents, including those in the trash."""
    given = [
        {"origin": str(one.id), "id": str(derived_id(owner, one.id)), "sha256": one.sha256, "copy": bool(one.copy_of)}
        for one in origins
    ]
    rows = await fetch_rows(connection, QUERIES.known_documents, {"owner": owner, "origins": Jsonb(given)})
    return KnownDocuments(
        {row["origin"]: row["document"] for row in rows if row["document"]},
        [row["origin"] for row in rows if row["trashed"]],
    )


# Documents -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A stored file of a restored document, with its kind, revision and content type."""

    kind: str
    revision: int
    content_type: str
    stored: Stored

    def as_json(self) -> dict[str, Any]:
        one = self.stored
        place = {"kind": self.kind, "revision": self.revision, "content_type": self.content_type}
        return {**place, "key": one.key, "bytes": one.bytes, "sha256": one.sha256}


def has_result(record: DocumentRecord) -> bool:
    """Whether the exported result of processing can be used. Otherwise, the document is processed again."""
    return record.status == "completed" and (record.text_ready or record.quality in {"stored_only", "empty"})


def check_texts(wanted: DocumentImport) -> dict[tuple[str, int], bytes]:
    """Verify the texts of a document with the checksums in its record. Returns the texts by kind and revision."""
    record, found = wanted.record, dict[tuple[str, int], bytes]()
    for file in record.files:
        if file.kind in TEXT_FILES:
            text = wanted.texts.get(f"{file.kind}-{file.revision}")
            body = text.encode("utf-8", "surrogatepass") if text is not None else b""
            if text is None or sha256(body).hexdigest() != file.sha256:
                raise NotRestorable(f"{file.kind} of revision {file.revision}")
            if not 0 < file.revision <= record.revision:
                raise InvalidExport("A text belongs to an unknown revision.")
            found[file.kind, file.revision] = body
    if record.text_ready and ("markdown", record.revision) not in found:
        raise NotRestorable("The text is missing.")
    return found


def check_layout(wanted: DocumentImport, text: str) -> None:
    """Raise `InvalidExport` for positions outside the text, and for repeated numbers of pages, figures or chunks."""
    layout, end = wanted.layout, len(text)
    inside = all(0 <= one.start <= one.end <= end for one in (*layout.pages, *layout.chunks))
    full = all(one.start < one.end for one in layout.chunks) and all(one.start <= end for one in layout.figures)
    numbers = (
        [one.number for one in layout.pages],
        [one.number for one in layout.figures],
        [one.index for one in layout.chunks],
    )
    if not inside or not full or any(len(set(one)) != len(one) for one in numbers):
        raise InvalidExport("A position in the layout is outside the text.")


# Parts of a record that are not columns of the table of documents.
OTHER_TABLES = {"facts", "highlights", "files", "tags", "fields", "title", "author"}


@dataclass(frozen=True, slots=True)
class Restoring:
    """Restores one document in the caller's transaction."""

    connection: Connection
    owner: UUID
    user: UUID | None
    record: DocumentRecord

    @property
    def document(self) -> UUID:
        return derived_id(self.owner, self.record.id)

    async def find(self) -> UUID | None:
        """Return the id of the account's document that corresponds to the exported one. Returns None if there is none.

        Also locks the content by its checksum until the transaction ends.
        """
        record = self.record
        await self.connection.execute(QUERIES.lock_content, {"owner": self.owner, "sha256": record.sha256})
        origin = Origin(id=record.id, sha256=record.sha256, copy_of=record.duplicate_of)
        return (await known_documents(self.connection, self.owner, [origin])).items.get(record.id)

    async def restore(
        self, source: Upload, files: Sequence[StoredFile], wanted: DocumentImport, import_key: UUID
    ) -> list[UUID]:
        """Create the document with its results. Returns the ids of its chunks.

        `source` is the upload of the original file. Raises `UploadClosed` if another request has used or removed this
        upload.
        """
        record, process = self.record, new_id()
        twin = await self._id(QUERIES.canonical, sha256=record.sha256)
        family = await self._family()
        await self.connection.execute(QUERIES.lock_family, {"family": family})
        values = {"id": self.document, "owner": self.owner, "process": process, "family": family, "duplicate_of": twin}
        import_id = await self._id(QUERIES.join_import, key=import_key)
        row = Jsonb(record.model_dump(mode="json", exclude=OTHER_TABLES))
        await self.connection.execute(QUERIES.insert_document, {**values, "record": row, "import_id": import_id})
        job = {"process": process, "owner": self.owner, "document": self.document, "revision": max(record.revision, 1)}
        await self.connection.execute(QUERIES.insert_job, {**job, "origin": record.id})
        kept = {"id": source.id, "document": self.document, "process": process, "canonical": twin is None}
        if not await fetch_rows(self.connection, QUERIES.keep_source, {**kept, "key": source.object_key}):
            raise UploadClosed
        await self._insert(QUERIES.insert_files, process=process, files=[one.as_json() for one in files])
        chunks = await self._layout(wanted)
        await self.edit(whole=True)
        return chunks

    async def prepare(self, upload: Upload) -> None:
        """Save the changes that `named_as` made to an upload whose document must be processed again."""
        names = ("document_id", "filename", "content_type", "source_type", "source_url", "duplicates")
        await self.connection.execute(
            QUERIES.prepare_upload, {"id": upload.id, **{name: getattr(upload, name) for name in names}}
        )

    async def edit(self, *, whole: bool) -> None:
        """Restore the facts, tags, collection, highlights and notes that people set.

        If `whole` is true, also restore all other facts and tags. If it is false, the document is processed again, and
        new ones are generated.
        """
        record = self.record
        facts = [one for one in record.facts if whole or one.made_by == "person"]
        tags = [one for one in record.tags if whole or one.made_by is None]
        await self._insert(QUERIES.insert_facts, facts=[one.model_dump(mode="json") for one in facts])
        highlights = [
            {**one.model_dump(mode="json"), "id": str(derived_id(self.owner, one.id)), **({} if whole else UNPLACED)}
            for one in record.highlights
        ]
        await self._insert(QUERIES.insert_highlights, user=self.user, highlights=highlights)
        await self._tag(tags)
        fields = {"owner": self.owner, "document": self.document, "fields": Jsonb(record.fields)}
        await self.connection.execute(QUERIES.set_fields, fields)
        collection = (
            await ensure_collection(self.connection, self.owner, record.collection) if record.collection else None
        )
        place = {"document": self.document, "collection": collection}
        if whole:
            await self._insert(QUERIES.insert_other_names, owner=self.owner, names=list(record.also_named))
            names = {"title": record.title, "author": record.author, "updated_at": record.updated_at}
            await self.connection.execute(QUERIES.set_names, place | names)
        else:
            await self.connection.execute(
                QUERIES.set_edits, place | {"edited": list(record.edited), "metadata": Jsonb(record.metadata)}
            )

    async def _family(self) -> UUID:
        """Return the document's family id.

        This is the family of its first version if the account has that version. Otherwise, it is a derived id.
        """
        origin = self.record.family_id
        for one in (derived_id(self.owner, origin), origin):
            if family := await self._id(QUERIES.family_of, document=one):
                return family
        return derived_id(self.owner, origin)

    async def _layout(self, wanted: DocumentImport) -> list[UUID]:
        layout, revision = wanted.layout, self.record.revision
        text = wanted.texts.get(f"markdown-{revision}", "")
        pages = [one.model_dump(mode="json") for one in layout.pages]
        figures = [one.model_dump(mode="json") for one in layout.figures]
        chunks = [_as_chunk(one, text) for one in layout.chunks]
        place = {"document": self.document, "revision": revision}
        await self.connection.execute(PROCESSING.insert_pages, place | {"pages": Jsonb(pages)})
        await self.connection.execute(PROCESSING.insert_figures, place | {"figures": Jsonb(figures)})
        await self.connection.execute(QUERIES.insert_chunks, place | {"chunks": Jsonb(chunks)})
        await self.connection.execute(QUERIES.insert_concepts, {"owner": self.owner, "chunks": Jsonb(chunks)})
        return [UUID(one["id"]) for one in chunks]

    async def _tag(self, tags: Sequence[Any]) -> None:
        names = [one.name for one in tags]
        values = {"owner": self.owner, "ids": [new_id() for _ in names], "names": names}
        await self.connection.execute(DOCUMENTS.ensure_tags, values)
        await self._insert(QUERIES.set_tags, owner=self.owner, tags=[one.model_dump(mode="json") for one in tags])

    async def _insert(self, query: bytes, **values: object) -> None:
        given = {name: Jsonb(value) if isinstance(value, list) else value for name, value in values.items()}
        await self.connection.execute(query, {"document": self.document, **given})

    async def _id(self, query: bytes, **values: object) -> UUID | None:
        rows = await fetch_rows(self.connection, query, {"owner": self.owner, **values})
        return rows[0]["id"] if rows else None


def named_as(upload: Upload, owner: UUID, record: DocumentRecord, undetected: Collection[str]) -> Upload:
    """Return the upload with the exported document's name, type and source, and an id derived from the exported id."""
    return replace(
        upload,
        document_id=derived_id(owner, record.id),
        filename=record.filename,
        content_type=record.content_type,
        source_type=record.source_type if record.source_type in undetected else "file",
        source_url=record.source_url,
        duplicates="new",
    )


UNPLACED = {"char_start": None, "char_end": None, "lost": False}


def _as_chunk(one: ChunkRecord, text: str) -> dict[str, Any]:
    """Build the database row of a chunk. Its text is cut from the Markdown, so the two always agree."""
    return {**one.model_dump(mode="json"), "id": str(new_id()), "content": text[one.start : one.end]}


# Everything else -----------------------------------------------------------------------------------------------------


async def restore_records(connection: Connection, owner: UUID, given: RecordsImport) -> Restored:
    """Restore the records that are not documents, such as collections and rules. Existing records are not changed."""
    total = sum(len(getattr(given, name)) for name in type(given).model_fields)
    added = 0
    simple = ("collections", "fields", "rules", "verdicts", "weights", "views", "prompts")
    try:
        for name in simple:
            added += len(await _restore(connection, owner, name, _derived(owner, getattr(given, name))))
        parts = await _as_parts(connection, owner, given.parts)
        added += len(set(await _restore(connection, owner, "parts", parts)))
        connections = await _as_connections(connection, owner, given.connections)
        added += len(await _restore(connection, owner, "connections", connections))
        added += len(await _restore(connection, owner, "threads", await _as_threads(connection, owner, given.threads)))
        analyses = await _as_analyses(connection, owner, given.analyses)
        added += len(await _restore(connection, owner, "analyses", analyses))
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        raise InvalidExport(error.diag.constraint_name) from None
    return Restored(added=added, skipped=total - added)


DETAILS = {
    "prompts": ("restore_prompt_versions",),
    "threads": ("restore_turns",),
    "analyses": ("restore_segments", "restore_results", "restore_items"),
}


async def _restore(connection: Connection, owner: UUID, kind: str, items: list[dict[str, Any]]) -> list[Any]:
    if not items:
        return []
    given = {"items": Jsonb(items)}
    rows = await (await connection.execute(getattr(QUERIES, f"restore_{kind}"), {"owner": owner, **given})).fetchall()
    added = [row[0] for row in rows]
    for detail in DETAILS.get(kind, ()) if added else ():
        await connection.execute(getattr(QUERIES, detail), {"added": added, **given})
    return added


def _derived(owner: UUID, records: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the records as JSON, with new ids. `origin` is the id in the export."""
    found: list[dict[str, Any]] = []
    for one in records:
        row = one.model_dump(mode="json")
        if isinstance(getattr(one, "id", None), UUID):
            row |= {"origin": row["id"], "id": str(derived_id(owner, one.id))}
        found.append(row)
    return found


async def _as_parts(connection: Connection, owner: UUID, records: Sequence[PartsRecord]) -> list[dict[str, Any]]:
    origins = [Origin(id=one.id, sha256=one.sha256) for one in records]
    origins += [Origin(id=part.document_id, sha256=part.sha256) for one in records for part in one.parts]
    known = (await known_documents(connection, owner, origins)).items
    return [
        {
            "parent": str(known[one.id]),
            "number": part.number,
            "name": part.name,
            "document": str(known[part.document_id]),
        }
        for one in records
        for part in one.parts
        if one.id in known and part.document_id in known
    ]


async def _as_connections(
    connection: Connection, owner: UUID, records: Sequence[ConnectionRecord]
) -> list[dict[str, Any]]:
    sides = [side for one in records for side in (one.source, one.target)]
    origins = [Origin(id=one.document_id, sha256=one.sha256) for one in sides]
    known = (await known_documents(connection, owner, origins)).items
    found: list[dict[str, Any]] = []
    for one, row in zip(records, _derived(owner, records), strict=True):
        if {one.source.document_id, one.target.document_id} <= known.keys():
            row["source"]["document_id"] = str(known[one.source.document_id])
            row["target"]["document_id"] = str(known[one.target.document_id])
            found.append({**row, "digest": digest_of(one.engine, (one.source.quote, one.target.quote)).hex()})
    return found


async def _as_threads(connection: Connection, owner: UUID, records: Sequence[ThreadRecord]) -> list[dict[str, Any]]:
    origins = [Origin(id=one, sha256=digest) for thread in records for one, digest in thread.documents.items()]
    known = {str(one): str(found) for one, found in (await known_documents(connection, owner, origins)).items.items()}
    rows = _derived(owner, records)
    for row in rows:
        row["scope"] = {name: value for name, value in row["scope"].items() if value}
        if chosen := row["scope"].get("document_ids"):
            row["scope"]["document_ids"] = [known.get(one) or str(derived_id(owner, UUID(one))) for one in chosen]
        for turn in row["turns"]:
            turn["id"] = str(derived_id(owner, UUID(turn["id"])))
            for cited in turn["citations"]:
                cited["document_id"] = known.get(cited["document_id"]) or str(
                    derived_id(owner, UUID(cited["document_id"]))
                )
    return rows


async def _as_analyses(connection: Connection, owner: UUID, records: Sequence[AnalysisRecord]) -> list[dict[str, Any]]:
    """Return the analyses whose documents exist. Analyses that were running when exported are marked as stopped."""
    origins = [Origin(id=one.document_id, sha256=one.sha256) for one in records]
    known = (await known_documents(connection, owner, origins)).items
    found: list[dict[str, Any]] = []
    for one, row in zip(records, _derived(owner, records), strict=True):
        if one.document_id not in known:
            continue
        row["document_id"] = str(known[one.document_id])
        if one.status in {"created", "queued", "analyzing"}:
            row |= {"status": "stopped", "error_code": None, "error_message": None}
        for part in (*row["segments"], *row["items"]):
            for name in ("id", "parent_id", "segment_id"):
                if part.get(name):
                    part[name] = str(derived_id(owner, UUID(part[name])))
        for part in (*row["results"], *row["items"]):
            part["prompt_id"] = await _prompt_id(owner, part["prompt_id"])
            part["status"] = "pending" if part["status"] == "running" else part["status"]
        found.append(row)
    return found


async def _prompt_id(owner: UUID, origin: str) -> str:
    """Return the id of a prompt in this account. Built-in prompts have the same id everywhere."""
    return origin if origin.startswith(BUILT_IN) else str(derived_id(owner, UUID(origin)))


BUILT_IN = "00000000-0000-7000-8000-"


# Conversions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConversionFiles:
    """The files of a restored conversion, and how many days they are kept.

    `result` is the XML. `source` is the upload with the source file. It is None if the conversion has a document.
    """

    result: Stored
    source: UUID | None
    result_days: int
    source_days: int


def _identify_conversion(owner: UUID, record: Mapping[str, Any]) -> dict[str, Any]:
    origin = UUID(record["id"])
    ids = {"id": derived_id(owner, origin), "owner": owner, "origin": origin}
    mapping_hash = sha256(record["mapping_text"].encode()).hexdigest()
    return ids | {name: record[name] for name in ("sha256", "mapping", "bytes")} | {"mapping_sha256": mapping_hash}


async def has_conversion(connection: Connection, owner: UUID, record: Mapping[str, Any]) -> bool:
    """Whether the account has this conversion, or another conversion of the same file with the same mapping."""
    return bool(await fetch_rows(connection, QUERIES.known_conversion, _identify_conversion(owner, record)))


async def restore_conversion(
    connection: Connection, owner: UUID, record: Mapping[str, Any], files: ConversionFiles
) -> bool:
    """Restore a conversion. Returns False if it exists already.

    The caller must have checked the values and regenerated the XML.
    """
    await connection.execute(QUERIES.lock_content, {"owner": owner, "sha256": record["sha256"]})
    if await has_conversion(connection, owner, record):
        return False
    identity = _identify_conversion(owner, record)
    made = identity["id"]
    document = None
    if record["document_id"]:
        found = Origin(id=UUID(record["document_id"]), sha256=record["sha256"])
        document = (await known_documents(connection, owner, [found])).items.get(found.id)
    result = files.result
    file = {"key": result.key, "file_bytes": result.bytes, "file_sha256": result.sha256}
    rest = {"document": document, "record": Jsonb(dict(record)), "result_days": files.result_days}
    await connection.execute(QUERIES.restore_conversion, identity | rest | file)
    values = {"id": made, "key": result.key, "revisions": Jsonb(record["revisions"])}
    await connection.execute(QUERIES.restore_revisions, values)
    if files.source and document is None:
        values = {"id": made, "owner": owner, "upload": files.source, "source_days": files.source_days}
        if not await fetch_rows(connection, QUERIES.keep_uploaded_source, values):
            raise UploadClosed
    await connection.execute(QUERIES.keep_conversion_source, {"id": made})
    return True


async def forget_uploads(connection: Connection, owner: UUID, uploads: Sequence[UUID]) -> list[str]:
    """Remove uploads that did not become a document.

    Returns the storage keys of their files, which the caller must delete after the commit.
    """
    rows = await fetch_rows(connection, QUERIES.forget_uploads, {"owner": owner, "ids": list(uploads)})
    return [row["object_key"] for row in rows if row["object_key"]]
