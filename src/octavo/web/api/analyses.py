"""Analyses: prompts asked of whole documents, however large, and how far that is."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from octavo.analyse import analyses, views
from octavo.analyse.analyses import AT_ONCE, MOST_AT_ONCE, Mode
from octavo.analyse.views import Analysis, ItemView, ResultView, SegmentView
from octavo.core.pages import Page
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.web.api import WHOLE, Cursor, Limit, problems
from octavo.web.parts import PartsOf, Reading, Writing

router = APIRouter(prefix="/api/v1/analyses", tags=["analyses"])

Prompts = Annotated[list[UUID], Field(min_length=1, max_length=100)]


class NewAnalysis(BaseModel):
    """Without `prompt_ids` all active prompts are asked.

    `mode`: in `sequential` a segment is asked when the one before it has answered, and is told what that said; in
    `parallel` it is told only if that has happened already. `at_once`: how many are asked at the same time.
    """

    model_config = ConfigDict(extra="forbid")

    document_id: UUID
    prompt_ids: Prompts | None = None
    mode: Mode = "parallel"
    at_once: Annotated[int, Field(ge=1, le=MOST_AT_ONCE), WHOLE] = AT_ONCE


class WantedPrompts(BaseModel):
    model_config = ConfigDict(extra="forbid")

    prompt_ids: Prompts | None = None


class AskAnew(BaseModel):
    """One item, all items of a prompt or, without either, everything."""

    model_config = ConfigDict(extra="forbid")

    prompt_id: UUID | None = None
    item_id: UUID | None = None


@router.get("", responses=problems(401, 422))
async def list_analyses(
    parts: PartsOf,
    caller: Reading,
    document_id: UUID | None = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Analysis]:
    """Your analyses, newest first."""
    async with parts.database.connection() as connection:
        return await views.list_analyses(connection, caller.owner_id, document=document_id, cursor=cursor, limit=limit)


@router.post("", status_code=202, responses=problems(400, 401, 403, 404, 409, 422))
async def start_analysis(parts: PartsOf, caller: Writing, wanted: NewAnalysis) -> Analysis:
    """Ask prompts of a document whose text is ready."""
    async with parts.database.transaction() as connection:
        analysis = await analyses.start_analysis(
            connection,
            caller.owner_id,
            wanted.document_id,
            wanted.prompt_ids,
            mode=wanted.mode,
            at_once=wanted.at_once,
        )
        return await views.show_analysis(connection, caller.owner_id, analysis)


@router.get("/{analysis}", responses=problems(401, 404, 422))
async def show_analysis(parts: PartsOf, caller: Reading, analysis: UUID) -> Analysis:
    """How far it is and how well it goes."""
    async with parts.database.connection() as connection:
        return await views.show_analysis(connection, caller.owner_id, analysis)


@router.delete("/{analysis}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete_analysis(parts: PartsOf, caller: Writing, analysis: UUID) -> None:
    """For good, with all answers. The document stays."""
    async with parts.database.transaction() as connection:
        await analyses.delete_analysis(connection, caller.owner_id, analysis)


@router.get("/{analysis}/segments", responses=problems(401, 404, 422))
async def list_segments(parts: PartsOf, caller: Reading, analysis: UUID) -> Page[SegmentView]:
    """Which pages were asked together."""
    async with parts.database.connection() as connection:
        return Page(await views.list_segments(connection, caller.owner_id, analysis), None)


@router.get("/{analysis}/items", responses=problems(401, 404, 422))
async def list_items(
    parts: PartsOf, caller: Reading, analysis: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[ItemView]:
    """What each segment said to each prompt, in the order in which they are asked."""
    async with parts.database.connection() as connection:
        return await views.list_items(connection, caller.owner_id, analysis, cursor=cursor, limit=limit)


@router.get("/{analysis}/results", responses=problems(401, 404, 422))
async def list_results(parts: PartsOf, caller: Reading, analysis: UUID) -> Page[ResultView]:
    """One answer for each prompt, with citations; those that are not `verified` were not found on their page."""
    async with parts.database.connection() as connection:
        return Page(await views.list_results(connection, caller.owner_id, analysis), None)


@router.put("/{analysis}/prompts", responses=problems(400, 401, 403, 404, 409, 422))
async def change_prompts(parts: PartsOf, caller: Writing, analysis: UUID, wanted: WantedPrompts) -> Analysis:
    """Ask these prompts from now on: only what is new, or says something else by now, is asked."""
    async with parts.database.transaction() as connection:
        await analyses.change_prompts(connection, caller.owner_id, analysis, wanted.prompt_ids)
        return await views.show_analysis(connection, caller.owner_id, analysis)


@router.post("/{analysis}/rerun", responses=problems(400, 401, 403, 404, 409, 422))
async def ask_anew(parts: PartsOf, caller: Writing, analysis: UUID, wanted: AskAnew | None = None) -> Analysis:
    """Forget what was answered, and ask again."""
    chosen = wanted or AskAnew()
    async with parts.database.transaction() as connection:
        await analyses.ask_anew(connection, caller.owner_id, analysis, prompt=chosen.prompt_id, item=chosen.item_id)
        return await views.show_analysis(connection, caller.owner_id, analysis)


@router.post("/{analysis}/cancel", responses=problems(401, 403, 404, 422))
async def stop_analysis(parts: PartsOf, caller: Writing, analysis: UUID) -> Analysis:
    """Stop at once; what is answered stays."""
    async with parts.database.transaction() as connection:
        await analyses.stop_analysis(connection, caller.owner_id, analysis)
        return await views.show_analysis(connection, caller.owner_id, analysis)


@router.post("/{analysis}/retry", responses=problems(401, 403, 404, 422))
async def restart_analysis(parts: PartsOf, caller: Writing, analysis: UUID) -> Analysis:
    """Go on with what failed, was stopped or abandoned."""
    async with parts.database.transaction() as connection:
        await analyses.restart_analysis(connection, caller.owner_id, analysis)
        return await views.show_analysis(connection, caller.owner_id, analysis)
