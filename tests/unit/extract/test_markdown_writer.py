"""Runs become Markdown that shows the same characters, whatever they are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from octavo.extract.markdown.block_writer import Item, Paragraph, Table, write_blocks
from octavo.extract.markdown.inline import PAGE_BREAK, TextRun, inline, safe_link

patient = settings(deadline=None, max_examples=300)
texts = st.text(st.sampled_from("ab1 *_`[]()<>&;#-+.!|~\\:\n=x"), max_size=12)
runs = st.lists(st.builds(TextRun, texts, bold=st.booleans(), italic=st.booleans(), struck=st.booleans()), max_size=4)


def shown(markdown: str) -> str:
    """What a reader sees, without white space."""
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown)
    text = re.sub(r"<[^<>]*>", "", html)
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(entity, sign)
    return re.sub(r"\s", "", text)


@patient
@given(runs)
def test_every_character_is_shown(given_runs: list[TextRun]) -> None:
    written = inline(given_runs, is_plain=True)
    assert shown(written) == re.sub(r"\s", "", "".join(run.text for run in given_runs))


@patient
@given(runs)
def test_marks_never_hide_letters(given_runs: list[TextRun]) -> None:
    expected = re.sub(r"[^ab1x]", "", "".join(run.text for run in given_runs))
    assert re.sub(r"[^ab1x]", "", shown(inline(given_runs))) == expected


@pytest.mark.parametrize(
    ("given_runs", "expected"),
    [
        ([TextRun("a "), TextRun("bold", bold=True), TextRun(" b")], "a **bold** b"),
        ([TextRun("a"), TextRun(" bold ", bold=True), TextRun("b")], "a **bold** b"),
        ([TextRun("bo", bold=True), TextRun("ld", bold=True)], "**bold**"),
        ([TextRun("all", bold=True, italic=True, struck=True)], "***~~all~~***"),
        ([TextRun("Note:", bold=True), TextRun("text")], "Note:text"),  # marks there would be shown as stars
        (
            [TextRun("see "), TextRun("the [page]", link="https://x.org"), TextRun(".")],
            "see [the \\[page\\]](https://x.org).",
        ),
        ([TextRun("one\ntwo")], "one  \ntwo"),
        ([TextRun("2*"), TextRun("3*4")], "2\\*3\\*4"),
        ([TextRun("run "), TextRun("ls -l", code=True)], "run `ls -l`"),
        ([TextRun("# no heading")], "\\# no heading"),
        ([TextRun("snake_case and <T>")], "snake_case and \\<T>"),
        ([TextRun(f"{PAGE_BREAK}# none")], f"{PAGE_BREAK}\\# none"),
        ([TextRun("  ")], ""),
    ],
)
def test_looks(given_runs: list[TextRun], expected: str) -> None:
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
    assert write_blocks(items) == "1. a\n2. b\n\n1) c\n2) d"
    assert MarkdownIt().render(write_blocks(items)).count("<ol>") == 2


def test_lists_nest_below_the_text_of_their_parents() -> None:
    items = [Item(0, "9.", "a"), Item(1, "", "b"), Item(2, "(i)", "c\nd"), Item(1, "3.", "e"), Item(0, "10.", "f")]
    assert write_blocks(items) == "9. a\n   - b\n     - (i) c\n       d\n\n   3. e\n10. f"
    assert MarkdownIt().render(write_blocks(items)).count("<li>") == 5


def test_cells_keep_to_their_columns() -> None:
    assert write_blocks([Table([["a|b", "c\nd"], ["e"]]), Paragraph("after")]) == (
        "| a\\|b | c d |\n| --- | --- |\n| e |  |\n\nafter"
    )
