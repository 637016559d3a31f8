"""Routes for programs, under `/api/v1`, and what their requests have in common."""

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
    """True and false would else be taken for one and nothing."""
    if isinstance(value, bool):
        raise ValueError("this is no whole number")  # noqa: TRY004 - the only kind that becomes an answer
    return value


def _given(value: object) -> object:
    return None if value == "" else value


# A word that is empty, as forms send it, is one that is not given.
IF_GIVEN = BeforeValidator(_given)
# Beside the limits of a number, not before them: these would else be missing in its description.
WHOLE = BeforeValidator(_no_flag)
Cursor = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the page before."), IF_GIVEN]
Limit = Annotated[int, Query(ge=1, le=MOST_LIMIT)]
Email = Annotated[str, Field(max_length=254, pattern=r"^[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+$")]


_WRITTEN_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _only_written(value: object) -> object:
    """Numbers would be taken for seconds since 1970."""
    if not isinstance(value, str) or not _WRITTEN_DATE.fullmatch(value):
        raise ValueError("write a date as 2026-11-15")
    return value


Date = Annotated[date, BeforeValidator(_only_written)]


# A word also where types are taken strictly.
HowToRead = Annotated[Extraction, Field(strict=False, description="Who makes the text; plain: the file alone.")]


class Problem(BaseModel):
    """RFC 9457; `code` is stable, the rest is for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str


class RetryRequest(BaseModel):
    """Without a stage a job goes on after the last one it finished; with an empty one it starts over."""

    model_config = ConfigDict(extra="forbid")

    # Without control characters, which a database cannot keep in a text.
    from_stage: str | None = Field(default=None, max_length=200, pattern=r"^[^\x00-\x1f]*$")


RAW = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_PROBLEM = {"schema": Problem.model_json_schema()}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ways a route may refuse, for OpenAPI."""
    return {
        status: {"description": "Refused", "content": {"application/problem+json": _PROBLEM}} for status in statuses
    }


def read_name(header: str) -> str:
    """Percent-encoded, as browsers have to write it; others send UTF-8 as it is, which servers read as Latin-1."""
    try:
        return unquote(header.encode("latin-1").decode())
    except UnicodeError:
        return unquote(header)
