"""Analyses: which prompts to ask, how far it is as a grid of segments and prompts, and the answers with their pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from octavo.analyse import analyses, views
from octavo.analyse.analyses import AT_ONCE, MOST_AT_ONCE, Mode
from octavo.analyse.prompts import PromptWords, add_prompt, list_prompts
from octavo.analyse.views import Analysis, Cell, ResultView, SegmentView
from octavo.database import Connection
from octavo.library.documents import Filters, list_documents, show_document
from octavo.model.errors import BadInput
from octavo.web.pages import back_to, render
from octavo.web.pages.frame import Frame, FrameFor
from octavo.web.pages.wording import format_eta
from octavo.web.parts import PartsOf, Writing
from octavo.web.reading import render_window

router = APIRouter(include_in_schema=False, prefix="/analyses")
AnalysesFrame = Annotated[Frame, Depends(FrameFor("analyses"))]
Question = Annotated[str, Form(max_length=20_000)]
ROWS, DOCUMENTS, MOST_SEGMENTS, TITLE_CHARACTERS = 50, 100, 400, 60
# Glyph, word and tone of an analysis, and of a cell of the grid.
STATUS = {
    "created": ("clock", "Waiting", ""),
    "queued": ("clock", "Waiting", ""),
    "analyzing": ("play", "Processing", "run"),
    "completed": ("check", "Complete", "ok"),
    "error": ("error", "Failed", "bad"),
}
CELLS = {
    "planned": ("clock", "Planned", ""),
    "running": ("play", "Running", "run"),
    "retrying": ("again", "Tried again", "warn"),
    "paused": ("pause", "Paused", "warn"),
    "done": ("check", "Answered", "ok"),
    "split": ("more", "In parts", ""),
    "failed": ("error", "Failed", "bad"),
}


@dataclass(frozen=True, slots=True)
class GridRow:
    segment: SegmentView
    cells: list[Cell | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """A result with its answer as HTML that is safe to show."""

    result: ResultView
    html: str


@router.get("")
async def list_page(
    request: Request,
    parts: PartsOf,
    frame: AnalysesFrame,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> Response:
    async with parts.database.connection() as connection:
        page = await views.list_analyses(connection, frame.caller.owner_id, cursor=cursor, limit=ROWS)
    more = f"/analyses?cursor={page.next_cursor}" if page.next_cursor else None
    return render(request, "analyses.html", frame, page=page, more=more, statuses=STATUS)


@router.get("/new")
async def new_page(
    request: Request, parts: PartsOf, frame: AnalysesFrame, document: UUID | None = None, wrong: str = ""
) -> Response:
    owner = frame.caller.owner_id
    async with parts.database.connection() as connection:
        prompts = await list_prompts(connection, owner)
        if document:
            documents = [await show_document(connection, owner, document)]
        else:
            listed = await list_documents(connection, owner, Filters(status="completed"), limit=DOCUMENTS)
            documents = [one for one in listed.items if one.text_ready]
    chosen = {
        "prompts": prompts,
        "documents": documents,
        "at_once": AT_ONCE,
        "most": MOST_AT_ONCE,
        "wrong": wrong[:200],
    }
    return render(request, "analysis_new.html", frame, 200, **chosen)


@router.post("")
async def start(
    parts: PartsOf,
    caller: Writing,
    document: Annotated[UUID, Form()],
    prompt: Annotated[list[UUID] | None, Form(max_length=100)] = None,
    question: Question = "",
    mode: Annotated[Mode, Form()] = "parallel",
    at_once: Annotated[int, Form(ge=1, le=MOST_AT_ONCE)] = AT_ONCE,
) -> Response:
    """A question that is typed becomes a prompt, which is asked later only when it is chosen."""
    chosen, owner = list(prompt or ()), caller.owner_id
    async with parts.database.transaction() as connection:
        if asked := question.replace("\0", "").strip():
            title = " ".join(asked.split())[:TITLE_CHARACTERS]
            words = PromptWords(title=title, content=asked, active=False)
            chosen.append((await add_prompt(connection, owner, words)).id)
        if not chosen:
            return back_to(f"/analyses/new?document={document}&wrong=Choose+a+prompt%2C+or+ask+something.")
        made = await analyses.start_analysis(connection, owner, document, chosen, mode=mode, at_once=at_once)
    return back_to(f"/analyses/{made}")


@router.get("/{analysis}")
async def show_page(
    request: Request,
    parts: PartsOf,
    frame: AnalysesFrame,
    analysis: UUID,
    page: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
) -> Response:
    """`page` is shown as a picture beside the answers."""
    async with parts.database.connection() as connection:
        shown = await _load(connection, frame.caller.owner_id, analysis)
    return render(request, "analysis.html", frame, 200, **shown, page=page)


@router.get("/{analysis}/pieces")
async def show_pieces(request: Request, parts: PartsOf, frame: AnalysesFrame, analysis: UUID) -> Response:
    """What changes while it goes on."""
    async with parts.database.connection() as connection:
        shown = await _load(connection, frame.caller.owner_id, analysis)
    return render(request, "analysis_pieces.html", frame, 200, **shown)


@router.post("/{analysis}/cancel")
async def cancel(parts: PartsOf, caller: Writing, analysis: UUID) -> Response:
    async with parts.database.transaction() as connection:
        await analyses.stop_analysis(connection, caller.owner_id, analysis)
    return back_to(f"/analyses/{analysis}")


@router.post("/{analysis}/retry")
async def retry(parts: PartsOf, caller: Writing, analysis: UUID) -> Response:
    async with parts.database.transaction() as connection:
        await analyses.restart_analysis(connection, caller.owner_id, analysis)
    return back_to(f"/analyses/{analysis}")


@router.post("/{analysis}/rerun")
async def rerun(
    parts: PartsOf,
    caller: Writing,
    analysis: UUID,
    item: Annotated[UUID | None, Form()] = None,
    prompt: Annotated[UUID | None, Form()] = None,
) -> Response:
    if item is None and prompt is None:
        raise BadInput("Say what to ask again.")
    async with parts.database.transaction() as connection:
        await analyses.ask_anew(connection, caller.owner_id, analysis, prompt=prompt, item=item)
    return back_to(f"/analyses/{analysis}")


async def _load(connection: Connection, owner: UUID, analysis: UUID) -> dict[str, object]:
    shown = await views.show_analysis(connection, owner, analysis)
    results = await views.list_results(connection, owner, analysis)
    segments = await views.list_segments(connection, owner, analysis)
    cells = await views.list_cells(connection, owner, analysis)
    rows = [GridRow(one, [cells.get((one.id, r.prompt_id)) for r in results]) for one in segments[:MOST_SEGMENTS]]
    return {
        "analysis": shown,
        "answers": [Answer(one, _as_html(one.content)) for one in results],
        "rows": rows,
        "more_rows": len(segments) - len(rows),
        "eta": format_eta(shown.eta),
        "unit": _unit(shown),
        "going": STATUS[shown.status],
        "cells": CELLS,
    }


def _as_html(content: str | None) -> str:
    """Words of a model are a document's like any other."""
    return "".join(block.html for block in render_window(content)) if content else ""


def _unit(analysis: Analysis) -> str:
    return "passage" if analysis.unit == "passages" else "p."
