"""How files that are being added are shown: bars on a terminal, a line for each elsewhere, or not at all."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from octavo.cli.adding import Added, Display
from octavo.cli.items import Item
from octavo.cli.paths import Refused
from octavo.cli.tables import clean, open_console, short_id
from octavo.core.formatting import format_bytes

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

# Smaller files are gone before anybody could read their names.
OWN_BAR_BYTES = 1 << 20
FEW_FILES = 10
NAME_COLUMNS = 24
# What a file costs beside its bytes, so that the bar runs evenly over large and small ones.
FILE_COST_BYTES = 1 << 20
PICTURES_A_SECOND = 8


class Silence:
    def begin(self, file: Item) -> None: ...
    def progress(self, file: Item, sent: int) -> None: ...
    def end(self, file: Item, result: Added | Refused | None) -> None: ...


class Lines(Silence):
    """For logs: what became of each file, with all of its id."""

    def end(self, file: Item, result: Added | Refused | None) -> None:
        del file
        if isinstance(result, Added):
            typer.echo(say_added(result, str(result.outcome.document_id)))
        if wrong := say_wrong(result):
            typer.echo(wrong, err=True)


class Bars:
    """One for everything and one for each large file; few files are named one by one."""

    def __init__(self, bars: Progress, files: Sequence[Item]) -> None:
        self._bars = bars
        self._files = len(files)
        self._ended = 0
        self._sent: dict[Item, int] = {}
        self._own: dict[Item, TaskID] = {}
        whole = sum(file.size + FILE_COST_BYTES for file in files)
        self._all = bars.add_task("Adding", total=whole, text=self._count())

    def begin(self, file: Item) -> None:
        self._sent[file] = 0
        if file.size >= OWN_BAR_BYTES:
            self._own[file] = self._bars.add_task(clean(file.name), total=file.size, text="")

    def progress(self, file: Item, sent: int) -> None:
        self._bars.advance(self._all, sent - self._sent[file])  # back again when a transfer is repeated
        self._sent[file] = sent
        if file in self._own:
            self._bars.update(
                self._own[file], completed=sent, text=f"{format_bytes(sent)} of {format_bytes(file.size)}"
            )

    def end(self, file: Item, result: Added | Refused | None) -> None:
        self._ended += 1
        self.progress(file, file.size + FILE_COST_BYTES)
        self._bars.update(self._all, text=self._count())
        if file in self._own:
            self._bars.remove_task(self._own.pop(file))
        if isinstance(result, Added) and self._files <= FEW_FILES:
            self._bars.console.print(say_added(result, short_id(result.outcome.document_id)))
        if wrong := say_wrong(result):
            self._bars.console.print(wrong, style="red")

    def _count(self) -> str:
        return f"{self._ended:,} of {self._files:,} files"


@contextmanager
def open_display(files: Sequence[Item], *, silent: bool) -> Generator[Display]:
    """What fits where the output goes to."""
    console = open_console(stderr=True)
    if silent:
        yield Silence()
    elif console.is_terminal:
        from rich.progress import Progress

        with Progress(*make_columns(), console=console, transient=True, refresh_per_second=PICTURES_A_SECOND) as bars:
            yield Bars(bars, files)
    else:
        yield Lines()


def make_columns() -> list[ProgressColumn]:
    from rich import progress
    from rich.table import Column

    name = Column(no_wrap=True, overflow="ellipsis", max_width=NAME_COLUMNS)
    return [
        progress.TextColumn("{task.description}", markup=False, table_column=name),
        progress.BarColumn(bar_width=None),
        progress.TextColumn("{task.fields[text]}", markup=False),
        progress.TimeRemainingColumn(compact=True),
    ]


def say_added(added: Added, document: str) -> str:
    state = "added a copy" if added.outcome.duplicate_of else "added"
    if added.outcome.state == "deduplicated":
        state = "already there"
    return f"{state:<13}  {document}  {clean(added.file.shown)}"


def say_wrong(result: Added | Refused | None) -> str | None:
    """What could not be done, if there is anything."""
    if isinstance(result, Refused):
        return say_refused(result)
    if result and result.error:
        return f"not changed    {clean(result.file.shown)}: {clean(result.error.line)} ({result.error.code})"
    return None


def say_refused(refused: Refused) -> str:
    return f"refused        {clean(refused.shown)}: {clean(refused.error.line)} ({refused.error.code})"
