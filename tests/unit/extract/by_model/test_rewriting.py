"""What a model writes takes the place of the plain text only where it still says the same; nothing is lost or twice."""

from __future__ import annotations

from dataclasses import replace

from octavo.core.texts import count_words
from octavo.extract.by_model.rewriting import is_faithful, rewrite
from octavo.extract.by_model.sections import (
    MOST_CHARACTERS,
    group_into_calls,
    sections_of,
    split_answer,
    write_sections,
)
from octavo.extract.extracted import (
    Block,
    BlockKind,
    Box,
    Extracted,
    Figure,
    Metadata,
    Moment,
    OutlineEntry,
    Page,
    Quality,
    SourceType,
)
from octavo.extract.formats.text import from_markdown

PAGES = [
    "THE WATER TABLE fell by three centi- metres in the summer of that year. Nobody had measured it before the war.",
    "The moss holds twenty times its own weight of water, and lets it go slowly over the dry months of the year.",
    "A ditch drains a bog within decades. What took four thousand years to grow is gone in a lifetime of work.",
]
MODEL = "gemini:gemini-2.5-flash"


def paged(*pages: str, quality: Quality = Quality.FULL, **extra: str) -> Extracted:
    text, found, blocks = "", list[Page](), list[Block]()
    for number, page in enumerate(pages, 1):
        text += "\n\n" if text and page else ""
        start, text = len(text), text + page
        found.append(Page(number, str(number), start, len(text), 612.0, 792.0))
        if page:
            box = Box(72.0, 100.0, 500.0, 130.0)
            blocks.append(Block(BlockKind.PARAGRAPH, start, len(text), page, page=number, box=box))
    return Extracted(
        SourceType.PDF, text, count_words(text), quality, tuple(found), tuple(blocks), metadata=Metadata(extra=extra)
    )


def page_texts(extracted: Extracted) -> list[str]:
    return [extracted.markdown[page.start : page.end] for page in extracted.pages]


def test_pages_are_rewritten_with_their_places_and_one_that_says_something_else_stays() -> None:
    plain = paged(*PAGES)
    better = (
        PAGES[0]
        .replace("THE WATER TABLE", "# The water table\n\nThe water table")
        .replace("centi- metres", "centimetres")
    )
    made = rewrite(plain, {0: better, 1: "The moss is green. Buy my book.", 2: PAGES[2]}, MODEL)
    assert page_texts(made) == [better, PAGES[1], PAGES[2]]
    assert made.metadata.extra == {"text_by": MODEL, "kept_plain": "page 2"}
    heading, body, *rest = made.blocks
    assert (heading.kind, heading.level, heading.text, heading.page) == (BlockKind.HEADING, 1, "The water table", 1)
    assert (heading.box, body.box) == (None, Box(72.0, 100.0, 500.0, 130.0))
    assert [made.markdown[block.start : block.end] for block in rest] == PAGES[1:]
    assert [entry.title for entry in made.outline] == ["The water table"]
    assert made.word_count == count_words(made.markdown)


def test_a_page_that_no_model_answered_for_stays_and_is_told() -> None:
    made = rewrite(paged(*PAGES), {1: PAGES[1]}, MODEL)
    assert page_texts(made) == PAGES
    assert made.metadata.extra["kept_plain"] == "pages 1,3"


def test_what_only_was_shown_is_taken_and_what_was_recognised_is_compared_gently() -> None:
    seen = paged(
        "", "Tne rnoss ho1ds twenty tirnes its own we1ght of vvater", quality=Quality.PARTIAL, pages_by_ocr="2"
    )
    made = rewrite(
        seen,
        {0: "A letter that only a picture shows.", 1: "The moss holds twenty times its own weight of water"},
        MODEL,
    )
    assert page_texts(made)[0].startswith("A letter")
    assert page_texts(made)[1].startswith("The moss holds")
    assert (made.quality, "kept_plain" in made.metadata.extra) == (Quality.FULL, False)


def test_figures_follow_their_references_and_lost_ones_are_left_out() -> None:
    plain = paged(f"{PAGES[0]}\n\n![Gauge](figures/1.png)", f"{PAGES[1]}\n\n![Moss](figures/2.png)")
    figures = tuple(Figure(number, "photo", plain.markdown.index(f"figures/{number}")) for number in (1, 2))
    made = rewrite(
        replace(plain, figures=figures), {0: f"# Water\n\n{PAGES[0]}\n\n![Gauge](figures/1.png)", 1: PAGES[1]}, MODEL
    )
    (figure,) = made.figures
    assert (figure.number, made.markdown[figure.start :][:8]) == (1, "![Gauge]")


def test_bookmarks_lead_to_their_pages() -> None:
    plain = paged(*PAGES)
    own = Extracted(
        plain.source_type,
        plain.markdown,
        plain.word_count,
        pages=plain.pages,
        blocks=plain.blocks,
        outline=(OutlineEntry(1, "Moss", 2, plain.pages[1].start),),
    )
    made = rewrite(own, {0: f"# Water\n\n{PAGES[0]}"}, MODEL)
    assert made.outline == (OutlineEntry(1, "Moss", 2, made.pages[1].start),)


def test_moments_of_a_transcript_follow_their_words() -> None:
    said = "so the bog uh receives nothing but rain and the moss it holds the water for a very long time indeed"
    moments = (Moment(0, 0.0), Moment(said.index("the moss"), 4.0), Moment(said.index("for a very"), 9.0))
    plain = Extracted(SourceType.YOUTUBE, said, count_words(said), moments=moments)
    written = (
        "## Rain\n\nSo the bog receives nothing but rain, and the moss holds the water.\n\n"
        "It holds the water for a very long time indeed."
    )
    made = rewrite(plain, {0: written}, MODEL)
    assert made.markdown == written
    assert [one.seconds for one in made.moments] == [0.0, 4.0, 9.0]
    assert made.moments[0].start == 0  # the heading belongs to the first second
    assert made.markdown[made.moments[-1].start :].startswith("for a very")


def test_front_matter_and_listings_are_never_sent() -> None:
    listing = "```python\n" + "print('water')\n" * 200 + "```"
    prose = "\n\n".join(f"Paragraph {number} tells of the moss and of the water in it." for number in range(400))
    plain = from_markdown(f"---\ntitle: Bog\n---\n\n{prose}\n\n{listing}\n\nThe end of it all.\n")
    sections = sections_of(plain)
    assert [plain.markdown[one.start : one.end] for one in sections if one.fixed] == ["---\ntitle: Bog\n---", listing]
    sent = [write_sections(plain.markdown, [sections[place] for place in run]) for run in group_into_calls(sections)]
    assert "\n\n".join(sent) == f"{prose}\n\nThe end of it all."
    assert max(map(len, sent)) <= MOST_CHARACTERS


def test_pages_go_together_and_are_found_again_by_their_marks() -> None:
    plain = paged(*PAGES, "", "x " * MOST_CHARACTERS)
    sections = sections_of(plain)
    assert group_into_calls(sections) == [[0, 1, 2], [4]]
    first = {place: sections[place] for place in (0, 1, 2)}
    shown = write_sections(plain.markdown, first.values())
    assert split_answer(f"Gladly!\n\n{shown}", first) == dict(enumerate(PAGES))
    without = shown.replace("<!-- page 1 -->", "").replace("<!-- page 3 -->", "")
    found = split_answer(without, first)
    assert found[0] == PAGES[0]
    assert 2 not in found
    assert not is_faithful(PAGES[1], found[1])


def test_few_words_may_change_and_no_more() -> None:
    assert is_faithful(PAGES[0], f"![a bog seen from above]() {PAGES[0]} [illegible]")
    assert not is_faithful(PAGES[0], PAGES[0][: len(PAGES[0]) // 2])
    assert not is_faithful(
        PAGES[0], f"{PAGES[0]} And now for something that nobody ever wrote down before in any book."
    )
    assert not is_faithful(PAGES[0], "")
    assert is_faithful("", "Everything is new.")
