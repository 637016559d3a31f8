"""Text that the first reading misses is found: on coloured backgrounds, sideways, or tiny. Missed text is reported."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from octavo.extract.extracted import Box
from octavo.extract.ocr.grey_sheets import find_blobs, ink_sheet, reading_scale, unread_letters
from octavo.extract.ocr.order import Line
from octavo.extract.ocr.page_recognition import (
    MAY_BE_WRONG,
    MISSED,
    doubt_about,
    has_impossible_letters,
    join_readings,
    recognise_page,
)


def poster() -> Image.Image:
    sheet = Image.new("RGB", (900, 600), "white")
    pen = ImageDraw.Draw(sheet)
    pen.text((60, 60), "Printed below the harbour wall", fill="black", font_size=30)
    pen.rectangle((40, 160, 860, 420), fill=(16, 32, 110))
    pen.text((80, 200), "Evening concert", fill="white", font_size=80)
    pen.text((80, 320), "Tickets at the door", fill=(250, 220, 90), font_size=36)
    return sheet


def text_of(picture: Image.Image) -> str:
    return " ".join(block.text for block in recognise_page(picture, 1, "1").blocks)


@pytest.mark.usefixtures("models_stay_open")
@pytest.mark.parametrize("quarters", [0, 3, pytest.param(1, marks=pytest.mark.long)])
def test_light_letters_on_dark_blue_are_read_in_any_orientation(quarters: int) -> None:
    text = text_of(poster().rotate(90 * quarters, expand=True))
    assert "Evening concert" in text
    assert "Tickets at the door" in text
    assert "harbour wall" in text


def test_a_tiny_picture_is_enlarged_and_read() -> None:
    tiny = Image.new("L", (40, 20), 255)
    ImageDraw.Draw(tiny).text((6, 1), "47", fill=0, font_size=16)
    assert text_of(tiny) == "47"
    assert reading_scale(40, 20) == pytest.approx(6)
    assert reading_scale(1, 1) == pytest.approx(6)


def test_letters_that_were_not_read_are_counted() -> None:
    ink = ink_sheet(poster())
    assert ink.coloured > 0.3
    assert unread_letters(ink, []) > 30
    assert unread_letters(ink, [Box(0, 0, 900, 600)]) == 0
    assert unread_letters(ink_sheet(Image.new("RGB", (300, 200), "navy")), []) == 0


def test_connected_points_are_one_blob() -> None:
    mask = Image.new("L", (20, 10), 0)
    for box in ((1, 1, 2, 8), (6, 1, 7, 8), (1, 8, 7, 8), (12, 2, 14, 4)):
        ImageDraw.Draw(mask).rectangle(box, fill=255)
    assert sorted(blob[:4] for blob in find_blobs(mask)) == [(1, 1, 8, 9), (12, 2, 15, 5)]


def line(text: str, score: float, left: float = 0, right: float = 100) -> Line:
    return Line(text, Box(left, 0, right, 20), score)


def test_a_clearer_reading_replaces_the_line_below_it_and_noise_does_not() -> None:
    bad, good = line("EPUDB 5", 0.74), line("EPUB 3", 0.93)
    assert join_readings([bad], [good]) == [good]
    assert join_readings([good], [bad]) == [good]
    aside, noise = line("Figures", 0.92, 200, 300), line("17", 0.77, 400, 440)
    assert join_readings([good], [aside, noise]) == [good, aside]


def test_missed_letters_and_impossible_signs_make_a_page_unsure() -> None:
    kept = [line("Chunking for documents of all kinds", 0.9)]
    assert doubt_about(kept, kept, unread=0) is None
    assert doubt_about(kept, kept, unread=9) == MISSED
    few = [line("69%", 0.75)]
    assert doubt_about(few, few) == MAY_BE_WRONG
    assert has_impossible_letters([line("\u0905\u091a\u094d\u093f\u0915\u093e\u0930", 0.9)])
    assert not has_impossible_letters([line("\u0905\u0927\u093f\u0915\u093e\u0930\u094b\u0902", 0.9)])
