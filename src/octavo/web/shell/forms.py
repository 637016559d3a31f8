"""Code that forms share: validation with the models of the API, selected documents, confirmations and redirects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Form, Request, Response
from pydantic import BaseModel, TypeAdapter, ValidationError

from octavo.core.errors import BadInput, NotFound
from octavo.core.texts import gettext as _
from octavo.core.texts import mark
from octavo.core.types import first_day
from octavo.library.bulk import Chosen
from octavo.library.documents import Filters
from octavo.web.context.services import Services
from octavo.web.shell.frame import Frame, back_to, render

Model = TypeVar("Model", bound=BaseModel)
LIBRARY = "/library"
Back = Annotated[str, Form(max_length=2000)]
INVALID = mark("Invalid value.")
MOST_IDS = 500
FILTERS = TypeAdapter(Filters)
FILTER_NAMES = frozenset(one.name for one in fields(Filters)) - {"trashed", "versions", "id"}
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
        return None, {field: _(sentences.get(field, INVALID)) for field in sorted(fields)}


def local_path(address: str, otherwise: str = "/") -> str:
    """Return `address` if it is a path on this server, and `otherwise` if it is not.

    This prevents redirects to other sites.
    """
    return address if _LOCAL.fullmatch(address) else otherwise


@dataclass(frozen=True, slots=True)
class Question:
    """A page that asks the user to confirm an action.

    `keep` is the path that is opened if the user declines. `other` is the label and the path of an alternative.
    """

    title: str
    text: str
    action: str
    verb: str
    keep: str
    fields: Sequence[tuple[str, str]] = ()
    other: tuple[str, str] | None = None
    no: str = mark("Keep")


def ask(request: Request, question: Question, frame: Frame | None = None) -> Response:
    return render(request, "confirm.html", frame, question=question)


def read_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None  # noqa: PLR2004 - an integer


def read_id(text: str) -> UUID:
    """Parse an id. Raises `NotFound` if it is invalid, so that it is handled like an unknown id."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound from None


@dataclass(frozen=True, slots=True)
class Selection(Chosen):
    """Documents selected on the library page.

    `fields` are the form fields that describe this selection, so that the next form can send it again.
    """

    fields: list[tuple[str, str]]


def read_selection(given: Iterable[tuple[str, str]]) -> Selection:
    """Read the selection from form fields or query parameters. Filters have the same names as on the library page.

    The `all` field selects all documents that match the filters, even if rows are selected too.
    """
    sent = [(name, value) for name, value in given if value]
    ids = [read_id(value) for name, value in sent if name in {"document", "ids"}][:MOST_IDS]
    if ids and "all" not in dict(sent):
        return Selection(frozenset(ids), None, [("ids", str(one)) for one in ids])
    renamed = {"tab" if name == "status" else name: value for name, value in sent}
    known: dict[str, Any] = {name: value for name, value in renamed.items() if name in FILTER_NAMES}
    known |= {name: first_day(known[name]) or known[name] for name in ("before", "after") if name in known}
    try:
        filters = FILTERS.validate_python(known)
    except ValidationError:
        raise BadInput(_("This filter is not valid.")) from None
    return Selection(frozenset(), filters, [(name, value) for name, value in sent if name in FILTER_NAMES | {"status"}])


def read_selected(given: Iterable[tuple[str, str]]) -> Selection:
    """Read the selection from a form. Raises an error if nothing is selected."""
    sent = [(name, value) for name, value in given if value]
    selection = read_selection(sent)
    if not selection.ids and "all" not in dict(sent):
        raise BadInput(_("Select documents first."))
    return selection


def wants_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def done(request: Request, back: str) -> Response:
    return Response(status_code=204) if wants_json(request) else back_to(local_path(back, LIBRARY))


def public_address(request: Request, services: Services, path: str) -> str:
    """Return the public URL of a path.

    If no public URL is configured, the Host header of the request is used. The header has already been checked.
    """
    return f"{services.settings.public_url or str(request.base_url).rstrip('/')}{path}"
