"""Versions of a document, and what changed between two of them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from octavo.core.pages import Page
from octavo.library.versions import Comparison, Pick, Version, compare_documents, list_versions
from octavo.web.api import WHOLE, problems
from octavo.web.parts import PartsOf, Reading

router = APIRouter(prefix="/api/v1/documents/{document}", tags=["documents"])
Revision = Annotated[int | None, Query(ge=1, lt=1 << 31), WHOLE]


@router.get("/versions", responses=problems(401, 404, 422))
async def versions(parts: PartsOf, caller: Reading, document: UUID) -> Page[Version]:
    """All versions of it, newest first, whichever of them is named."""
    async with parts.database.connection() as connection:
        return Page(await list_versions(connection, caller.owner_id, document), None)


@router.get("/diff", responses=problems(401, 404, 409, 413, 422, 429))
async def diff(
    parts: PartsOf,
    caller: Reading,
    document: UUID,
    since: UUID | None = None,
    since_revision: Revision = None,
    revision: Revision = None,
) -> Comparison:
    """What changed up to this document: since another one, or since a revision of it.

    Without either, since the version before it or, of a first version, since the revision before.
    """
    old = Pick(since or document, since_revision) if since or since_revision else None
    async with parts.comparing.take():
        return await compare_documents(parts.database, parts.bucket, caller.owner_id, old, Pick(document, revision))
