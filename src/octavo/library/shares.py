"""Shares: links that let others read one document or one collection, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from octavo.core.errors import BadInput, ErrorClass, NotAllowed, NotFound
from octavo.core.http import Page
from octavo.core.types import hash_token, new_id, new_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.library.documents import Filters, find_documents, list_documents
from octavo.owners import Caller
from octavo.owners.audit import record
from octavo.records.account import Share
from octavo.records.documents import Document

QUERIES = load_queries("shares")
DEFAULT_DAYS, MOST_DAYS = 7, 365
MOST_LISTED = 100


class ShareRefused(BadInput):
    """This link is invalid, expired or revoked. Ask the person who sent it for a new one."""

    code = "SHARE_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 404


@dataclass(frozen=True, slots=True)
class OpenShare:
    """The target of a link: a document or a collection. `collection` is the name of the collection.

    If `sign_in` is true, only people with an account can open the link.
    """

    id: UUID
    owner_id: UUID
    document_id: UUID | None
    collection: str | None
    sign_in: bool


async def share(
    connection: Connection,
    caller: Caller,
    *,
    document: UUID | None = None,
    collection: UUID | None = None,
    days: int = DEFAULT_DAYS,
    sign_in: bool = False,
) -> tuple[Share, str]:
    """Create a link to a document or a collection.

    Returns the link and its token. Only a hash of the token is stored.
    """
    _require_member(caller)
    if (document is None) == (collection is None):
        raise BadInput("Send the id of a document or of a collection.")
    token = new_token()
    values = {"id": new_id(), "owner": caller.owner_id, "document": document, "collection": collection, "days": days}
    values |= {"token_hash": hash_token(token), "sign_in": sign_in, "user": caller.user_id}
    rows = await fetch_rows(connection, QUERIES.insert_share, values)
    if not rows:
        raise NotFound
    kind = "document" if document else "collection"
    await record(connection, caller.owner_id, "share.add", rows[0]["id"], shows=kind, sign_in=str(sign_in).lower())
    (made,) = await _read(connection, caller, rows[0]["id"])
    return made, token


async def list_shares(connection: Connection, caller: Caller) -> list[Share]:
    _require_member(caller)
    return await _read(connection, caller, None)


async def revoke_share(connection: Connection, caller: Caller, share_id: UUID) -> None:
    """Delete a link. It stops working immediately."""
    _require_member(caller)
    if not await fetch_rows(connection, QUERIES.revoke_share, {"owner": caller.owner_id, "share": share_id}):
        raise NotFound
    await record(connection, caller.owner_id, "share.revoke", share_id)


async def open_share(connection: Connection, token: str) -> OpenShare:
    rows = await fetch_rows(connection, QUERIES.open_share, {"token_hash": hash_token(token)})
    if not rows:
        raise ShareRefused
    return OpenShare(**rows[0])


async def shared_documents(connection: Connection, opened: OpenShare, cursor: str | None = None) -> Page[Document]:
    """Return one page of the documents that a link gives access to."""
    if opened.document_id:
        return Page([await shared_document(connection, opened, opened.document_id)], None)
    wanted = Filters(collection=opened.collection)
    return await list_documents(connection, opened.owner_id, wanted, sort="title", cursor=cursor, limit=MOST_LISTED)


async def shared_document(connection: Connection, opened: OpenShare, document: UUID) -> Document:
    """Return a document that a link gives access to. Raises `NotFound` for all other documents."""
    if not await fetch_rows(connection, QUERIES.shows, {"share": opened.id, "document": document}):
        raise NotFound
    found = await find_documents(connection, opened.owner_id, [document])
    if not found:
        raise NotFound
    return found[0]


async def _read(connection: Connection, caller: Caller, share_id: UUID | None) -> list[Share]:
    values = {"owner": caller.owner_id, "share": share_id}
    return [Share(**row) for row in await fetch_rows(connection, QUERIES.list_shares, values)]


def _require_member(caller: Caller) -> None:
    if caller.is_anonymous or not caller.may_write:
        raise NotAllowed
