"""Shows a running analysis on the terminal: a row per segment, a column per prompt, a symbol per item."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import typer

from octavo.cli.output import clean, make_table, open_console

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from octavo.records.analyses import Analysis, ItemView

# One character per status, readable without colour.
SIGNS = {
    "planned": "·",
    "running": "▶",
    "retrying": "↻",
    "paused": "‖",
    "done": "✓",
    "split": "÷",
    "failed": "!",
}
TITLE_CHARACTERS = 14
LINES_AROUND = 5


class View(Protocol):
    def show(self, analysis: Analysis, items: Sequence[ItemView]) -> None: ...


@contextmanager
def open_view(*, silent: bool) -> Generator[View]:
    console = open_console(stderr=True)
    if silent:
        yield NoView()
    elif console.is_terminal:
        from rich.live import Live

        with Live("Loading…", console=console, auto_refresh=False, transient=True) as live:
            yield GridView(live)
    else:
        yield LineView()


class NoView:
    def show(self, analysis: Analysis, items: Sequence[ItemView]) -> None: ...


class LineView:
    """The view for logs: prints a line whenever the progress changes."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, analysis: Analysis, items: Sequence[ItemView]) -> None:
        del items
        if (line := summarise(analysis)) != self._last:
            self._last = line
            typer.echo(line, err=True)


class GridView:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, analysis: Analysis, items: Sequence[ItemView]) -> None:
        self._live.update(draw(self._live.console, analysis, items), refresh=True)


def draw(console: Console, analysis: Analysis, items: Sequence[ItemView]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    head, rows = lay_out(analysis, items)
    shown = rows[: max(1, console.height - LINES_AROUND)]
    more = [Text(f"and {len(rows) - len(shown):,} more")] if len(rows) > len(shown) else []
    table = [make_table(console, head, shown, flexible=(0,))] if rows else []
    signs = "  ".join(f"{sign} {name}" for name, sign in SIGNS.items())
    return Group(Text(summarise(analysis)), *table, *more, Text(signs, style="dim"))


def lay_out(analysis: Analysis, items: Sequence[ItemView]) -> tuple[list[str], list[list[str]]]:
    """Arrange the items: a row per segment in page order, a column per prompt in order of execution."""
    prompts = {one.prompt_id: clean(one.prompt_title)[:TITLE_CHARACTERS] for one in items}
    segments = {one.segment_id: (one.first, -one.last) for one in items}
    cells = {(one.segment_id, one.prompt_id): SIGNS.get(one.status, "?") for one in items}
    rows = [
        [f"{place[0]} to {-place[1]}", *(cells.get((segment, prompt), "") for prompt in prompts)]
        for segment, place in sorted(segments.items(), key=lambda item: item[1])
    ]
    return [(analysis.unit or "pages").upper(), *prompts.values()], rows


def summarise(analysis: Analysis) -> str:
    eta = f", {analysis.eta.low_seconds:.0f} to {analysis.eta.high_seconds:.0f} s left" if analysis.eta else ""
    cost = f", {analysis.cost_usd:.4f} USD" if analysis.cost_usd else ""
    failed = f", {analysis.items.failed} failed" if analysis.items.failed else ""
    return (
        f"{clean(analysis.title)}: {analysis.phase}, {analysis.items.done} of {analysis.items.total} done{failed}, "
        f"{analysis.percent.overall} %{eta}{cost}. {analysis.health.message}"
    )
