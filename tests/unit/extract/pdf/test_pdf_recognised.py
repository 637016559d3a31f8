"""Pages that were recognised take their place among those that have their text in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.extract.extracted import BlockKind, Quality, SourceType
from octavo.extract.pdf.document import open_document
from octavo.extract.pdf.page_batches import Batch, PageBlock, PageText, PdfFacts
from octavo.extract.pdf.page_text import read_batch
from tests.support.pdf import Pdf, Picture, Words, assemble, paragraph, read_pdf

TEXT = "Water stays in the moss for many weeks after the rain."


def page(number: int, text: str = "", *, pictures: bool = False, recognised: bool = False) -> PageText:
    blocks = (PageBlock(BlockKind.PARAGRAPH, text, size=10.0),) if text else ()
    return PageText(number, str(number), 100.0, 100.0, blocks, pictures, recognised=recognised)


def quality(*pages: PageText) -> Quality:
    facts = PdfFacts(max(one.number for one in pages))
    return assemble(facts, [Batch((one,)) for one in pages]).quality


SCAN, SEEN = page(1, pictures=True), page(1, TEXT, recognised=True)
PHOTO, SEEN_PHOTO = page(2, pictures=True), page(2, pictures=True, recognised=True)


@pytest.mark.parametrize(
    ("pages", "wanted"),
    [
        pytest.param([SCAN, SEEN], Quality.OCR, id="all text is recognised"),
        pytest.param([SCAN, SEEN, page(2, recognised=True)], Quality.OCR, id="and a blank sheet"),
        pytest.param([SCAN, SEEN, page(2, TEXT)], Quality.FULL, id="some text is in the file"),
        pytest.param([SCAN, SEEN, PHOTO, SEEN_PHOTO], Quality.PARTIAL, id="a page without text"),
        pytest.param([SCAN, page(2, TEXT)], Quality.PARTIAL, id="a page that could not be recognised"),
        pytest.param([SCAN, page(1, pictures=True, recognised=True)], Quality.EMPTY, id="nothing"),
    ],
)
def test_quality_says_where_the_text_is_from(pages: list[PageText], wanted: Quality) -> None:
    assert quality(*pages) is wanted


def test_letters_of_the_file_stay_unless_the_picture_says_much_more() -> None:
    stamp = page(1, "Scanned on Monday", pictures=True)
    facts = PdfFacts(1)
    more = assemble(facts, [Batch((stamp,)), Batch((SEEN,))])
    assert (more.markdown, more.quality, more.metadata.extra["pages_by_ocr"]) == (TEXT, Quality.OCR, "1")
    same = assemble(facts, [Batch((stamp,)), Batch((page(1, "Scannod on Monday", recognised=True),))])
    assert (same.markdown, same.quality) == ("Scanned on Monday", Quality.FULL)


def test_a_picture_is_put_together_in_the_same_way() -> None:
    assert assemble(PdfFacts(1), [Batch((SCAN,)), Batch((SEEN,))], SourceType.IMAGE).source_type is SourceType.IMAGE


def test_text_behind_a_scan_is_called_recognised(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(Pdf([[*paragraph(["Amber barges leave the quay at dawn."] * 12, 200), Picture()]]).write())
    assert read_pdf(path).quality is Quality.OCR


def test_noise_behind_a_scan_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(
        Pdf([[*paragraph([";.,'~ B- ._ '12 .-~ '\u00a2 .,;", "-'. ,,_ ~. I!'; ."], 200), Picture()]]).write()
    )
    page = read_batch(path, 1, 1).pages[0]
    assert page.is_unread
    assert not page.blocks


def test_text_on_a_picture_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(Pdf([[Picture(), *paragraph(["Amber barges leave the quay at dawn."] * 12, 200)]]).write())
    assert read_pdf(path).quality is Quality.FULL


def test_words_from_the_letters_of_a_page_are_as_high_as_their_letters(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(Pdf([[Words("Barges leave", top=100, size=10)]]).write())
    with open_document(path) as document, document.page(1) as page:
        _, box = next(one for one in page.letters(by_size=True) if one)
    assert (round(box.top), round(box.bottom)) == (92, 102)
