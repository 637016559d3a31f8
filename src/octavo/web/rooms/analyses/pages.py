"""Pages for analyses: a form to start one, a grid that shows the progress of each prompt on each range of pages, and
the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from octavo.ai.calls import LOCAL
from octavo.ai.estimates import estimate_document
from octavo.ai.models import uses_remote_model
from octavo.analyse import analyses, details
from octavo.analyse.analyses import AT_ONCE, MOST_AT_ONCE, Mode
from octavo.analyse.details import Cell, SegmentView
from octavo.analyse.progress import OFFLINE, describe_progress
from octavo.analyse.prompts import PromptFields, add_prompt, list_prompts
from octavo.core.errors import BadInput, NotFound, OctavoError
from octavo.core.formatting import count_of, format_eta, format_number, format_span
from octavo.core.texts import gettext as _
from octavo.core.texts import mark
from octavo.database import Connection
from octavo.deliver.subscribers import notify_requester
from octavo.extract.extracted import QuoteOnPage
from octavo.library.bulk import Act, BatchResult, BulkAction
from octavo.library.documents import Filters, count_documents, list_documents, show_document
from octavo.library.files import is_pictured
from octavo.records.analyses import Analysis, CitationView, ItemView, Prompt, ResultView
from octavo.web.context.callers import WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.markdown.render import render_window
from octavo.web.shell.forms import Question as Confirmation
from octavo.web.shell.forms import Selection, ask, done, read_selected
from octavo.web.shell.frame import Frame, FrameFor, back_to, render

router = APIRouter(include_in_schema=False, prefix="/analyses")
AnalysesFrame = Annotated[Frame, Depends(FrameFor("analyses"))]
Question = Annotated[str, Form(max_length=20_000)]
ROWS, DOCUMENTS, MOST_SEGMENTS, TITLE_CHARACTERS = 50, 100, 400, 60
# Icon, label and tone of an analysis, and of a cell of the grid.
STATUS = {
    "created": ("clock", mark("Waiting"), ""),
    "queued": ("clock", mark("Waiting"), ""),
    "analyzing": ("play", mark("Processing"), "run"),
    "completed": ("check", mark("Complete"), "ok"),
    "error": ("error", mark("Failed"), "bad"),
    "stopped": ("pause", mark("Stopped by you"), ""),
}
GAPS = ("warning", mark("Complete with gaps"), "warn")
PASSAGES_ONLY = ("info", OFFLINE, "warn")
CELLS = {
    "planned": ("clock", mark("Planned"), ""),
    "running": ("play", mark("Running"), "run"),
    "retrying": ("again", mark("Retrying"), "warn"),
    "paused": ("pause", mark("Paused"), "warn"),
    "done": ("check", mark("Answered"), "ok"),
    "offline": ("list", mark("Passages only"), ""),
    "split": ("more", mark("Split"), ""),
    "failed": ("error", mark("Failed"), "bad"),
}


@dataclass(frozen=True, slots=True)
class GridRow:
    segment: SegmentView
    cells: list[Cell | None]


@dataclass(frozen=True, slots=True)
class Part:
    first: int
    last: int
    by: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The combined answer to a prompt, with its text as safe HTML.

    If different models answered for different ranges of pages, `parts` names the model of each range.
    """

    result: ResultView
    html: str

    @property
    def answered_by(self) -> str:
        """A sentence that names the models that answered.

        If a different model combined the answers, the sentence names this model, too.
        """
        names = [_name(one) for one in self.result.answered_by]
        if len(names) > 1:
            return _(
                "Answered by %(others)s and %(name)s; combined by %(name2)s",
                others=", ".join(names[:-1]),
                name=names[-1],
                name2=_name(self.result.made_by),
            )
        if not names:
            return ""
        same = self.result.made_by in self.result.answered_by
        return _("Answered by %(name)s", name=names[0]) + (
            "" if same else _("; combined by %(name)s", name=_name(self.result.made_by))
        )

    @property
    def parts(self) -> list[Part]:
        found = [Part(one.first, one.last, _name(one.answered_by)) for one in self.result.parts]
        found += [Part(one.first, one.last, _("no answer (%(code)s)", code=one.error.code)) for one in self.result.gaps]
        differ = len({one.by for one in found}) > 1
        return sorted(found, key=lambda one: one.first) if differ and self.result.content else []


@dataclass(frozen=True, slots=True)
class AnalysisView:
    """An analysis with all values that change on the page while it runs."""

    analysis: Analysis
    results: list[ResultView]
    rows: list[GridRow]
    more_rows: int

    def values(self) -> dict[str, object]:
        """Return the values for the page template."""
        return {
            "analysis": self.analysis,
            "answers": [Answer(one, _as_html(one.content)) for one in self.results],
            "rows": self.rows,
            "more_rows": self.more_rows,
            "eta": format_eta(self.analysis.eta),
            "unit": _unit(self.analysis),
            "going": status_of(self.analysis),
            "phase": describe_progress(self.analysis),
            "elapsed": format_span(timedelta(seconds=self.analysis.elapsed_seconds)),
            "cells": CELLS,
        }


def status_of(analysis: Analysis) -> tuple[str, str, str]:
    """Return the icon, label and colour for the status of an analysis."""
    if analysis.status != "completed":
        return STATUS[analysis.status]
    return GAPS if analysis.error else PASSAGES_ONLY if analysis.offline else STATUS["completed"]


@router.get("")
async def list_page(
    request: Request,
    services: ServicesOf,
    frame: AnalysesFrame,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> Response:
    async with services.database.connection() as connection:
        page = await details.list_analyses(connection, frame.caller.owner_id, cursor=cursor, limit=ROWS)
    more = f"/analyses?cursor={page.next_cursor}" if page.next_cursor else None
    return render(request, "analyses.html", frame, page=page, more=more, status_of=status_of)


@router.get("/new")
async def new_page(
    request: Request, services: ServicesOf, frame: AnalysesFrame, document: UUID | None = None, wrong: str = ""
) -> Response:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        if document:
            documents = [await show_document(connection, owner, document)]
        else:
            listed = await list_documents(connection, owner, Filters(status="completed"), limit=DOCUMENTS)
            documents = [one for one in listed.items if one.text_ready]
        prompts = await list_prompts(connection, owner)
    prices = {one.id: estimate_document(services.settings, frame.caller, one).analysis.usd for one in documents}
    return _choose(request, services, frame, prompts, wrong[:200], documents=documents, prices=prices)


@router.post("/new")
async def choose_prompts(request: Request, services: ServicesOf, frame: AnalysesFrame) -> Response:
    """Show the page for choosing the prompts to run on the documents that were selected in the library."""
    return await _choose_for_many(request, services, frame, read_selected(await _sent(request)))


async def _sent(request: Request) -> list[tuple[str, str]]:
    return [(name, value) for name, value in (await request.form()).multi_items() if isinstance(value, str)]


async def _choose_for_many(
    request: Request, services: Services, frame: Frame, wanted: Selection, wrong: str = ""
) -> Response:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        prompts = await list_prompts(connection, owner)
        count = len(wanted.ids)
        if wanted.filters:
            count = await count_documents(connection, owner, wanted.filters)
    fields = [*wanted.fields, *([("all", "true")] if wanted.filters else [])]
    return _choose(request, services, frame, prompts, wrong, fields=fields, count=count)


def _choose(
    request: Request, services: Services, frame: Frame, prompts: Sequence[Prompt], wrong: str, **which: object
) -> Response:
    given = {"prompts": prompts, "at_once": AT_ONCE, "most": MOST_AT_ONCE, "wrong": wrong}
    return render(request, "analysis_new.html", frame, 200, offline=not has_model(services, frame), **given, **which)


@router.post("")
async def start(  # noqa: PLR0917 - fields of a form
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: AnalysesFrame,
    document: Annotated[UUID | None, Form()] = None,
    prompt: Annotated[list[UUID] | None, Form(max_length=100)] = None,
    question: Question = "",
    mode: Annotated[Mode, Form()] = "parallel",
    at_once: Annotated[int, Form(ge=1, le=MOST_AT_ONCE)] = AT_ONCE,
) -> Response:
    """Start an analysis of one document, or of each document that was selected on the library page.

    A question typed into the form becomes an inactive prompt, which runs again only when selected.
    """
    chosen, owner = list(prompt or ()), caller.owner_id
    wanted = read_selected(await _sent(request)) if document is None else None
    if not chosen and not question.replace("\0", "").strip():
        if wanted is None:
            return back_to(f"/analyses/new?document={document}&wrong=Choose+a+prompt+or+write+your+own.")
        return await _choose_for_many(request, services, frame, wanted, _("Choose a prompt or write your own."))
    async with services.database.transaction() as connection:
        if asked := question.replace("\0", "").strip():
            title = " ".join(asked.split())[:TITLE_CHARACTERS]
            words = PromptFields(title=title, content=asked, active=False)
            chosen.append((await add_prompt(connection, owner, words)).id)
        if document is not None:
            made = await analyses.start_analysis(connection, owner, document, chosen, mode=mode, at_once=at_once)
            if services.settings.smtp_url:
                await notify_requester(connection, caller, made)
            return back_to(f"/analyses/{made}")
    if wanted:
        await _start_many(services, owner, wanted, partial(_start_batch, owner, chosen, mode, at_once))
    return back_to("/analyses")


async def _start_many(services: Services, owner: UUID, wanted: Selection, act: Act) -> None:
    action = BulkAction(services.database, services.bucket, owner, act, skips=wanted.by_filter)
    result = await action.run(await wanted.select(services.database, owner))
    if result.error:
        raise result.error


async def _start_batch(
    owner: UUID,
    prompts: list[UUID],
    mode: Mode,
    at_once: int,
    connection: Connection,
    documents: Sequence[UUID],
) -> BatchResult:
    made = await analyses.start_analyses(connection, owner, documents, prompts, mode=mode, at_once=at_once)
    return BatchResult(len(made))


@router.get("/{analysis}")
async def show_page(
    request: Request,
    services: ServicesOf,
    frame: AnalysesFrame,
    analysis: UUID,
    page: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
    item: UUID | None = None,
    prompt: UUID | None = None,
    cited: Annotated[int | None, Query(ge=0, le=100_000)] = None,
) -> Response:
    """Show an analysis. Query parameters can name an item, a page or a citation to open next to the answers."""
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        shown = await _load(connection, owner, analysis)
    opened = SideQuery(page, item, prompt, cited)
    side = await open_side(services, owner, analysis, shown.analysis.document_id, shown.results, opened)
    answer = _as_html(side.item.content) if side and side.item else ""
    values = {**shown.values(), "has_model": has_model(services, frame), "side": side, "answer": answer}
    return render(request, "analysis.html", frame, 200, **values)


@router.get("/{analysis}/pieces")
async def show_pieces(request: Request, services: ServicesOf, frame: AnalysesFrame, analysis: UUID) -> Response:
    """Return the sections of the page that change while the analysis runs."""
    async with services.database.connection() as connection:
        shown = await _load(connection, frame.caller.owner_id, analysis)
    return render(request, "analysis_pieces.html", frame, 200, **shown.values(), has_model=has_model(services, frame))


def has_model(services: Services, frame: Frame) -> bool:
    """Whether a remote model answers the prompts of this caller.

    Visitors without an account can use a remote model only if the settings allow it.
    """
    is_offline = frame.caller.is_anonymous and not services.settings.anonymous_models
    return not is_offline and uses_remote_model(services.settings, "answer_segment")


@router.post("/{analysis}/cancel")
@router.post("/{analysis}/stop")
async def stop(services: ServicesOf, caller: WriteCaller, analysis: UUID) -> Response:
    async with services.database.transaction() as connection:
        await analyses.stop_analysis(connection, caller.owner_id, analysis)
    return back_to(f"/analyses/{analysis}")


@router.post("/{analysis}/retry")
async def retry(services: ServicesOf, caller: WriteCaller, analysis: UUID) -> Response:
    async with services.database.transaction() as connection:
        await analyses.restart_analysis(connection, caller.owner_id, analysis)
    return back_to(f"/analyses/{analysis}")


@router.get("/{analysis}/rerun")
async def ask_to_rerun(request: Request, services: ServicesOf, frame: AnalysesFrame, analysis: UUID) -> Response:
    async with services.database.connection() as connection:
        shown = await details.show_analysis(connection, frame.caller.owner_id, analysis)
    question = Confirmation(
        title=_("Run all %(total)s again?", total=format_number(shown.items.total)),
        text=_("All answers are deleted, and every part is run again. You pay for the model calls again."),
        action=f"/analyses/{analysis}/rerun",
        verb=_("Run all again"),
        keep=f"/analyses/{analysis}",
        fields=[("everything", "true")],
    )
    return ask(request, question, frame)


@router.get("/{analysis}/prompts")
async def prompts_page(
    request: Request, services: ServicesOf, frame: AnalysesFrame, analysis: UUID, wrong: str = ""
) -> Response:
    """Show the page for adding prompts to an analysis or removing them."""
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        shown = await details.show_analysis(connection, owner, analysis)
        results = await details.list_results(connection, owner, analysis)
        prompts = await list_prompts(connection, owner)
    chosen = {one.prompt_id for one in results}
    values = {"analysis": shown, "prompts": prompts, "chosen": chosen, "wrong": wrong[:200]}
    return render(request, "analysis_prompts.html", frame, 200, **values, offline=not has_model(services, frame))


@router.post("/{analysis}/prompts")
async def change_prompts(
    services: ServicesOf,
    caller: WriteCaller,
    analysis: UUID,
    prompt: Annotated[list[UUID] | None, Form(max_length=100)] = None,
) -> Response:
    if not prompt:
        return back_to(f"/analyses/{analysis}/prompts?wrong=Choose+at+least+one+prompt.")
    try:
        async with services.database.transaction() as connection:
            await analyses.change_prompts(connection, caller.owner_id, analysis, prompt)
    except BadInput as error:
        return back_to(f"/analyses/{analysis}/prompts?{urlencode({'wrong': error.line})}")
    return back_to(f"/analyses/{analysis}")


@router.get("/{analysis}/delete")
async def ask_to_delete(request: Request, services: ServicesOf, frame: AnalysesFrame, analysis: UUID) -> Response:
    async with services.database.connection() as connection:
        shown = await details.show_analysis(connection, frame.caller.owner_id, analysis)
    question = Confirmation(
        title=_("Delete the analysis of %(title)s?", title=shown.title),
        text=_(
            "%(count)s will be deleted permanently. The document is kept.",
            count=count_of(shown.results.total, "answer"),
        ),
        action=f"/analyses/{analysis}/delete",
        verb=_("Delete"),
        keep=f"/analyses/{analysis}",
    )
    return ask(request, question, frame)


@router.post("/{analysis}/delete")
async def delete(services: ServicesOf, caller: WriteCaller, analysis: UUID) -> Response:
    async with services.database.transaction() as connection:
        await analyses.delete_analysis(connection, caller.owner_id, analysis)
    return back_to("/analyses")


@router.post("/{analysis}/rerun")
async def rerun(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    analysis: UUID,
    item: Annotated[UUID | None, Form()] = None,
    prompt: Annotated[UUID | None, Form()] = None,
    *,
    everything: Annotated[bool, Form()] = False,
) -> Response:
    if item is None and prompt is None and not everything:
        raise BadInput(_("Choose what to run again."))
    async with services.database.transaction() as connection:
        await analyses.ask_again(connection, caller.owner_id, analysis, prompt=prompt, item=item)
    return done(request, f"/analyses/{analysis}")


async def _load(connection: Connection, owner: UUID, analysis: UUID) -> AnalysisView:
    shown = await details.show_analysis(connection, owner, analysis)
    results = await details.list_results(connection, owner, analysis)
    segments = await details.list_segments(connection, owner, analysis)
    cells = await details.list_cells(connection, owner, analysis)
    rows = [GridRow(one, [cells.get((one.id, r.prompt_id)) for r in results]) for one in segments[:MOST_SEGMENTS]]
    return AnalysisView(shown, results, rows, len(segments) - len(rows))


def _as_html(content: str | None) -> str:
    """Render a model's answer as safe HTML. The answer is as untrusted as the text of a document."""
    return "".join(block.html for block in render_window(content)) if content else ""


def _name(model: str | None) -> str:
    return _("offline rules, without a model") if model == LOCAL else model or _("none")


def _unit(analysis: Analysis) -> str:
    return "passage" if analysis.unit == "passages" else "p."


@dataclass(frozen=True, slots=True)
class SideQuery:
    """Query parameters that select the content of the side panel; unknown ids are ignored.

    `cited` is the index of a citation, from 0.
    """

    page: int | None = None
    item: UUID | None = None
    prompt: UUID | None = None
    cited: int | None = None


@dataclass(frozen=True, slots=True)
class SidePanel:
    """The panel next to the answers. `found` is the position of the quote on the page. It is None if unknown."""

    item: ItemView | None
    page: int | None
    citation: CitationView | None
    found: QuoteOnPage | None
    has_picture: bool

    @property
    def height(self) -> int:
        """The height of the page picture at a width of 800 pixels.

        If the page size is unknown, letter size is assumed.
        """
        return round(800 * self.found.height / self.found.width) if self.found else 1035

    @property
    def words(self) -> str | None:
        """The message to show if the quote cannot be marked on the page. None if it can be marked."""
        if not self.citation or (self.found and self.found.boxes):
            return None
        if not self.citation.verified:
            return _("Unverified: the quote was not found on this page.")
        return _("The quote is in the text of this page, but its position on the picture is unknown.")


async def open_side(
    services: Services, owner: UUID, analysis: UUID, document: UUID, results: Sequence[ResultView], opened: SideQuery
) -> SidePanel | None:
    async with services.database.connection() as connection:
        item = await _item(connection, owner, analysis, opened.item) if opened.item else None
        citation = _citation(item, results, opened)
        page = citation.page if citation else opened.page
        if page is None:
            return SidePanel(item, None, None, None, has_picture=False) if item else None
        has_picture = is_pictured(await show_document(connection, owner, document))
    found = await _find(services, owner, document, citation) if citation and has_picture else None
    return SidePanel(item, page, citation, found, has_picture)


async def _item(connection: Connection, owner: UUID, analysis: UUID, item: UUID) -> ItemView | None:
    try:
        return await details.show_item(connection, owner, analysis, item)
    except NotFound:
        return None


def _citation(item: ItemView | None, results: Sequence[ResultView], opened: SideQuery) -> CitationView | None:
    if opened.cited is None:
        return None
    result = next((one for one in results if one.prompt_id == opened.prompt), None)
    cited = item.citations if item else result.citations if result else []
    return cited[opened.cited] if opened.cited < len(cited) else None


async def _find(services: Services, owner: UUID, document: UUID, citation: CitationView) -> QuoteOnPage | None:
    """Find the position of a verified quote on its page, so that it can be marked. Returns None if the position is
    unknown.
    """
    if not citation.verified:
        return None
    try:
        return await services.pictures.find_quote(owner, document, citation.page, citation.quote)
    except OctavoError:
        return None
