"""The list of an owner's uploads, such as the refused ones with their reasons."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from octavo.core.pagination import Page, make_cursor, read_cursor
from octavo.database import Connection, fetch_rows, load_queries
from octavo.records.documents import UploadState, UploadView
from octavo.records.jobs import JobError

QUERIES = load_queries("uploads")


async def list_uploads(
    connection: Connection, owner: UUID, state: UploadState, *, cursor: str | None = None, limit: int
) -> Page[UploadView]:
    """Uploads in one state, newest first."""
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
