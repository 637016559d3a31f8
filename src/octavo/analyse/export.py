"""Exports the answers of an analysis to one file: Markdown to read, CSV for tables, JSON for programs.

Pure functions.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Literal, get_args

from octavo.records.analyses import Analysis, CitationView, ResultView

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
