"""Parameters, request models and error responses that API routes share."""

from __future__ import annotations

import re
from datetime import date
from hashlib import sha256
from typing import Annotated, Any
from urllib.parse import unquote
from uuid import UUID

from fastapi import Header, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import to_json

from octavo.core.errors import BadInput
from octavo.core.types import Extraction
from octavo.database import Connection, load_queries
from octavo.jobs.views import MOST_LIMIT


def _reject_booleans(value: object) -> object:
    """Reject true and false, which Pydantic would accept as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be an integer")  # noqa: TRY004 - only ValueError becomes a validation error
    return value


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


# Forms send empty strings for missing values.
IF_GIVEN = BeforeValidator(_none_if_empty)
# In `Annotated`, write this after the limits of a number; otherwise, OpenAPI does not show the limits.
WHOLE = BeforeValidator(_reject_booleans)
Cursor = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the previous page."), IF_GIVEN]
Limit = Annotated[int, Query(ge=1, le=MOST_LIMIT)]
ID_PART = Query(
    pattern=r"^[0-9a-fA-F-]{4,36}$",
    description="Part of an id: its beginning, its end, or the beginning of its last eight characters.",
)
IdPart = Annotated[str | None, ID_PART]
Email = Annotated[str, Field(max_length=254, pattern=r"^[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+$")]


_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _require_iso_date(value: object) -> object:
    """Accept only a date string such as 2026-11-15. Pydantic would also accept numbers, as seconds since 1970."""
    if not isinstance(value, str) or not _ISO_DATE.fullmatch(value):
        raise ValueError("must be a date such as 2026-11-15")
    return value


Date = Annotated[date, BeforeValidator(_require_iso_date)]


# Accepts a string even in strict mode.
ExtractionField = Annotated[
    Extraction, Field(strict=False, description="How the text is extracted. `plain`: without a model.")
]


class Problem(BaseModel):
    """An error as defined by RFC 9457. `code` is stable; `title` and `detail` are for people."""

    type: str = Field(description="Always `about:blank`.", examples=["about:blank"])
    title: str = Field(
        description="Human-readable summary of the error.", examples=["Not found, or you do not have access to it."]
    )
    status: int = Field(description="The HTTP status.", examples=[404])
    code: str = Field(description="A stable code for programs.", examples=["NOT_FOUND"])
    detail: str = Field(
        description="Human-readable details. The same as `title` if there are none.",
        examples=["Not found, or you do not have access to it."],
    )


class RetryRequest(BaseModel):
    """A request to retry a job. `from_stage` is the stage to start from.

    Null continues after the last finished stage; an empty string starts over.
    """

    model_config = ConfigDict(extra="forbid")

    # No control characters: PostgreSQL cannot store the null character in a text.
    from_stage: str | None = Field(default=None, max_length=200, pattern=r"^[^\x00-\x1f]*$")


# Versions of things that can be edited -----------------------------------------------------------------------------

REQUESTS = load_queries("requests")
IfMatch = Annotated[
    str | None,
    Header(
        max_length=1000,
        description="Change the record only if it still has this ETag, which GET returns; otherwise, return 412.",
        examples=['"5d41402abc4b2a76b9719d911017c592"'],
    ),
]


class Changed(BadInput):
    """Somebody changed this in the meantime. Reload it, then repeat your edit."""

    code = "CHANGED"
    status = 412


def etag_of(*editable: object) -> str:
    """Return the ETag of a record: a checksum of the values that can be edited.

    It does not change while a document is processed, so an edit is refused only if somebody else edited the record.
    """
    return f'"{sha256(to_json(editable)).hexdigest()[:32]}"'


async def lock_edit(connection: Connection, if_match: str | None, thing: UUID) -> None:
    """Make edits with If-Match wait for each other, so that each sees the result of the previous one."""
    if if_match is not None:
        await connection.execute(REQUESTS.lock_edit, {"id": str(thing)})


def check_match(if_match: str | None, etag: str) -> None:
    """Raise `Changed` if the request expects another version. Without If-Match, any version is accepted."""
    if if_match is None or if_match.strip() == "*":
        return
    if etag not in [one.strip().removeprefix("W/") for one in if_match.split(",")]:
        raise Changed


RAW = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
PROBLEM = {"$ref": "#/components/schemas/Problem"}
# What each status means, in the OpenAPI description.
REFUSALS = {
    400: "The request cannot be read.",
    401: "Not signed in.",
    402: "The budget is used up.",
    403: "Your role or API key does not allow this, or the request was refused.",
    404: "Not found, or you do not have access to it.",
    409: "Not possible in the current state.",
    410: "No longer available.",
    412: "Somebody changed this in the meantime.",
    413: "Too large.",
    415: "This type of file is not supported.",
    416: "The range is outside the file.",
    422: "Invalid input.",
    429: "Too many requests. `Retry-After` says when to retry.",
    502: "Another server failed.",
    503: "Not available at the moment.",
    504: "Another server did not respond in time.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route, for its OpenAPI schema."""
    return {
        status: {"description": REFUSALS[status], "content": {"application/problem+json": {"schema": PROBLEM}}}
        for status in statuses
    }


def read_name(header: str) -> str:
    """Decode the file name in a header.

    Browsers send it percent-encoded. Other clients send raw UTF-8, which the server has decoded as Latin-1.
    """
    try:
        return unquote(header.encode("latin-1").decode())
    except UnicodeError:
        return unquote(header)
