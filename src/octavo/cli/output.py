"""Output for people and for programs: tables that fit the screen, and JSON in the same format as the API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import typer

from octavo.core.formatting import format_date
from octavo.core.http import Page

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


SHORT_ID = 8
NO_SCREEN_COLUMNS = 100_000
LEAST_COLUMNS = 10
GAP = 2
STYLES = {
    "completed": "green",
    "complete": "green",
    "failed": "red",
    "dead_letter": "red",
    "cancelled": "red",
    "pending": "yellow",
    "processing": "cyan",
}
# Control characters, and characters that change the text direction.
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


def open_console(*, stderr: bool = False) -> Console:
    """Open a console for output. If the output is not a terminal, lines are never shortened."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = NO_SCREEN_COLUMNS
    return console


def print_on(console: Console, table: Table) -> None:
    """Print a table. If the output is not a terminal, trailing spaces are removed."""
    if console.is_terminal:
        return console.print(table)
    with console.capture() as drawn:
        console.print(table)
    return typer.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def clean(text: str) -> str:
    """Put a text on one line and remove control characters."""
    return _UNSHOWN.sub(" ", text).strip()


def make_table(
    console: Console, head: Sequence[str], rows: Sequence[Sequence[str]], flexible: Sequence[int] = (1,)
) -> Table:
    """Make a table with coloured statuses. On a narrow terminal, only the columns in `flexible` are shortened."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    cells = [[clean(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(head, *cells, strict=True)]
    fixed = sum(width for number, width in enumerate(widths) if number not in flexible) + GAP * len(head)
    shares = share(console.width - fixed, {number: widths[number] for number in flexible})
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for number, name in enumerate(head):
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=shares.get(number))
    for row in cells:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    return table


def share(width: int, needs: Mapping[int, int]) -> dict[int, int]:
    """Divide the available width among columns. `needs` contains the width that each column needs.

    Narrow columns get all the width they need, and wide columns share the rest equally.
    """
    shares: dict[int, int] = {}
    for number, need in sorted(needs.items(), key=lambda item: item[1]):
        shares[number] = max(LEAST_COLUMNS, min(need, width // (len(needs) - len(shares))))
        width -= shares[number]
    return shares


def make_facts(facts: Mapping[str, str | None]) -> Table:
    """Make a table of labels and values. Empty values are left out."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, GAP, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value:
            table.add_row(name, Text(clean(value), style=STYLES.get(value, "")))
    return table


def short_id(document: UUID) -> str:
    """Return the end of an id as a short id.

    The beginning is the creation time, which is similar for documents added together.
    """
    return str(document)[-SHORT_ID:]


def local_time(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def short_time(at: datetime, now: datetime) -> str:
    """Format a time: the time of day if it is today, otherwise the date."""
    here, today = at.astimezone(), now.astimezone()
    if here.date() == today.date():
        return f"{here:%H:%M}"
    return format_date(here.date(), today.date())


def print_json(value: object) -> None:
    from pydantic_core import to_json

    typer.echo(to_json(value, indent=2).decode())


def print_items(records: Sequence[object], next_cursor: str | None = None) -> None:
    """Print one page of results as JSON, even if there are no results."""
    print_json(Page(list(records), next_cursor))
