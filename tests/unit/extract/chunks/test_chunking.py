"""Chunks hold the whole text once, in order, between 200 and 500 words, and do not tear apart what belongs together."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.texts import count_words
from octavo.extract.chunks.chunking import Chunk, chunk
from octavo.extract.extracted import Block, BlockKind, Page
from octavo.extract.markdown import read_blocks
from tests.support.growth import grows_at_most

patient = settings(deadline=None)  # machines that run tests are busy


def prose(count: int, sentence: int = 10) -> str:
    """So many words, in sentences."""
    return " ".join(
        f"word{n}." if n % sentence == 0 else f"{'W' if n % sentence == 1 else 'w'}ord{n}" for n in range(1, count + 1)
    )


def chunk_markdown(markdown: str, pages: tuple[Page, ...] = ()) -> list[Chunk]:
    return chunk(markdown, tuple(read_blocks(markdown)), pages)


def sizes(chunks: list[Chunk]) -> list[int]:
    return [len(one.content.split()) for one in chunks]


def check(markdown: str, chunks: list[Chunk]) -> None:
    position = 0
    for index, one in enumerate(chunks):
        assert one.index == index
        assert one.content == markdown[one.start : one.end]
        assert not markdown[position : one.start].strip(), "something lies between two chunks"
        assert position <= one.start < one.end
        assert one.content.strip()
        assert not one.content[-1].isspace()
        assert len(one.content.split()) <= 500
        position = one.end
    assert not markdown[position:].strip(), "something lies behind the last chunk"


headings = st.integers(1, 6).map(lambda level: "#" * level + " Heading of the section")
paragraphs = st.integers(1, 900).map(prose)
lists = st.integers(1, 80).map(lambda items: "\n".join(f"- item {n} of the list" for n in range(items)))
tables = st.integers(1, 150).map(
    lambda rows: "| a | b |\n|---|---|\n" + "\n".join(f"| cell {n} | x |" for n in range(rows))
)
code = st.integers(1, 300).map(lambda lines: "```\n" + "\n".join(f"    call({n})" for n in range(lines)) + "\n```")
ideographs = st.integers(1, 1500).map(lambda count: ("吾輩は猫である。" * count)[:count])
endless = st.integers(1, 40_000).map(lambda count: "QUJD" * (count // 4 + 1))
documents = st.lists(headings | paragraphs | lists | tables | code | ideographs | endless, max_size=12).map("\n\n".join)


@patient
@given(documents)
def test_chunks_hold_all_of_the_text_once_and_in_order(markdown: str) -> None:
    check(markdown, chunk_markdown(markdown))


@patient
@given(st.text(), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.sampled_from(BlockKind))))
def test_whatever_the_blocks_say_the_text_is_whole(markdown: str, places: list[tuple[int, int, BlockKind]]) -> None:
    blocks = [Block(kind, start, start + length, "title", 1) for start, length, kind in places]
    check(markdown, chunk(markdown, blocks))


@patient
@given(
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 9_000), st.sampled_from(["heading", "table", "list"])))
)
def test_blocks_that_overlap_do_no_harm(places: list[tuple[int, int, str]]) -> None:
    markdown = prose(2500)
    blocks = [Block(BlockKind(kind), start, start + length, "title", 3) for start, length, kind in places]
    check(markdown, chunk(markdown, blocks))


@patient
@given(st.lists(headings | paragraphs, min_size=1, max_size=12).map("\n\n".join))
def test_only_the_end_of_a_section_is_short(markdown: str) -> None:
    chunks = chunk_markdown(markdown)
    for one, following in pairwise(chunks):
        assert len(one.content.split()) >= 200 or following.content.startswith("#")


@patient
@given(st.lists(headings | paragraphs, min_size=1, max_size=12).map("\n\n".join))
def test_main_headings_begin_chunks(markdown: str) -> None:
    """Except where too few words for a chunk come before them, or another heading."""
    starts = {one.start for one in chunk_markdown(markdown)}
    for before, block in pairwise(read_blocks(markdown)):
        is_main = block.kind is BlockKind.HEADING and (block.level or 0) <= 2
        if is_main and before.kind is not BlockKind.HEADING and block.start not in starts:
            before_it = [start for start in starts if start < block.start]
            headings = [one.start for one in read_blocks(markdown) if one.kind is BlockKind.HEADING]
            first = max([0, *(start for start in headings if start < block.start)])
            assert len(markdown[first : block.start].split()) < 200 or max(before_it) > first


@patient
@given(st.lists(paragraphs | lists | tables | code, max_size=8).map("\n\n".join))
def test_tables_and_code_that_fit_are_whole(markdown: str) -> None:
    chunks = chunk_markdown(markdown)
    for block in read_blocks(markdown):
        if block.kind in {BlockKind.TABLE, BlockKind.CODE} and len(block.text.split()) <= 500:
            assert any(one.start <= block.start and block.end <= one.end for one in chunks)


def test_a_long_table_is_cut_between_rows() -> None:
    rows = "\n".join(f"| Row {n}. Next | y |" for n in range(300))
    chunks = chunk_markdown(f"| a | b |\n|---|---|\n{rows}")
    assert len(chunks) > 1
    assert all(one.content.startswith("|") and one.content.endswith("|") for one in chunks)


def test_long_code_keeps_its_indent_where_it_is_cut() -> None:
    code_lines = "\n".join(f"    call({n}, {n})" for n in range(400))
    chunks = chunk_markdown(f"```\n{code_lines}\n```")
    assert len(chunks) > 1
    assert all(one.content.startswith("    call") for one in chunks[1:])


def test_a_long_paragraph_is_cut_behind_sentences() -> None:
    chunks = chunk_markdown(prose(2000))
    assert all(one.content.endswith(".") for one in chunks)
    assert all(200 <= size <= 500 for size in sizes(chunks))


def test_a_paragraph_without_sentences_is_cut_at_spaces() -> None:
    markdown = "word " * 2000
    assert {one for part in chunk_markdown(markdown) for one in part.content.split()} == {"word"}


def test_text_without_spaces_is_cut_all_the_same() -> None:
    japanese = chunk_markdown("吾輩は猫である。名前はまだ無い。" * 200)
    assert all(one.content.endswith("。") and 150 <= one.word_count <= 500 for one in japanese)
    endless_ones = chunk_markdown("QUJD" * 100_000)
    assert all(len(one.content) <= 15_000 for one in endless_ones)


def test_paragraphs_are_preferred_to_sentences() -> None:
    markdown = "\n\n".join(prose(130) for _ in range(8))
    assert {size % 130 for size in sizes(chunk_markdown(markdown))} == {0}


def test_what_is_a_little_too_long_is_halved() -> None:
    assert sizes(chunk_markdown(prose(520))) == [260, 260]


def test_short_sections_go_together_even_across_a_main_heading() -> None:
    short = f"## Part\n\n### Small\n\n{prose(60)}\n\n## Other\n\n{prose(150)}"
    first, second = chunk_markdown(f"{short}\n\n## Last\n\n{prose(300)}")
    assert first.content.startswith("## Part")
    assert second.content.startswith("## Last")


def test_a_document_of_short_sections_has_few_short_chunks() -> None:
    """As many PDFs are: half of their sections are shorter than a chunk."""
    lengths = [90, 260, 120, 150, 700, 60, 180, 240, 110, 130, 400, 80] * 4
    chunks = chunk_markdown("\n\n".join(f"## Section {n}\n\n{prose(size)}" for n, size in enumerate(lengths)))
    assert sum(one.word_count < 200 for one in chunks) <= 0.1 * len(chunks)


def test_a_remnant_goes_with_what_it_belongs_to() -> None:
    markdown = f"## Part\n\n### Long\n\n{prose(300)}\n\n### Remnant\n\nA few words.\n\n## Other\n\n{prose(300)}"
    first, second = chunk_markdown(markdown)
    assert first.content.endswith("A few words.")
    assert second.content.startswith("## Other")


def test_an_introduction_stays_with_what_it_introduces() -> None:
    markdown = f"## Part\n\n### Long\n\n{prose(300)}\n\n### Intro\n\nA few words.\n\n#### Below\n\n{prose(100)}"
    _, second = chunk_markdown(markdown)
    assert second.content.startswith("### Intro")


def test_the_path_says_under_which_headings_a_chunk_begins() -> None:
    markdown = (
        f"Before. {prose(60)}\n\n# Book\n\n## One\n\n{prose(700)}\n\n### Deep\n\n{prose(210)}\n\n## Two\n\n{prose(210)}"
    )
    assert [one.heading_path for one in chunk_markdown(markdown)] == [
        (),
        ("Book", "One"),
        ("Book", "One", "Deep"),
        ("Book", "Two"),
    ]


def test_an_endless_heading_is_not_repeated_endlessly() -> None:
    blocks = [Block(BlockKind.HEADING, 0, 4, "x" * 100_000, 1)]
    (one,) = chunk("# xx\n\ntext", blocks)
    assert len(one.heading_path[0]) == 200


def test_pages_are_those_of_the_first_and_the_last_character() -> None:
    text = prose(300)
    markdown = f"{text}\n\n{text}\n\n{text}"
    length = len(text)
    pages = (
        Page(1, "i", 0, length),
        Page(2, "ii", length, length),  # an empty one
        Page(3, "iii", length + 2, 2 * length + 2),
        Page(4, "iv", 2 * length + 4, 3 * length + 4),
    )
    assert [(one.page_from, one.page_to) for one in chunk(markdown, read_blocks(markdown), pages)] == [
        (1, 1),
        (3, 3),
        (4, 4),
    ]
    (both,) = chunk("a\n\nb", (), (Page(7, "7", 0, 1), Page(8, "8", 3, 4)))
    assert (both.page_from, both.page_to) == (7, 8)


def test_without_pages_there_are_none() -> None:
    (one,) = chunk("text")
    assert (one.page_from, one.page_to) == (None, None)


@pytest.mark.parametrize("markdown", ["", " \n\t\n"])
def test_nothing_makes_no_chunk(markdown: str) -> None:
    assert chunk(markdown) == []


@patient
@given(st.text() | st.text(st.sampled_from("a日ส _-.1é\n")))
def test_words_are_those_of_the_document(text: str) -> None:
    """Two packages that may not import each other count words; they count the same."""
    assert sum(one.word_count for one in chunk(text)) == count_words(text)


@pytest.mark.long  # it compares processor times, which a busy machine distorts
@pytest.mark.parametrize(
    "part",
    [
        "Some words that make a sentence. ",
        "a\n\n",
        "# a\n",
        "### a\nb\n",
        "日本語。",
        "QUJD",
        "| a | b |\n",
        "- a\n",
        "\n",
        " ",
    ],
)
def test_chunking_is_linear(part: str) -> None:
    small, large = ("x" + part * (size // len(part)) for size in (30_000, 120_000))
    fewer, more = list(read_blocks(small)), list(read_blocks(large))
    # Linear is 4, quadratic 16.
    assert grows_at_most(9, lambda: chunk(small, fewer), lambda: chunk(large, more), least=0.002)
