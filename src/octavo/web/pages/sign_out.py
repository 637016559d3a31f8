"""Ending a browser's session; a visitor, who could never come back, is asked first."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from octavo.web import accounts
from octavo.web.pages import back_to
from octavo.web.pages.confirm import Question, ask
from octavo.web.parts import Parts, PartsOf, Recognised

router = APIRouter(include_in_schema=False)
QUESTION = Question("Sign out?", "Your documents stay.", "/sign-out", "Sign out", "/library", no="Stay signed in")


def _warning(parts: Parts) -> Question:
    return Question(
        title="Leave your documents?",
        text="You have no account: only this browser holds the key to your documents. After this nobody can reach them "
        "any more. Make an account first to keep them.",
        action="/sign-out",
        verb="Leave them",
        keep="/library",
        other=("Make an account", "/sign-up") if parts.settings.sign_up else None,
    )


@router.get("/sign-out")
async def sign_out_page(request: Request, parts: PartsOf, caller: Recognised) -> Response:
    if caller is None:
        return back_to("/sign-in")
    return ask(request, _warning(parts) if caller.is_anonymous else QUESTION)


@router.post("/sign-out")
async def sign_out(
    request: Request, parts: PartsOf, caller: Recognised, confirmed: Annotated[str, Form(max_length=10)] = ""
) -> Response:
    if caller and caller.is_anonymous and not confirmed:
        return ask(request, _warning(parts))
    await accounts.sign_out(request, parts, caller)
    return back_to("/sign-in")
