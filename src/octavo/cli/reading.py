"""How far a long document is read, on a terminal; elsewhere nothing is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from octavo.cli.displays import PICTURES_A_SECOND, make_columns
from octavo.cli.tables import clean, open_console

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from octavo.sandbox import Progress


@contextmanager
def open_reading(name: str) -> Generator[Callable[[Progress], None]]:
    """A bar from the first time that something is left to do; what is read at once never has one."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    reading = Reading(name)
    try:
        yield reading.show
    finally:
        reading.close()


class Reading:
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
    return Bars(*make_columns(), console=console, transient=True, refresh_per_second=PICTURES_A_SECOND)
