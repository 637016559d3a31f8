"""Vectors for documents that have none of a model yet."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from octavo.describe.embedding import reembed
from octavo.web.api import problems
from octavo.web.parts import PartsOf, Writing

router = APIRouter(prefix="/api/v1", tags=["documents"])


class EmbedRequest(BaseModel):
    """`model` is `provider:model` or `local`; without one, that of the settings."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[str | None, Field(max_length=200, pattern=r"^(local|[a-z]+:[^|,=\s]+)$")] = None


class EmbedAnswer(BaseModel):
    """For how many documents a job was put in line."""

    queued: int


@router.post("/embeddings", status_code=202, responses=problems(400, 401, 403, 404, 422))
async def embeddings(parts: PartsOf, caller: Writing, wanted: EmbedRequest | None = None) -> EmbedAnswer:
    """Make the vectors that your documents lack, beside those that they have."""
    async with parts.database.transaction() as connection:
        model = wanted.model if wanted else None
        return EmbedAnswer(queued=await reembed(connection, caller.owner_id, parts.settings, model))
