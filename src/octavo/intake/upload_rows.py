"""Creates and lists the database rows of uploads, checks limits, and marks abandoned uploads as failed.

Also cleans up file names.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from octavo.core.errors import NotFound
from octavo.core.formatting import format_bytes
from octavo.core.http import Page, make_cursor, read_cursor
from octavo.core.settings import Settings
from octavo.core.types import JSON, new_id
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.intake.errors import (
    QuotaExceeded,
    TooManyUploads,
)
from octavo.records.documents import UploadState, UploadView
from octavo.records.jobs import JobError
from octavo.storage import Bucket

QUERIES = load_queries("uploads")

# After this time without data, an upload no longer counts as open.
CONCURRENT_SECONDS = 900


NO_DOCUMENT = "The document to replace was not found."


Policy = Literal["reuse", "new", "reject"]


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """The upload limits of one account. `stored_bytes` is None if storage is unlimited."""

    upload_bytes: int
    stored_bytes: int | None
    concurrent: int


def intake_limits(settings: Settings, *, anonymous: bool) -> IntakeLimits:
    """Return the upload limits from the settings. Visitors without an account have separate limits."""
    stored = settings.anonymous_stored_bytes if anonymous else settings.stored_bytes
    return IntakeLimits(
        upload_bytes=settings.upload_bytes,
        stored_bytes=stored or None,
        concurrent=settings.anonymous_concurrent_uploads if anonymous else settings.concurrent_uploads,
    )


@dataclass(frozen=True, slots=True)
class NewUpload:
    """The name, size and other properties of a file, as the client states them before it sends the file.

    They are not trusted. If `version_of` is set, the file is a new version of that document.
    """

    filename: str
    content_type: str = "application/octet-stream"
    bytes: int | None = None
    sha256: str | None = None
    duplicates: Policy = "reuse"
    source_type: str = "file"
    source_url: str | None = None
    given: dict[str, JSON] = field(default_factory=dict[str, JSON])
    version_of: UUID | None = None


# For clients that do not say whether a file is part of an import. The number of waiting files then decides.
AUTOMATIC = "auto"


def with_details(upload: NewUpload, **details: JSON) -> NewUpload:
    """Return a copy of the upload with additional details. Details without a value are left out."""
    return replace(upload, given=upload.given | {name: value for name, value in details.items() if value})


@dataclass(frozen=True, slots=True)
class Upload:
    """A row of the uploads table. The row may have changed in the database since it was read."""

    id: UUID
    owner_id: UUID
    document_id: UUID
    process_id: UUID
    state: str
    is_canonical: bool
    duplicates: Policy
    filename: str
    content_type: str
    source_type: str
    source_url: str | None
    given: dict[str, JSON]
    claimed_bytes: int | None
    claimed_sha256: str | None
    incoming_key: str | None = None
    object_key: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    version_of: UUID | None = None
    error_code: str | None = None
    error_message: str | None = None
    duplicate_of: UUID | None = None


def announced_upload(owner: UUID, new: NewUpload) -> Upload:
    return Upload(
        id=new_id(),
        owner_id=owner,
        document_id=new_id(),
        process_id=new_id(),
        state="pending",
        is_canonical=False,
        duplicates=new.duplicates,
        filename=clean_filename(new.filename),
        content_type=new.content_type,
        source_type=new.source_type,
        source_url=new.source_url,
        given=new.given,
        claimed_bytes=new.bytes,
        claimed_sha256=new.sha256,
        version_of=new.version_of,
    )


# Names -------------------------------------------------------------------------------------------------------------

MOST_CHARACTERS = 200
MOST_ENDING_CHARACTERS = 20
NAMELESS = "untitled"

# Control characters, direction marks, line breaks, and lone surrogates.
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_PLACEHOLDERS = "\ufffc\ufffd"
# Invisible characters that scripts and emoji need inside a name.
_JOINERS = "\u200c\u200d"
_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_EDGES = f".{_JOINERS}{_SPACES}"


def clean_filename(given: str) -> str:
    """Turn the last part of a path into a readable name: one line, not too long, and with its extension."""
    # Normalise after removing invisible characters, which may separate a letter from its accent.
    shown = unicodedata.normalize("NFC", "".join(filter(_is_shown, given)))
    name = shown.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].strip(_EDGES)
    return _shorten(name) or NAMELESS


def _is_shown(character: str) -> bool:
    if character in _JOINERS:
        return True
    return unicodedata.category(character) not in _UNSHOWN and not _is_placeholder(character)


def _is_placeholder(character: str) -> bool:
    number = ord(character)
    return character in _PLACEHOLDERS or number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF  # noqa: PLR2004


def _shorten(name: str) -> str:
    if len(name) <= MOST_CHARACTERS:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > MOST_ENDING_CHARACTERS:
        return name[:MOST_CHARACTERS].rstrip(_EDGES)
    return f"{stem[: MOST_CHARACTERS - len(ending) - 1].rstrip(_EDGES)}.{ending}"


# Rows --------------------------------------------------------------------------------------------------------------


async def insert_upload(connection: Connection, upload: Upload) -> None:
    names = (
        *("id", "owner_id", "document_id", "process_id", "duplicates", "filename", "content_type", "source_type"),
        *("source_url", "claimed_bytes", "claimed_sha256", "incoming_key", "object_key", "bytes", "sha256"),
        "version_of",
    )
    values = {name: getattr(upload, name) for name in names} | {"given": Jsonb(upload.given)}
    try:
        await connection.execute(QUERIES.insert_upload, values)
    except psycopg.errors.ForeignKeyViolation:  # the owner was merged into another in the meantime
        raise NotFound from None


async def check_version(connection: Connection, upload: Upload) -> None:
    """Raise `NotFound` if the document that the upload replaces does not exist.

    The check is repeated when the upload is finalised.
    """
    if upload.version_of is None:
        return
    values = {"owner": upload.owner_id, "document": upload.version_of}
    row = await (await connection.execute(QUERIES.may_have_version, values)).fetchone()
    if not row or not row[0]:
        raise NotFound(NO_DOCUMENT)


async def check_concurrency(connection: Connection, owner: UUID, limits: IntakeLimits) -> None:
    values = {"owner": owner, "seconds": CONCURRENT_SECONDS}
    row = await (await connection.execute(QUERIES.count_pending, values)).fetchone()
    if row and row[0] >= limits.concurrent:
        raise TooManyUploads(f"The limit is {limits.concurrent}.", retry_after_seconds=max(1.0, float(row[1])))


async def lock_usage(connection: Connection, owner: UUID) -> None:
    """Lock the storage usage of an account until the end of the transaction."""
    await connection.execute(QUERIES.lock_usage, {"owner": owner})


async def check_quota(connection: Connection, owner: UUID, most: int | None) -> None:
    """Raise `QuotaExceeded` if the files of the account use more than `most` bytes. None means unlimited.

    Call this after adding the data, in the same transaction.
    """
    if most is None:
        return
    row = await (await connection.execute(QUERIES.over_quota, {"owner": owner, "quota": most})).fetchone()
    if row and row[0]:
        raise over_quota(most)


def over_quota(most: int | None) -> QuotaExceeded:
    return QuotaExceeded(f"The quota is {format_bytes(most or 0)}.")


AT_ONCE = 500


async def sweep_abandoned(database: Database, bucket: Bucket, older_than_seconds: float) -> int:
    """Mark abandoned uploads as failed and delete their bytes. Returns the number of these uploads."""
    swept = 0
    while True:
        values = {"seconds": older_than_seconds, "most": AT_ONCE}
        async with database.transaction() as connection:
            rows = await (await connection.execute(QUERIES.abandoned, values)).fetchall()
        await bucket.delete(key for row in rows for key in row if key)
        swept += len(rows)
        if len(rows) < AT_ONCE:
            return swept


async def list_uploads(
    connection: Connection, owner: UUID, state: UploadState, *, cursor: str | None = None, limit: int
) -> Page[UploadView]:
    """Return one page of uploads in one state, newest first."""
    after_at, after_id = read_cursor(cursor) if cursor else (None, None)
    values = {"owner": owner, "state": state, "after_at": after_at, "after_id": after_id, "most": limit + 1}
    uploads = [_as_upload(row) for row in await fetch_rows(connection, QUERIES.list_uploads, values)]
    shown, last = uploads[:limit], uploads[limit - 1 : limit]
    more = make_cursor(last[0].created_at, last[0].id) if len(uploads) > limit else None
    return Page(shown, more)


def _as_upload(row: dict[str, Any]) -> UploadView:
    rest = dict(row)
    code, message = rest.pop("error_code"), rest.pop("error_message")
    return UploadView(error=JobError(code, message) if code else None, **rest)
