"""Shows the progress of adding and reading files: bars on a terminal; elsewhere a line for each added file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from octavo.cli.local_files import RefusedFile
from octavo.cli.output import clean, open_console, short_id
from octavo.cli.upload_batch import AddedItem, Display, Item
from octavo.core.formatting import format_bytes

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn, TaskID

    from octavo.sandbox import Progress


# Smaller files get no bar, because they finish before anybody could read their names.
OWN_BAR_BYTES = 1 << 20
FEW_FILES = 10
NAME_COLUMNS = 24
# Added to the size of each file, so that the bar moves evenly for large and small files.
FILE_COST_BYTES = 1 << 20
FRAMES_PER_SECOND = 8


class NoDisplay:
    def begin(self, file: Item) -> None: ...
    def progress(self, file: Item, sent: int) -> None: ...
    def end(self, file: Item, result: AddedItem | RefusedFile | None) -> None: ...


class LineDisplay(NoDisplay):
    """Prints the result of each file with the full document id, for output that is not a terminal."""

    def end(self, file: Item, result: AddedItem | RefusedFile | None) -> None:
        del file
        if isinstance(result, AddedItem):
            typer.echo(describe_added(result, str(result.outcome.document_id)))
        if wrong := describe_error(result):
            typer.echo(wrong, err=True)


class BarDisplay:
    """Shows one bar for all files and one for each large file. Results are listed if there are at most ten files."""

    def __init__(self, bars: Bars, files: Sequence[Item]) -> None:
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
        self._bars.advance(self._all, sent - self._sent[file])  # negative when a transfer is retried
        self._sent[file] = sent
        if file in self._own:
            self._bars.update(
                self._own[file], completed=sent, text=f"{format_bytes(sent)} of {format_bytes(file.size)}"
            )

    def end(self, file: Item, result: AddedItem | RefusedFile | None) -> None:
        self._ended += 1
        self.progress(file, file.size + FILE_COST_BYTES)
        self._bars.update(self._all, text=self._count())
        if file in self._own:
            self._bars.remove_task(self._own.pop(file))
        if isinstance(result, AddedItem) and self._files <= FEW_FILES:
            self._bars.console.print(describe_added(result, short_id(result.outcome.document_id)))
        if wrong := describe_error(result):
            self._bars.console.print(wrong, style="red")

    def _count(self) -> str:
        return f"{self._ended:,} of {self._files:,} files"


@contextmanager
def open_display(files: Sequence[Item], *, silent: bool) -> Generator[Display]:
    """Show the progress: bars on a terminal, lines elsewhere, and nothing if `silent` is true."""
    console = open_console(stderr=True)
    if silent:
        yield NoDisplay()
    elif console.is_terminal:
        from rich.progress import Progress

        with Progress(*make_columns(), console=console, transient=True, refresh_per_second=FRAMES_PER_SECOND) as bars:
            yield BarDisplay(bars, files)
    else:
        yield LineDisplay()


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


def describe_added(added: AddedItem, document: str) -> str:
    state = "added a copy" if added.outcome.duplicate_of else "added"
    if added.outcome.state == "deduplicated":
        state = "already there"
    return f"{state:<13}  {document}  {clean(added.file.shown)}"


def describe_error(result: AddedItem | RefusedFile | None) -> str | None:
    """Describe the error of an added or refused file in one line. Returns None if there was no error."""
    if isinstance(result, RefusedFile):
        return describe_refused(result)
    if result and result.error:
        return f"not changed    {clean(result.file.shown)}: {clean(result.error.line)} ({result.error.code})"
    return None


def describe_refused(refused: RefusedFile) -> str:
    return f"refused        {clean(refused.shown)}: {clean(refused.error.line)} ({refused.error.code})"


@contextmanager
def open_reading_bar(name: str) -> Generator[Callable[[Progress], None]]:
    """Show a progress bar for reading a file.

    The bar appears only if progress is reported before the file has been read, so short documents never get one.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    bar = ReadingBar(name)
    try:
        yield bar.show
    finally:
        bar.close()


class ReadingBar:
    def __init__(self, name: str) -> None:
        self._name = name
        self._bars: Bars | None = None

    def show(self, progress: Progress) -> None:
        if self._bars is None and progress.done == progress.total:
            return
        of_all = f" of {progress.total:,}" if progress.total else ""
        text = f"{progress.done:,}{of_all} {progress.unit}"
        if self._bars:
            self._bars.update(self._bars.task_ids[0], completed=progress.done, total=progress.total, text=text)
            return
        self._bars = open_bars()
        self._bars.add_task(clean(self._name), completed=progress.done, total=progress.total, text=text)
        self._bars.start()

    def close(self) -> None:
        if self._bars:
            self._bars.stop()


def open_bars() -> Bars:
    from rich.progress import Progress as Bars

    console = open_console(stderr=True)
    return Bars(*make_columns(), console=console, transient=True, refresh_per_second=FRAMES_PER_SECOND)
