"""Pages that were recognised take their place among those that have their text in the file."""

from __future__ import annotations

import pytest

from octavo.extract.extracted import BlockKind, Quality, SourceType
from octavo.extract.pdf.page_batches import Batch, PageBlock, PageText, PdfFacts
from tests.support.pdf import assemble

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
