"""Parameters, request models and error documentation shared by API routes."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from octavo.core.types import Extraction
from octavo.jobs.views import MOST_LIMIT


def _no_flag(value: object) -> object:
    """Otherwise true and false would be accepted as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be an integer")  # noqa: TRY004 - only ValueError becomes a validation error
    return value


def _given(value: object) -> object:
    return None if value == "" else value


# Forms send empty strings for missing values.
IF_GIVEN = BeforeValidator(_given)
# Listed after the limits of a number, so that these stay in its documentation.
WHOLE = BeforeValidator(_no_flag)
Cursor = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the previous page."), IF_GIVEN]
Limit = Annotated[int, Query(ge=1, le=MOST_LIMIT)]
Email = Annotated[str, Field(max_length=254, pattern=r"^[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+$")]


_WRITTEN_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _only_written(value: object) -> object:
    """Otherwise numbers would be read as seconds since 1970."""
    if not isinstance(value, str) or not _WRITTEN_DATE.fullmatch(value):
        raise ValueError("must be a date such as 2026-11-15")
    return value


Date = Annotated[date, BeforeValidator(_only_written)]


# Accepts a string even in strict mode.
ExtractionField = Annotated[
    Extraction, Field(strict=False, description="How the text is made; plain: from the file, without a model.")
]


class Problem(BaseModel):
    """RFC 9457; `code` is stable, the rest is for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str


class RetryRequest(BaseModel):
    """Without `from_stage` a job resumes after its last finished stage; an empty one starts over."""

    model_config = ConfigDict(extra="forbid")

    # Without control characters, which PostgreSQL cannot store in a text.
    from_stage: str | None = Field(default=None, max_length=200, pattern=r"^[^\x00-\x1f]*$")


RAW = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_PROBLEM = {"schema": Problem.model_json_schema()}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Error responses of a route, for OpenAPI."""
    return {
        status: {"description": "Refused", "content": {"application/problem+json": _PROBLEM}} for status in statuses
    }


def read_name(header: str) -> str:
    """Browsers percent-encode file names; other clients send raw UTF-8, which servers read as Latin-1."""
    try:
        return unquote(header.encode("latin-1").decode())
    except UnicodeError:
        return unquote(header)
