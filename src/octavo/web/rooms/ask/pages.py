"""The ask page: threads of questions, the documents to ask, and answers with citations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from pydantic import ValidationError

from octavo.core.errors import NotFound, OctavoError
from octavo.core.formatting import count_of, format_number
from octavo.core.texts import gettext as _
from octavo.core.texts import mark
from octavo.database import read_clock
from octavo.library.collections import list_collections
from octavo.library.documents import find_documents, list_documents
from octavo.records.documents import Document
from octavo.records.search import AskScope, Citation, Statement, Thread, Turn
from octavo.search.threads import (
    delete_thread,
    describe_status,
    list_threads,
    read_thread_scope,
    show_thread,
    write_markdown,
)
from octavo.web.context.callers import WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.ask.api import (
    MOST_CHARACTERS,
    MOST_CHOSEN,
    AskRequest,
    ScopeRequest,
    open_turn,
)
from octavo.web.rooms.ask.turns import address_of, answer_turn, find_for_turn, give_up
from octavo.web.shell.forms import Question, read_id
from octavo.web.shell.forms import ask as ask_first
from octavo.web.shell.frame import Frame, FrameFor, back_to, render

router = APIRouter(include_in_schema=False)
AskFrame = Annotated[Frame, Depends(FrameFor("ask"))]
OFFERED, LISTED = 30, 30
INVALID = 422
Written = Annotated[str, Form(max_length=MOST_CHARACTERS)]
Line = Annotated[str, Form(max_length=200)]
DocumentIds = Annotated[list[UUID] | None, Form(max_length=MOST_CHOSEN)]
# A link on another site must not ask a question that costs money. Browsers send this header with every request.
SITE, OUR_SITES = "sec-fetch-site", frozenset({"none", "same-origin"})
WRONG_QUESTION = mark("Enter a question of at most %(most)s characters.")
WRONG_SCOPE = mark("Choose only one of these: a collection, a search, or selected documents.")


@dataclass(frozen=True, slots=True)
class AskForm:
    """The content of the form: the question, the documents to ask, and the error message.

    If `ask_now` is true, the script asks the question as soon as the page is opened. `wrong_question` is true if the
    error message is about the question.
    """

    question: str = ""
    scope: AskScope = AskScope()  # noqa: RUF009 - it is frozen
    wrong: str | None = None
    status: int = 200
    ask_now: bool = False
    wrong_question: bool = False


@router.get("/ask")
async def ask_page(
    request: Request,
    services: ServicesOf,
    frame: AskFrame,
    q: Annotated[str, Query(max_length=MOST_CHARACTERS)] = "",
    document: Annotated[list[UUID] | None, Query(max_length=MOST_CHOSEN)] = None,
    collection: Annotated[str, Query(max_length=200)] = "",
    query: Annotated[str, Query(max_length=200)] = "",
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> Response:
    """Show the form for a new thread, and the list of threads. The query parameters fill in the form.

    If the URL was typed or opened from a page of this site, the question is asked immediately.
    """
    now = bool(q.strip()) and request.headers.get(SITE) in OUR_SITES
    form = AskForm(q, AskScope(collection or None, query or None, document or None), ask_now=now)
    return await _render(request, services, frame, form, cursor=cursor)


@router.post("/ask")
async def ask(
    request: Request,
    services: ServicesOf,
    frame: AskFrame,
    question: Written = "",
    collection: Line = "",
    query: Line = "",
    document: DocumentIds = None,
) -> Response:
    """Start a thread and answer its first question, for browsers without scripts.

    The form uses POST, because an answer may cost money.
    """
    scope = AskScope(collection or None, query or None, document or None)
    return await _answer(request, services, frame, AskForm(question, scope))


@router.get("/ask/{thread}")
async def thread_page(request: Request, services: ServicesOf, frame: AskFrame, thread: str) -> Response:
    async with services.database.connection() as connection:
        scope = await read_thread_scope(connection, frame.caller.owner_id, read_id(thread))
    return await _render(request, services, frame, AskForm(scope=scope), read_id(thread))


@router.post("/ask/{thread}")
async def follow_up(
    request: Request,
    services: ServicesOf,
    frame: AskFrame,
    thread: str,
    question: Written = "",
    collection: Line = "",
    query: Line = "",
    document: DocumentIds = None,
) -> Response:
    """Continue a thread with a follow-up question, for browsers without scripts."""
    scope = AskScope(collection or None, query or None, document or None)
    return await _answer(request, services, frame, AskForm(question, scope), read_id(thread))


@router.get("/ask/{thread}/turns/{turn}")
async def turn_fragment(request: Request, services: ServicesOf, frame: AskFrame, thread: str, turn: str) -> Response:
    """Return one turn as HTML. When the answer is complete, the script replaces the turn on the page with this HTML."""
    async with services.database.connection() as connection:
        found = await show_thread(connection, frame.caller.owner_id, read_id(thread))
    shown = next((one for one in found.turns if one.id == read_id(turn)), None)
    if shown is None:
        raise NotFound
    return render(request, "ask_turn.html", frame, turn=shown, thread=found, is_last=shown is found.turns[-1], **PARTS)


@router.post("/ask/{thread}/again")
async def ask_again(
    request: Request, services: ServicesOf, frame: AskFrame, thread: str, turn: Annotated[str, Form()]
) -> Response:
    """Answer the last question of a thread again, for browsers without scripts."""
    async with services.database.connection() as connection:
        found = await show_thread(connection, frame.caller.owner_id, read_id(thread))
    shown = next((one for one in found.turns if one.id == read_id(turn)), None)
    if shown is None:
        raise NotFound
    wanted = AskRequest(question=shown.question, thread_id=found.id, again=shown.id)
    try:
        return await _ask(services, frame, wanted)
    except OctavoError as error:
        form = AskForm("", found.scope, error.line, error.status)
        return await _render(request, services, frame, form, found.id)


@router.post("/ask/{thread}/delete")
async def delete(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: AskFrame,
    thread: str,
    confirmed: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    async with services.database.transaction() as connection:
        found = await show_thread(connection, caller.owner_id, read_id(thread))
        if confirmed:
            await delete_thread(connection, caller.owner_id, found.id)
            return back_to("/ask")
    text = _("“%(title)s” and all its answers will be deleted. This cannot be undone.", title=found.title)
    return ask_first(
        request, Question(_("Delete thread?"), text, f"/ask/{found.id}/delete", _("Delete"), f"/ask/{found.id}"), frame
    )


async def _answer(
    request: Request, services: Services, frame: Frame, form: AskForm, thread: UUID | None = None
) -> Response:
    """Answer a question and show its thread. If the question is refused, show the form with the reason."""
    try:
        scope, question = _read_scope(form.scope), form.question.replace("\x00", " ")
        wanted = AskRequest(question=question, thread_id=thread, scope=scope)
        return await _ask(services, frame, wanted)
    except ValidationError as error:
        is_scope = any("collection" in one["msg"] for one in error.errors())
        refused = AskForm(
            form.question,
            form.scope,
            _(WRONG_SCOPE) if is_scope else _(WRONG_QUESTION, most=format_number(MOST_CHARACTERS)),
            INVALID,
            wrong_question=not is_scope,
        )
    except OctavoError as error:
        refused = AskForm(form.question, form.scope, error.line, error.status)
    return await _render(request, services, frame, refused, thread)


async def _ask(services: Services, frame: Frame, wanted: AskRequest) -> Response:
    opened = await open_turn(services, frame.caller.owner_id, wanted)
    try:
        await answer_turn(services, opened, await find_for_turn(services, opened.asked))
    except OctavoError as error:
        await give_up(services, opened, error)
    return back_to(f"/ask/{opened.turn.thread_id}#t-{opened.turn.id}")


def _read_scope(scope: AskScope) -> ScopeRequest | None:
    if scope == AskScope():
        return None
    return ScopeRequest(collection=scope.collection, query=scope.query, document_ids=scope.document_ids)


async def _render(
    request: Request,
    services: Services,
    frame: Frame,
    form: AskForm,
    thread: UUID | None = None,
    *,
    cursor: str | None = None,
) -> Response:
    owner, chosen = frame.caller.owner_id, form.scope.document_ids or []
    async with services.database.connection() as connection:
        found = await show_thread(connection, owner, thread) if thread else None
        named = await find_documents(connection, owner, chosen) if chosen else []
        newest = (await list_documents(connection, owner, limit=OFFERED)).items
        listed = await list_threads(connection, owner, cursor=cursor, limit=LISTED)
        collections = [one.name for one in await list_collections(connection, owner)]
        now = await read_clock(connection)
    return render(
        request,
        "ask.html",
        frame,
        form.status,
        form=form,
        thread=found,
        threads=listed.items,
        more=f"/ask?{urlencode({'cursor': listed.next_cursor})}" if listed.next_cursor else None,
        chosen=[one.id for one in named],
        offered=_offer(named, newest),
        collections=collections,
        scope_label=describe_scope(form.scope, len(named)),
        answers_offline=is_offline(services, frame),
        now=now,
        **PARTS,
    )


def is_offline(services: Services, frame: Frame) -> bool:
    """Whether questions are answered without a model.

    True if no provider is configured, or if the caller is a visitor and visitors are not allowed to use models.
    """
    settings = services.settings
    is_refused = frame.caller.is_anonymous and not settings.anonymous_models
    return is_refused or all(one == "local" for one in settings.providers)


def _offer(named: list[Document], newest: list[Document]) -> list[Document]:
    """Return the documents that a user can choose from.

    The selected documents come first, followed by the newest documents whose text is ready.
    """
    known = {one.id for one in named}
    return [*named, *(one for one in newest if one.text_ready and one.id not in known)]


def describe_scope(scope: AskScope, selected: int) -> str:
    if scope.collection:
        return _("Collection %(collection)s", collection=scope.collection)
    if scope.query:
        return _("Documents that match %(query)s", query=scope.query)
    if selected:
        return count_of(selected, "selected document")
    return _("All documents")


def around_answer(cited: Citation) -> tuple[str, str, str]:
    """Split a quote into three parts: the text before the answer, the answer, and the text after it.

    If the answer is not known, the first part is the whole quote.
    """
    text = " ".join(cited.quote.split())
    return text.partition(cited.answer) if cited.answer else (text, "", "")


def own_statements(turn: Turn) -> list[Statement]:
    """Return the statements that are not just a quote or the title of a source.

    The other statements are left out, because quotes and titles are already shown with the sources.
    """
    shown = {" ".join(text.split()) for one in turn.citations for text in (one.quote, one.title)}
    return [one for one in turn.statements if " ".join(one.text.split()) not in shown]


def markdown_of(thread: Thread, turn: Turn) -> str:
    return write_markdown(thread, turn.id)


PARTS: dict[str, Any] = {
    "address_of": address_of,
    "around": around_answer,
    "own_statements": own_statements,
    "describe_status": describe_status,
    "markdown_of": markdown_of,
}
