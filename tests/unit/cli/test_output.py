"""What is printed fits the screen and cannot take it over."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from rich.cells import cell_len
from rich.console import Console

from octavo.cli.output import clean, make_facts, make_table, share, short_id, short_time

HEAD = ["ID", "TITLE", "STATUS"]
LONG = "A very long title of a document that nobody could ever read in one line " * 3


def lines(table: object, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("title", ["Short", LONG, "資料" * 60], ids=["short", "long", "wide"])
def test_only_the_title_is_cut_and_every_row_is_one_line(width: int, title: str) -> None:
    console = Console(width=width)
    found = lines(make_table(console, HEAD, [["8f1f0b9a", title, "completed"]]), width)
    assert len(found) == 2
    assert max(map(cell_len, found)) <= width
    assert found[1].startswith("8f1f0b9a  ")
    assert found[1].endswith("completed")
    assert ("…" in found[1]) == (cell_len(title) > width - 21)


def test_two_columns_share_what_is_left() -> None:
    assert share(60, {1: 20, 4: 100}) == {1: 20, 4: 40}
    assert share(60, {1: 100, 4: 100}) == {1: 30, 4: 30}
    assert share(5, {1: 100}) == {1: 10}


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("\x1b]0;owned\x07\x1b[2Jtitle", "]0;owned [2Jtitle"),
        ("two\r\nlines\ttabbed", "two lines tabbed"),
        ("c1 \x9b31m", "c1  31m"),
        ("\u202egpj.exe", "gpj.exe"),
        ("half \ud800 a pair", "half   a pair"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_a_title_cannot_take_the_terminal_over(title: str, shown: str) -> None:
    assert clean(title) == shown
    for table in (make_table(Console(width=80), HEAD, [["1", title, "ok"]]), make_facts({"Title": title})):
        assert shown in "\n".join(lines(table, 80))


def test_facts_without_a_value_are_left_out() -> None:
    assert lines(make_facts({"Title": "Notes", "Author": None, "Date": "", "Tags": "a, b"}), 80) == [
        *("Title  Notes", "Tags   a, b")
    ]


def test_a_short_id_is_the_end_where_ids_differ() -> None:
    assert short_id(UUID("0192f0c1-7e11-7d6a-a1c0-6f8f1f0b9a52")) == "1f0b9a52"


def test_times_are_as_short_as_they_can_be() -> None:
    now = datetime(2026, 6, 15, 12, 0, tzinfo=UTC).astimezone()
    assert short_time(now - timedelta(minutes=5), now) == f"{now - timedelta(minutes=5):%H:%M}"
    assert short_time(now - timedelta(days=40), now) == "6 May"
    assert short_time(now - timedelta(days=400), now) == "11 May 2025"
