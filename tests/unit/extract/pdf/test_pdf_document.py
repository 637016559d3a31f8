"""Pages become one document: headings in order, nothing that every page repeats, and batches leave no trace."""

from __future__ import annotations

import re
from pathlib import Path

import pypdfium2
import pytest

from octavo.core.errors import BadInput, Defect, Empty, Encrypted
from octavo.extract.extracted import BlockKind, Box, Extracted
from octavo.extract.pdf.document import open_document
from octavo.extract.pdf.page_batches import (
    Batch,
    PageBlock,
    PageText,
    batch_from_json,
    batch_ranges,
    batch_to_json,
    facts_from_json,
    facts_to_json,
    unreadable,
)
from octavo.extract.pdf.page_text import open_pdf, read_batch
from tests.support.pdf import Bookmark, Part, Pdf, Picture, Words, assemble, paragraph, read_pdf

PROSE = [
    "The library keeps every page where a reader can find it again, and it says",
    "of every sentence on which page it was found, so that nobody has to believe",
    "what they can look up themselves. It keeps the order of the columns, and the",
    "rows of tables stay rows.",
]


def write(folder: Path, document: Pdf | bytes, password: str | None = None) -> Path:
    path = folder / "an object without a name"
    path.write_bytes(document if isinstance(document, bytes) else document.write(password))
    return path


def headings(extracted: Extracted) -> list[tuple[int | None, str, int | None]]:
    return [(one.level, one.text, one.page) for one in extracted.blocks if one.kind is BlockKind.HEADING]


def section(title: str, size: float, top: float = 90) -> list[Part]:
    return [Words(title, top=top, size=size, font="bold"), *paragraph(PROSE, top + 30)]


def test_levels_follow_the_size_of_letters(tmp_path: Path) -> None:
    pages = [
        [*section("First part", 20), *section("A chapter", 15, 250), *section("Details", 12.5, 410)],
        [*section("Second part", 20), *section("Another chapter", 15, 250), *section("More details", 12.5, 410)],
    ]
    assert headings(read_pdf(write(tmp_path, Pdf(pages)))) == [
        (1, "First part", 1),
        (2, "A chapter", 1),
        (3, "Details", 1),
        (1, "Second part", 2),
        (2, "Another chapter", 2),
        (3, "More details", 2),
    ]


def test_numbers_say_the_level_whatever_the_title_page_looks_like(tmp_path: Path) -> None:
    title: list[Part] = [Words("On Pages", top=200, size=40, font="bold"), Words("A study", top=300, size=25)]
    pages = [
        [*title, *paragraph(PROSE, 400)],
        *([*section(f"{n} Part", 18), *section(f"{n}.1 Chapter", 14, 250)] for n in (1, 2, 3)),
    ]
    levels = {text: level for level, text, _ in headings(read_pdf(write(tmp_path, Pdf(pages))))}
    assert [levels[f"{n} Part"] for n in (1, 2, 3)] == [1, 1, 1]
    assert [levels[f"{n}.1 Chapter"] for n in (1, 2, 3)] == [2, 2, 2]


def test_bookmarks_say_what_is_a_heading_and_of_which_level(tmp_path: Path) -> None:
    pages = [
        [*section("Preface", 12), Words("Plain words", top=300, size=11), *paragraph(PROSE, 340)],
        [*section("1. The  Chapter", 30)],
    ]
    bookmarks = [Bookmark(1, "The Chapter", 2), Bookmark(2, "plain words", 1), Bookmark(3, "Preface", 1)]
    extracted = read_pdf(write(tmp_path, Pdf(pages, bookmarks=bookmarks)))
    assert headings(extracted) == [(3, "Preface", 1), (2, "Plain words", 1), (1, "1. The Chapter", 2)]
    assert [entry.title for entry in extracted.outline] == ["The Chapter", "plain words", "Preface"]
    starts = [extracted.markdown[entry.start :].split("\n")[0] for entry in extracted.outline]
    assert starts == ["# 1. The Chapter", "## Plain words", "### Preface"]


def test_the_lines_of_a_printed_table_of_contents_are_no_headings(tmp_path: Path) -> None:
    contents = [Words(f"Chapter {name} {10 * n}", top=120 + 40 * n, size=15) for n, name in enumerate("ABCD", 1)]
    pages: list[list[Part]] = [
        [*section("Contents", 20, 60), *contents],
        *(section(f"Chapter {name}", 20) for name in "ABCD"),
    ]
    found = headings(read_pdf(write(tmp_path, Pdf(pages))))
    assert [text for _, text, _ in found] == ["Contents", "Chapter A", "Chapter B", "Chapter C", "Chapter D"]


def running_page(number: int) -> list[Part]:
    head = "The Title of the Book" if number % 2 else f"Chapter {number // 10}"
    return [
        Words(head, top=40, size=9),
        *paragraph([f"Page {number} has words of its own.", *PROSE], 120),
        Words(str(number), left=300, top=760, size=9),
    ]


def test_heads_feet_and_page_numbers_are_not_text(tmp_path: Path) -> None:
    extracted = read_pdf(write(tmp_path, Pdf([running_page(number) for number in range(1, 21)])))
    assert "Title of the Book" not in extracted.markdown
    assert "Chapter" not in extracted.markdown
    starts = [block.text.split(" has")[0] for block in extracted.blocks if block.text.startswith("Page")]
    assert starts == [f"Page {n}" for n in range(1, 21)]


def test_what_is_alone_on_its_page_is_not_a_head(tmp_path: Path) -> None:
    extracted = read_pdf(write(tmp_path, Pdf([[Words(f"Page {number}", top=40)] for number in range(1, 6)])))
    assert extracted.pages_with_text == 5


def test_a_title_on_every_slide_stays(tmp_path: Path) -> None:
    slides: list[list[Part]] = [
        [Words("Our plan", top=60, size=28), *paragraph([f"Point {number}", *PROSE], 200)] for number in range(6)
    ]
    assert len(headings(read_pdf(write(tmp_path, Pdf(slides))))) == 6


@pytest.fixture(scope="module")
def long_document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def page(number: int) -> list[Part]:
        if number % 50 == 7:
            return []
        if number % 50 == 8:
            return [Picture()]
        title = section(f"{number // 10 + 1} Part", 18) if number % 10 == 1 else section(f"{number}.1 Chapter", 14)
        return [*running_page(number)[:1], *title, *running_page(number)[-1:]]

    pages = [page(number) for number in range(1, 301)]
    return write(tmp_path_factory.mktemp("long"), Pdf(pages, labels=[(0, "<</S/r>>"), (8, "<</S/D>>")]))


def test_letters_are_at_their_place_on_pages_that_inherit_their_size(tmp_path: Path) -> None:
    document = Pdf([[Words("brick", left=100, top=200)]]).write()
    area = b"/MediaBox[0 0 612 792]"
    document = document.replace(area, b"").replace(b"<</Type/Pages", b"<</Type/Pages/MediaBox[0 0 595 842]")
    document = document.replace(b"startxref", b"lost")  # the places of the objects have changed
    with open_document(write(tmp_path, document)) as opened, opened.page(1) as page:
        first = page.characters().box(0)
        assert page.size == (595, 842)
    assert first
    assert (round(first.left), round(first.bottom)) == (100, 252)  # the page is 50 points higher


@pytest.mark.parametrize("size", [64, *(pytest.param(size, marks=pytest.mark.long) for size in (7, 300))])
def test_borders_of_batches_change_nothing(long_document: Path, size: int) -> None:
    extracted = read_pdf(long_document, size=size)
    assert extracted == read_pdf(long_document)
    assert len(extracted.pages) == 300
    assert extracted.metadata.extra["pages_for_ocr"] == "8,58,108,158,208,258"


def test_batches_cover_every_page_once_and_have_the_same_borders_wherever_one_starts() -> None:
    assert list(batch_ranges(250, size=100)) == [(1, 100), (101, 200), (201, 250)]
    assert list(batch_ranges(250, 101, size=100)) == [(101, 200), (201, 250)]
    assert list(batch_ranges(250, 150, size=100)) == [(101, 200), (201, 250)]
    assert list(batch_ranges(1, size=100)) == [(1, 1)]


def test_records_survive_json(long_document: Path) -> None:
    facts = open_pdf(write(long_document.parent, Pdf([[*paragraph(PROSE, 99)]], [Bookmark(1, "Ä\u2028", 1)])))
    assert facts_from_json(facts_to_json(facts)) == facts
    batch = read_batch(write(long_document.parent, Pdf([[*paragraph(PROSE, 99)], [Picture()]])), 1, 2)
    assert batch_from_json(batch_to_json(batch)) == batch
    assert b"\n" not in batch_to_json(batch)


def test_whole_numbers_are_numbers() -> None:
    """A program that reads JSON cannot know that the number 558 should have been written as 558.0."""
    block = PageBlock(BlockKind.IMAGE, "", Box(319.5, 324.25, 558.0, 543.0), 12.0)
    page = PageText(1, "1", 612.0, 792.0, blocks=(block,))
    written = batch_to_json(Batch((page,)))
    assert b".0" in written
    read = batch_from_json(re.sub(rb"[.]0\b", b"", written))
    assert read.pages == (page,)
    assert type(read.pages[0].width) is float
    box = read.pages[0].blocks[0].box
    assert box is not None
    assert [type(side) for side in box] == [float] * 4


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[{}]",
        b"[" * 100_000,
        batch_to_json(unreadable(1, 1, "")).replace(b'"width":null', b'"width":1e999'),
        batch_to_json(unreadable(1, 1, "")).replace(b'"width":null', b'"width":true'),
        batch_to_json(unreadable(1, 1, "")).replace(b'"number":1', b'"number":"1"'),
        batch_to_json(unreadable(1, 1, "")).replace(b'"blocks":[]', b'"blocks":[7]'),
    ],
    ids=["nothing", "no page", "too deep", "no number", "no size", "wrong type", "no block"],
)
def test_a_batch_that_is_none_is_refused(document: bytes) -> None:
    with pytest.raises(Defect):
        batch_from_json(document)


def test_without_layout_the_text_is_there_all_the_same(tmp_path: Path) -> None:
    pages = [running_page(number) for number in range(1, 4)]
    path = write(tmp_path, Pdf(pages, bookmarks=[Bookmark(1, "Page 2 has words of its own", 2)]))
    facts = open_pdf(path)
    extracted = assemble(facts, [read_batch(path, 1, 3, layout=False)])
    assert [page.width for page in extracted.pages] == [612.0] * 3
    assert all(f"Page {number} has words of its own" in extracted.markdown for number in (1, 2, 3))
    assert extracted.metadata.extra["pages_without_layout"] == "1-3"
    assert extracted.outline[0].page == 2


def test_pages_that_cannot_be_read_are_counted_and_the_others_are_there(tmp_path: Path) -> None:
    path = write(tmp_path, Pdf([running_page(number) for number in range(1, 5)]))
    batches = [read_batch(path, 1, 2), unreadable(3, 3, "It crashed."), read_batch(path, 4, 4)]
    extracted = assemble(open_pdf(path), batches)
    assert extracted.quality == "partial"
    assert (extracted.pages_with_text, extracted.metadata.extra["pages_failed"]) == (3, "3")


def test_a_document_of_which_no_page_can_be_read_is_damaged(tmp_path: Path) -> None:
    facts = open_pdf(write(tmp_path, Pdf([running_page(1), running_page(2)])))
    with pytest.raises(BadInput, match="none of its pages can be read"):
        assemble(facts, [unreadable(1, 2, "It crashed.")])


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_that_lies_on_its_side_keeps_its_text(tmp_path: Path, degrees: int) -> None:
    document = pypdfium2.PdfDocument(Pdf([paragraph(PROSE * 3, 120)]).write())
    document[0].set_rotation(degrees)  # pyright: ignore[reportUnknownMemberType]
    document.save(tmp_path / "turned.pdf")  # pyright: ignore[reportUnknownMemberType]
    letters = "".join(read_pdf(tmp_path / "turned.pdf").markdown.split())
    assert sorted(letters) == sorted("".join(" ".join(PROSE * 3).split()))


@pytest.mark.parametrize(("given", "said"), [(None, "Enter the password"), ("wrong", "The password is wrong")])
def test_a_protected_file_asks_for_its_password(tmp_path: Path, given: str | None, said: str) -> None:
    path = write(tmp_path, Pdf([running_page(1)]), "secret")
    with pytest.raises(Encrypted, match=said):
        open_pdf(path, given)
    with pytest.raises(Encrypted, match=said):
        read_batch(path, 1, 1, given)


def test_a_password_opens_a_protected_file(tmp_path: Path) -> None:
    document = Pdf([running_page(1)], info={"Title": "Secret pages"})
    extracted = read_pdf(write(tmp_path, document, "secret"), "secret")
    assert extracted == read_pdf(write(tmp_path, document))
    assert extracted.metadata.title == "Secret pages"


def test_what_only_its_owner_may_change_can_be_read_by_everybody(tmp_path: Path) -> None:
    path = write(tmp_path, Pdf([running_page(1)]), "")
    assert open_pdf(path).encrypted
    assert "words of its own" in read_pdf(path).markdown


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="damaged"):
        open_pdf(write(tmp_path, b"%PDF-1.7\n nothing of a PDF behind it"))


def test_a_file_that_lost_its_table_is_repaired(tmp_path: Path) -> None:
    whole = Pdf([running_page(1)]).write()
    broken = whole[: whole.index(b"xref")] + whole[whole.index(b"trailer") : whole.index(b"startxref")]
    assert "words of its own" in read_pdf(write(tmp_path, broken)).markdown


def test_bytes_before_the_beginning_do_no_harm(tmp_path: Path) -> None:
    assert "words of its own" in read_pdf(write(tmp_path, b"junk\n" + Pdf([running_page(1)]).write())).markdown


def test_a_file_without_pages_is_empty(tmp_path: Path) -> None:
    with pytest.raises(Empty, match="no pages"):
        open_pdf(write(tmp_path, Pdf([])))


def test_bookmarks_in_a_circle_end(tmp_path: Path) -> None:
    bookmarks = [Bookmark(1, "First", 1), Bookmark(1, "Second", 1)]
    document = Pdf([running_page(1)], bookmarks=bookmarks).write()
    circle = document.replace(b"/Prev ", b"/Next ")
    facts = open_pdf(write(tmp_path, circle))
    assert [bookmark.title for bookmark in facts.bookmarks] == ["First", "Second"]
    assert "words of its own" in read_pdf(write(tmp_path, circle)).markdown
