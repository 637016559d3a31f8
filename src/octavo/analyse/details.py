"""Reads analyses from the database, in the form that the API returns, and formats them as Markdown or CSV.

An analysis consists of segments (ranges of pages), items (one prompt on one segment) and results (the combined answer
to one prompt).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from io import StringIO
from typing import Any, Literal, get_args
from uuid import UUID

from octavo.analyse.progress import Counts, eta_of, health_of, percent_of
from octavo.core.errors import BadInput, NotFound
from octavo.core.http import Page, make_cursor, read_cursor
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.records.analyses import (
    Analysis,
    AnsweredPart,
    CitationView,
    Done,
    Gap,
    ItemsDone,
    ItemView,
    LoggedError,
    ResultView,
    SegmentView,
)
from octavo.records.jobs import JobError

QUERIES = load_queries("analyses")
MOST_ERRORS = 20
_INVALID_CURSOR = "Invalid cursor. Use the next_cursor of the previous page."
_COUNTED = [one.name for one in fields(Counts)]


@dataclass(frozen=True, slots=True)
class Cell:
    """The status of one prompt on one segment (range of pages). `offline` is true if it was answered without a model.

    The web page of an analysis shows a grid with a row for each segment and a column for each prompt.
    """

    id: UUID
    status: str
    error: JobError | None
    offline: bool


async def list_analyses(
    connection: Connection,
    owner: UUID,
    *,
    id_part: str | None = None,
    document: UUID | None = None,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page[Analysis]:
    """List analyses, newest first, without their error logs. `id_part` is the beginning or end of an id."""
    after_at, after_id = read_cursor(cursor) if cursor else (None, None)
    wanted = {"id_part": id_part.lower() if id_part else None, "document": document}
    rows = await _read(connection, owner, **wanted, after_at=after_at, after_id=after_id, most=limit + 1)
    items = [_as_analysis(row, []) for row in rows[:limit]]
    more = make_cursor(items[-1].created_at, items[-1].id) if len(rows) > limit else None
    return Page(items, more)


async def list_running(connection: Connection, owner: UUID, most: int) -> list[Analysis]:
    """List analyses that have not ended, newest first."""
    rows = await _read(connection, owner, running=True, most=most)
    return [_as_analysis(row, []) for row in rows]


async def show_analysis(connection: Connection, owner: UUID, analysis: UUID) -> Analysis:
    rows = await _read(connection, owner, id=analysis)
    if not rows:
        raise NotFound
    errors = await fetch_rows(connection, QUERIES.errors, {"analysis": analysis, "most": MOST_ERRORS})
    return _as_analysis(rows[0], [LoggedError(**row) for row in errors])


async def list_segments(connection: Connection, owner: UUID, analysis: UUID) -> list[SegmentView]:
    """List the segments (ranges of pages) in page order.

    A segment that was split comes before the shorter segments that replaced it.
    """
    await _check_owner(connection, owner, analysis)
    return [SegmentView(**row) for row in await fetch_rows(connection, QUERIES.segments, {"analysis": analysis})]


async def list_cells(connection: Connection, owner: UUID, analysis: UUID) -> dict[tuple[UUID, UUID], Cell]:
    """Return the status of every prompt on every segment (range of pages), keyed by segment id and prompt id."""
    await _check_owner(connection, owner, analysis)
    rows = await fetch_rows(connection, QUERIES.cells, {"analysis": analysis})
    return {
        (row["segment_id"], row["prompt_id"]): Cell(row["id"], row["status"], _error(row), bool(row["offline"]))
        for row in rows
    }


async def list_items(
    connection: Connection, owner: UUID, analysis: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[ItemView]:
    """List the items (one prompt on one segment) of an analysis in the order in which they run."""
    await _check_owner(connection, owner, analysis)
    rows = await _items(connection, analysis, limit + 1, **(_read_place(cursor) if cursor else {}))
    more = _make_place(rows[limit - 1]) if len(rows) > limit else None
    return Page([_as_item(row) for row in rows[:limit]], more)


async def show_item(connection: Connection, owner: UUID, analysis: UUID, item: UUID) -> ItemView:
    await _check_owner(connection, owner, analysis)
    rows = await _items(connection, analysis, 1, id=item)
    if not rows:
        raise NotFound
    return _as_item(rows[0])


async def list_results(connection: Connection, owner: UUID, analysis: UUID) -> list[ResultView]:
    """List the result of each prompt, in the order in which the prompts run."""
    await _check_owner(connection, owner, analysis)
    return [_as_result(row) for row in await fetch_rows(connection, QUERIES.results, {"analysis": analysis})]


async def _check_owner(connection: Connection, owner: UUID, analysis: UUID) -> None:
    row = await (await connection.execute(QUERIES.is_owned, {"owner": owner, "analysis": analysis})).fetchone()
    if row is None:
        raise NotFound


async def _read(connection: Connection, owner: UUID, **wanted: Any) -> list[Row]:  # noqa: ANN401
    values = dict.fromkeys(("id", "id_part", "document", "after_at", "after_id")) | {"running": False, "most": 1}
    return await fetch_rows(connection, QUERIES.analyses, values | {"owner": owner} | wanted)


async def _items(connection: Connection, analysis: UUID, most: int, **wanted: Any) -> list[Row]:  # noqa: ANN401
    values = {"id": None, "after_order": None, "after_prompt": None, "after_first": None, "after_id": None}
    return await fetch_rows(connection, QUERIES.items, values | {"analysis": analysis, "most": most} | wanted)


def _make_place(row: Row) -> str:
    return ".".join(str(row[name]) for name in ("execution_order", "prompt_id", "first", "id"))


def _read_place(cursor: str) -> dict[str, Any]:
    try:
        order, prompt, first, item = cursor.split(".")
        place = {"after_order": int(order), "after_first": int(first)}
        ids = {"after_prompt": UUID(prompt), "after_id": UUID(item)}
    except ValueError:
        raise BadInput(_INVALID_CURSOR) from None
    if any(abs(number) >= 1 << 31 for number in place.values()):  # beyond the range of the column
        raise BadInput(_INVALID_CURSOR)
    return place | ids


def _as_analysis(row: Row, errors: list[LoggedError]) -> Analysis:
    counts = Counts(**{name: row[name] for name in _COUNTED})
    same = ("id", "document_id", "title", "mode", "at_once", "status", "phase", "unit", "units", "elapsed_seconds")
    return Analysis(
        **{name: row[name] for name in same},
        segments=Done(counts.segments_ready, counts.segments),
        items=ItemsDone(counts.items_done, counts.items, counts.items_failed, counts.running),
        results=Done(counts.results_completed, counts.results),
        percent=percent_of(counts),
        mean_item_seconds=counts.mean_seconds,
        eta=eta_of(counts),
        tokens=row["tokens"],
        cost_usd=float(row["cost_usd"]),
        workers=row["workers"],
        retries=row["retries"],
        paused=counts.paused,
        health=health_of(counts),
        last_heartbeat=row["heartbeat_at"],
        error=_error(row),
        errors=errors,
        created_at=row["created_at"],
        completed_at=row["completed_at"],
        offline=row["offline"],
    )


def _as_item(row: Row) -> ItemView:
    rest = dict(row)
    answer = rest.pop("answer")
    for name in ("execution_order", "generation", "error_code", "error_message"):
        del rest[name]
    rest["cost_usd"] = float(rest["cost_usd"])
    cited = [CitationView(**one) for one in answer["citations"]] if answer else []
    return ItemView(**rest, content=answer["answer"] if answer else None, citations=cited, error=_error(row))


def _as_result(row: Row) -> ResultView:
    rest = dict(row)
    for name in ("error_code", "error_message", "items", "items_done"):
        del rest[name]
    parts = [AnsweredPart(**one) for one in rest.pop("parts")]
    gaps = [Gap(one["first"], one["last"], JobError(one["code"], one["message"])) for one in rest.pop("gaps")]
    answered_by = list(dict.fromkeys(one.answered_by for one in parts))
    rest["cost_usd"] = float(rest["cost_usd"])
    rest["citations"] = [CitationView(**one) for one in rest["citations"]]
    content, done = rest.pop("answer"), Done(row["items_done"], row["items"])
    return ResultView(
        **rest, content=content, items=done, error=_error(row), answered_by=answered_by, parts=parts, gaps=gaps
    )


def _error(row: Row) -> JobError | None:
    return JobError(row["error_code"], row["error_message"]) if row["error_code"] else None


# As a file ------------------------------------------------------------------------------------------------------------


ExportFormat = Literal["markdown", "json", "csv"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
MEDIA_TYPES = {"markdown": "text/markdown", "json": "application/json", "csv": "text/csv"}
ENDINGS = {"markdown": "md", "json": "json", "csv": "csv"}
COLUMNS = ("prompt", "status", "answered_by", "unit", "page", "quote", "verified", "answer")
# A spreadsheet would run a cell that begins like this as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_markdown(analysis: Analysis, results: Sequence[ResultView]) -> str:
    """Format the answers as Markdown.

    Each prompt has one section with the answer, the models that gave it, and the quotes with their pages.
    """
    unit = one_unit(analysis)
    sections = [_section(one, unit) for one in results]
    return "\n\n".join([f"# Analysis of {_line(analysis.title)}", *sections]) + "\n"


def as_csv(analysis: Analysis, results: Sequence[ResultView]) -> str:
    """Format the answers as CSV, with one row for each quote. An answer without quotes has one row."""
    written = StringIO()
    table = csv.writer(written, lineterminator="\r\n")
    table.writerow(COLUMNS)
    for result in results:
        for cited in result.citations or [None]:
            table.writerow([_cell(value) for value in _row(result, cited, one_unit(analysis))])
    return written.getvalue()


def one_unit(analysis: Analysis) -> str:
    return "passage" if analysis.unit == "passages" else "page"


def _section(result: ResultView, unit: str) -> str:
    answer = result.content or (f"No answer: {result.error.message}" if result.error else "No answer yet.")
    by = [f"Answered by: {', '.join(result.answered_by)}."] if result.answered_by else []
    quotes = [
        f"- {unit} {one.page}{'' if one.verified else ' (not found on this page)'}: “{_line(one.quote)}”"
        for one in result.citations
    ]
    return "\n\n".join([f"## {_line(result.title)}", answer, *by, *(["\n".join(quotes)] if quotes else [])])


def _row(result: ResultView, cited: CitationView | None, unit: str) -> list[str]:
    shared = [result.title, result.status, ", ".join(result.answered_by), unit]
    quoted = [str(cited.page), cited.quote, "yes" if cited.verified else "no"] if cited else ["", "", ""]
    return [*shared, *quoted, result.content or ""]


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
