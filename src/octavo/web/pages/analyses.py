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
from octavo.core.errors import BadInput
from octavo.database import Connection
from octavo.library.documents import Filters, list_documents, show_document
from octavo.web.pages import back_to, render
from octavo.web.pages.actions import done
from octavo.web.pages.analysis_side import Opened, open_side
from octavo.web.pages.confirm import Question as Sure
from octavo.web.pages.confirm import ask
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


@dataclass(frozen=True, slots=True)
class Shown:
    """An analysis with all that changes while it goes on."""

    analysis: Analysis
    results: list[ResultView]
    rows: list[GridRow]
    more_rows: int

    def values(self) -> dict[str, object]:
        """As templates take it."""
        return {
            "analysis": self.analysis,
            "answers": [Answer(one, _as_html(one.content)) for one in self.results],
            "rows": self.rows,
            "more_rows": self.more_rows,
            "eta": format_eta(self.analysis.eta),
            "unit": _unit(self.analysis),
            "going": STATUS[self.analysis.status],
            "cells": CELLS,
        }


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
    item: UUID | None = None,
    prompt: UUID | None = None,
    cited: Annotated[int | None, Query(ge=0, le=100_000)] = None,
) -> Response:
    """`item` is opened beside the answers, or the page that a citation of the item or of the prompt names."""
    owner = frame.caller.owner_id
    async with parts.database.connection() as connection:
        shown = await _load(connection, owner, analysis)
    opened = Opened(page, item, prompt, cited)
    side = await open_side(parts, owner, analysis, shown.analysis.document_id, shown.results, opened)
    answer = _as_html(side.item.content) if side and side.item else ""
    return render(request, "analysis.html", frame, 200, **shown.values(), side=side, answer=answer)


@router.get("/{analysis}/pieces")
async def show_pieces(request: Request, parts: PartsOf, frame: AnalysesFrame, analysis: UUID) -> Response:
    """What changes while it goes on."""
    async with parts.database.connection() as connection:
        shown = await _load(connection, frame.caller.owner_id, analysis)
    return render(request, "analysis_pieces.html", frame, 200, **shown.values())


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


@router.get("/{analysis}/rerun")
async def ask_to_rerun(request: Request, parts: PartsOf, frame: AnalysesFrame, analysis: UUID) -> Response:
    async with parts.database.connection() as connection:
        shown = await views.show_analysis(connection, frame.caller.owner_id, analysis)
    question = Sure(
        title=f"Ask all {shown.items.total:,} again?",
        text="What was answered is forgotten, and every part is asked anew. What models take for it is paid again.",
        action=f"/analyses/{analysis}/rerun",
        verb="Ask all again",
        keep=f"/analyses/{analysis}",
        fields=[("everything", "true")],
    )
    return ask(request, question, frame)


@router.post("/{analysis}/rerun")
async def rerun(
    request: Request,
    parts: PartsOf,
    caller: Writing,
    analysis: UUID,
    item: Annotated[UUID | None, Form()] = None,
    prompt: Annotated[UUID | None, Form()] = None,
    *,
    everything: Annotated[bool, Form()] = False,
) -> Response:
    if item is None and prompt is None and not everything:
        raise BadInput("Say what to ask again.")
    async with parts.database.transaction() as connection:
        await analyses.ask_anew(connection, caller.owner_id, analysis, prompt=prompt, item=item)
    return done(request, f"/analyses/{analysis}")


async def _load(connection: Connection, owner: UUID, analysis: UUID) -> Shown:
    shown = await views.show_analysis(connection, owner, analysis)
    results = await views.list_results(connection, owner, analysis)
    segments = await views.list_segments(connection, owner, analysis)
    cells = await views.list_cells(connection, owner, analysis)
    rows = [GridRow(one, [cells.get((one.id, r.prompt_id)) for r in results]) for one in segments[:MOST_SEGMENTS]]
    return Shown(shown, results, rows, len(segments) - len(rows))


def _as_html(content: str | None) -> str:
    """Words of a model are a document's like any other."""
    return "".join(block.html for block in render_window(content)) if content else ""


def _unit(analysis: Analysis) -> str:
    return "passage" if analysis.unit == "passages" else "p."
