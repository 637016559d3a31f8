"""Reads the exports of other programs for `octavo import`: paperless-ngx, folders of files, and mbox files.

Each document becomes an export record without results, so it is processed like a new document. Its values from the
other program, such as title and tags, are treated as if a person had set them. The same document always gets the same
id, so that a second import finds the existing document.
"""

from __future__ import annotations

import json
import mailbox
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email import message_from_bytes, policy
from hashlib import sha256
from itertools import chain
from mimetypes import guess_type
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid5

from octavo.cli.local_files import FileSelection, add_path
from octavo.cli.transfers import DamagedExport, NotAnExport, safe_path
from octavo.core.formatting import format_bytes

NAMESPACE = UUID("5a7b9f0c-6f6e-5d1f-9a53-0c7a4f0ee002")
FILE_NAME = "__exported_file_name__"
MOST_MANIFEST = 1 << 30
MOST_LABEL = 200


@dataclass(frozen=True, slots=True)
class Known:
    """The values that another program has stored for a document."""

    title: str | None = None
    day: date | None = None
    sender: str | None = None
    kind: str | None = None
    collection: str | None = None
    tags: Sequence[str] = ()
    details: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to import: its file and its record. If the file is `temporary`, it is removed after the import."""

    path: Path
    record: dict[str, Any]
    temporary: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.temporary:
            self.path.unlink(missing_ok=True)


async def read_source(kind: str, path: Path, folders: str) -> AsyncIterator[NewDocument]:
    """Yield the documents of a paperless-ngx export, an mbox file or a folder of files."""
    readers = {"paperless": read_paperless, "mbox": read_mbox}
    found = readers[kind](path) if kind in readers else read_folder(path, folders)
    for one in found:
        yield one


def make_document(path: Path, name: str, identity: str, known: Known, *, temporary: bool = False) -> NewDocument:
    digest, size = hash_file(path)
    now = datetime.now(UTC).isoformat()
    facts = {"title": known.title, "date": known.day.isoformat() if known.day else None, "sender": known.sender}
    record = {
        "id": str(uuid5(NAMESPACE, f"{identity}:{digest}")),
        "filename": name,
        "content_type": guess_type(name)[0] or "application/octet-stream",
        "source_type": "other",
        "sha256": digest,
        "bytes": size,
        "status": "pending",
        "family_id": str(uuid5(NAMESPACE, f"{identity}:{digest}")),
        "created_at": now,
        "updated_at": now,
        "collection": known.collection,
        "metadata": dict(known.details),
        "edited": ["tags"] if known.tags else [],
        "tags": [{"name": one, "made_by": None} for one in dict.fromkeys(map(label, known.tags)) if one],
        "facts": [as_fact(name, value, now) for name, value in (facts | {"kind": known.kind}).items() if value],
        "files": [{"kind": "source", "sha256": digest, "bytes": size}],
    }
    return NewDocument(path, record, temporary)


def as_fact(name: str, value: str, now: str) -> dict[str, object]:
    normalized = value if name == "date" else value.lower()
    said = {"made_by": "person", "source": "person", "status": "confirmed", "confidence": 1, "made_at": now}
    return {"name": name, "value": value[:2000], "normalized": normalized[:2000], **said}


def label(text: str) -> str:
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())[:MOST_LABEL]


def hash_file(path: Path) -> tuple[str, int]:
    digest, size = sha256(), 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
            size += len(part)
    return digest.hexdigest(), size


# Folders -------------------------------------------------------------------------------------------------------------


def read_folder(folder: Path, folders: str) -> Iterator[NewDocument]:
    """Yield the files of a folder tree. Hidden files and links are skipped."""
    if not folder.is_dir():
        raise NotAnExport(f"{folder} is not a folder.")
    found = FileSelection()
    add_path(found, str(folder), set())
    for file in found.files:
        within = file.path.relative_to(folder)
        names = within.parts[:-1]
        known = Known(
            collection=label(" / ".join(names)) or None if folders == "collections" else None,
            tags=names if folders == "tags" else (),
        )
        if file.size:
            yield make_document(file.path, file.name, within.as_posix(), known)


# mbox ----------------------------------------------------------------------------------------------------------------


def read_mbox(path: Path) -> Iterator[NewDocument]:
    """Yield the emails of an mbox file. Each one is written to a temporary file."""
    if not path.is_file():
        raise NotAnExport(f"{path} is not a file.")
    box = mailbox.mbox(path, create=False)
    try:
        for key in box.iterkeys():
            body = box.get_bytes(key)
            if not body.strip():
                continue
            with tempfile.NamedTemporaryFile(prefix="octavo-", suffix=".eml", delete=False) as kept:
                kept.write(body)
            yield make_document(Path(kept.name), f"{subject_of(body)}.eml", "mbox", Known(), temporary=True)
    finally:
        box.close()


def subject_of(body: bytes) -> str:
    head = body[: 64 << 10]
    with suppress(ValueError, LookupError, IndexError, AttributeError):
        return (
            label(str(message_from_bytes(head, policy=policy.default)["subject"] or "")).replace("/", "_")[:80]
            or "Email"
        )
    return "Email"


# paperless-ngx -------------------------------------------------------------------------------------------------------


def read_paperless(folder: Path) -> Iterator[NewDocument]:
    """Yield the documents in a folder written by the `document_exporter` command of paperless-ngx."""
    main = read_manifest(folder / "manifest.json")
    split = (one for path in sorted(folder.rglob("*-manifest.json")) for one in read_manifest(path))
    rows = [*main, *split]
    names = {
        (row["model"], row["pk"]): str(row["fields"].get("name", ""))
        for row in rows
        if row["model"]
        in {"documents.tag", "documents.correspondent", "documents.documenttype", "documents.customfield"}
    }
    details: dict[Any, dict[str, str]] = {}
    for row in rows:
        if row["model"] in {"documents.note", "documents.customfieldinstance"}:
            add_detail(details.setdefault(row["fields"].get("document"), {}), row, names)
    for row in rows:
        if row["model"] == "documents.document" and FILE_NAME in row:
            yield read_document(folder, row, names, details.get(row["pk"], {}))


def read_manifest(path: Path) -> list[dict[str, Any]]:
    if path.stat().st_size > MOST_MANIFEST:
        raise DamagedExport(f"{path.name} is larger than {format_bytes(MOST_MANIFEST)}.")
    try:
        rows = json.loads(path.read_bytes())
        good = [
            row for row in rows if isinstance(row["model"], str) and isinstance(row["fields"], dict) and "pk" in row
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise NotAnExport(f"{path.name} was not written by paperless-ngx.") from None
    return good


def add_detail(details: dict[str, str], row: Mapping[str, Any], names: Mapping[tuple[str, Any], str]) -> None:
    fields = row["fields"]
    if row["model"] == "documents.note":
        details["note"] = "\n".join(filter(None, (details.get("note"), str(fields.get("note", ""))))).strip()[:5000]
        return
    values = (value for name, value in fields.items() if name.startswith("value_") and value is not None)
    name = label(names.get(("documents.customfield", fields.get("field")), ""))
    if name and (value := next(values, None)) is not None:
        details[name[:60]] = str(value)[:500]


def read_document(
    folder: Path, row: Mapping[str, Any], names: Mapping[tuple[str, Any], str], details: Mapping[str, str]
) -> NewDocument:
    fields = row["fields"]
    path = safe_path(folder, str(row[FILE_NAME]))
    if not path.is_file():
        raise DamagedExport(f"{row[FILE_NAME]} is missing.")
    day: date | None = None
    with suppress(ValueError):
        day = date.fromisoformat(str(fields.get("created", ""))[:10])
    numbers = chain([("archive serial number", fields.get("archive_serial_number"))], details.items())
    known = Known(
        title=label(str(fields.get("title") or "")) or None,
        day=day,
        sender=names.get(("documents.correspondent", fields.get("correspondent"))) or None,
        kind=names.get(("documents.documenttype", fields.get("document_type"))) or None,
        tags=[names.get(("documents.tag", one), "") for one in fields.get("tags") or ()],
        details={name: str(value) for name, value in numbers if value not in {None, ""}},
    )
    return make_document(path, str(fields.get("original_filename") or path.name), f"paperless:{row['pk']}", known)
