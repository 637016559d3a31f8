"""The ask page: a question, the documents to ask, and an answer with citations."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from octavo.core.errors import OctavoError
from octavo.library.documents import find_documents, list_documents
from octavo.records.documents import Document
from octavo.records.search import Citation
from octavo.search.ask import find_sources
from octavo.search.citations import Answer
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.ask.api import MOST_CHARACTERS, MOST_CHOSEN, answer_in_turn
from octavo.web.shell.frame import Frame, FrameFor
from octavo.web.shell.templates import render

router = APIRouter(include_in_schema=False)
AskFrame = Annotated[Frame, Depends(FrameFor("ask"))]
OFFERED = 30
Written = Annotated[str, Form(max_length=MOST_CHARACTERS)]


@router.get("/ask")
async def ask_page(
    request: Request,
    services: ServicesOf,
    frame: AskFrame,
    document: Annotated[list[UUID] | None, Query(max_length=MOST_CHOSEN)] = None,
) -> Response:
    """Show the ask page. The documents named in the query are selected."""
    return await _render(request, services, frame, "", document or [])


@router.post("/ask")
async def ask(
    request: Request,
    services: ServicesOf,
    frame: AskFrame,
    question: Written = "",
    document: Annotated[list[UUID] | None, Form(max_length=MOST_CHOSEN)] = None,
) -> Response:
    """Show the answer as a whole page, for browsers without scripts.

    The form uses POST, because an answer may cost money.
    """
    chosen = document or []
    try:
        asking = await find_sources(
            services.database, services.models.gateway, frame.caller.owner_id, question.replace("\x00", " "), chosen
        )
        answer = await answer_in_turn(services, asking)
    except OctavoError as error:
        return await _render(request, services, frame, question, chosen, wrong=error)
    return await _render(request, services, frame, question, chosen, answer=answer)


async def _render(
    request: Request,
    services: Services,
    frame: Frame,
    question: str,
    chosen: list[UUID],
    *,
    answer: Answer | None = None,
    wrong: OctavoError | None = None,
) -> Response:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        named = await find_documents(connection, owner, chosen) if chosen else []
        newest = (await list_documents(connection, owner, limit=OFFERED)).items
    return render(
        request,
        "ask.html",
        frame,
        wrong.status if wrong else 200,
        question=question,
        chosen=[one.id for one in named],
        offered=_offer(named, newest),
        answer=answer,
        wrong=wrong.line if wrong else None,
        address_of=address_of,
        around=around_answer,
        quotes={" ".join(one.quote.split()) for one in answer.citations} if answer else set[str](),
    )


def _offer(named: list[Document], newest: list[Document]) -> list[Document]:
    """Return the documents to choose from: first the selected ones, then the newest ones whose text is ready."""
    known = {one.id for one in named}
    return [*named, *(one for one in newest if one.text_ready and one.id not in known)]


def address_of(cited: Citation) -> str:
    """Return the address that opens the text at the cited chunk."""
    return f"/documents/{cited.document_id}?c={cited.chunk_id}#c-{cited.chunk_id}"


def around_answer(cited: Citation) -> tuple[str, str, str]:
    """Split a quote into three parts: the text before the answer, the answer, and the text after it.

    If the answer is not known, the first part is the whole quote.
    """
    text = " ".join(cited.quote.split())
    return text.partition(cited.answer) if cited.answer else (text, "", "")
