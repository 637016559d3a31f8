"""Runs become Markdown that shows the same characters, whatever they are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from octavo.extract.markdown.block_writer import Item, Paragraph, Table, write
from octavo.extract.markdown.inline import MARK, Run, inline, safe_link

patient = settings(deadline=None, max_examples=300)
texts = st.text(st.sampled_from("ab1 *_`[]()<>&;#-+.!|~\\:\n=x"), max_size=12)
runs = st.lists(st.builds(Run, texts, bold=st.booleans(), italic=st.booleans(), struck=st.booleans()), max_size=4)


def shown(markdown: str) -> str:
    """What a reader sees, without white space."""
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown)
    text = re.sub(r"<[^<>]*>", "", html)
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(entity, sign)
    return re.sub(r"\s", "", text)


@patient
@given(runs)
def test_every_character_is_shown(given_runs: list[Run]) -> None:
    written = inline(given_runs, is_plain=True)
    assert shown(written) == re.sub(r"\s", "", "".join(run.text for run in given_runs))


@patient
@given(runs)
def test_marks_never_hide_letters(given_runs: list[Run]) -> None:
    expected = re.sub(r"[^ab1x]", "", "".join(run.text for run in given_runs))
    assert re.sub(r"[^ab1x]", "", shown(inline(given_runs))) == expected


@pytest.mark.parametrize(
    ("given_runs", "expected"),
    [
        ([Run("a "), Run("bold", bold=True), Run(" b")], "a **bold** b"),
        ([Run("a"), Run(" bold ", bold=True), Run("b")], "a **bold** b"),
        ([Run("bo", bold=True), Run("ld", bold=True)], "**bold**"),
        ([Run("all", bold=True, italic=True, struck=True)], "***~~all~~***"),
        ([Run("Note:", bold=True), Run("text")], "Note:text"),  # marks there would be shown as stars
        ([Run("see "), Run("the [page]", link="https://x.org"), Run(".")], "see [the \\[page\\]](https://x.org)."),
        ([Run("one\ntwo")], "one  \ntwo"),
        ([Run("2*"), Run("3*4")], "2\\*3\\*4"),
        ([Run("run "), Run("ls -l", code=True)], "run `ls -l`"),
        ([Run("# no heading")], "\\# no heading"),
        ([Run("snake_case and <T>")], "snake_case and \\<T>"),
        ([Run(f"{MARK}# none")], f"{MARK}\\# none"),
        ([Run("  ")], ""),
    ],
)
def test_looks(given_runs: list[Run], expected: str) -> None:
    assert inline(given_runs) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("https://example.org/a(b)", "https://example.org/a%28b%29"),
        ("mailto:ann@example.org", "mailto:ann@example.org"),
        ("javascript:alert(1)", ""),
        ("file:///etc/passwd", ""),
        ("#place", ""),
        ("https://example.org/a b", ""),
        ("https://" + "x" * 3000, ""),
        (None, ""),
    ],
)
def test_only_addresses_of_the_web_and_of_mailboxes_are_links(target: str | None, expected: str) -> None:
    assert safe_link(target) == expected


def test_numbers_that_begin_anew_are_a_new_list() -> None:
    items = [Item(0, "1.", "a"), Item(0, "2.", "b"), Item(0, "1.", "c"), Item(0, "2.", "d")]
    assert write(items) == "1. a\n2. b\n\n1) c\n2) d"
    assert MarkdownIt().render(write(items)).count("<ol>") == 2


def test_lists_nest_below_the_text_of_their_parents() -> None:
    items = [Item(0, "9.", "a"), Item(1, "", "b"), Item(2, "(i)", "c\nd"), Item(1, "3.", "e"), Item(0, "10.", "f")]
    assert write(items) == "9. a\n   - b\n     - (i) c\n       d\n\n   3. e\n10. f"
    assert MarkdownIt().render(write(items)).count("<li>") == 5


def test_cells_keep_to_their_columns() -> None:
    assert write([Table([["a|b", "c\nd"], ["e"]]), Paragraph("after")]) == (
        "| a\\|b | c d |\n| --- | --- |\n| e |  |\n\nafter"
    )
