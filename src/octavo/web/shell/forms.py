"""Code that forms share: validation with the models of the API, confirmation pages, and redirects back to the page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Form, Request, Response
from pydantic import BaseModel, ValidationError

from octavo.core.errors import BadInput, NotFound
from octavo.web.shell.frame import Frame
from octavo.web.shell.templates import back_to, render

Model = TypeVar("Model", bound=BaseModel)
LIBRARY = "/library"
Back = Annotated[str, Form(max_length=2000)]
INVALID = "Invalid value."
_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]{0,1000}")


class NoFileSelected(BadInput):
    """No file selected. Choose a file first."""

    code = "NOTHING_CHOSEN"


def read_form(
    model: type[Model], given: Mapping[str, Any], sentences: Mapping[str, str]
) -> tuple[Model | None, dict[str, str]]:
    """Validate a submitted form. Returns the validated form, or a message for each invalid field."""
    try:
        return model.model_validate(dict(given)), {}
    except ValidationError as error:
        fields = {str(one["loc"][0]) for one in error.errors()}
        return None, {field: sentences.get(field, INVALID) for field in sorted(fields)}


def local_path(address: str, otherwise: str = "/") -> str:
    """Return the address if it is a path on this server, else `otherwise`.

    Other addresses could lead to another site.
    """
    return address if _LOCAL.fullmatch(address) else otherwise


@dataclass(frozen=True, slots=True)
class Question:
    """A page that asks the user to confirm an action.

    `keep` is the address that is opened if the user declines; `other` is the label and the address of an alternative.
    """

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


def read_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None  # noqa: PLR2004 - an integer


def read_id(text: str) -> UUID:
    """Parse an id. Raises `NotFound` if it is invalid, as for an unknown id."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound from None


def wants_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def done(request: Request, back: str) -> Response:
    return Response(status_code=204) if wants_json(request) else back_to(local_path(back, LIBRARY))
