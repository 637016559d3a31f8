"""A question before something that cannot be taken back. It is a page, so that it is asked without scripts too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request, Response

from octavo.web.pages import render
from octavo.web.pages.frame import Frame


@dataclass(frozen=True, slots=True)
class Question:
    """`title` names the thing or its number; `keep` is where no leads to, `other` something better to do."""

    title: str
    text: str
    action: str
    verb: str
    keep: str
    fields: Sequence[tuple[str, str]] = ()
    other: tuple[str, str] | None = None
    no: str = "Keep"


def ask(request: Request, question: Question, frame: Frame | None = None) -> Response:
    return render(request, "confirm.html", frame, question=question)
