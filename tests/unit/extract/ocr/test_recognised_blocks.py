"""Recognised lines become paragraphs, headings and lists with the places and sizes that they have on the page."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from octavo.core.texts import RECOGNISED_LANGUAGES, scripts_of_language
from octavo.extract.extracted import BlockKind, Box
from octavo.extract.ocr.blocks import blocks_of
from octavo.extract.ocr.grey_sheets import (
    MOST_PIXELS,
    before_straightening,
    has_ink,
    reading_scale,
    straightened,
    tilt_of,
)
from octavo.extract.ocr.order import Line
from octavo.extract.ocr.scripts import UprightSheet
from octavo.extract.pdf.page_batches import PageBlock

PROSE = [
    "The marsh keeps its water for a long and dry summer, and gives it",
    "back when the river is low; nobody has to open any gates for that,",
    "which is why the people of the valley never built one.",
]


def line(text: str, base: float, *, left: float = 50, size: float = 20, width: float | None = None) -> Line:
    """As boxes are around letters that reach far up and down, which all lines of these tests have."""
    across = width if width is not None else len(text) * size / 2
    return Line(text, Box(left, base - 0.89 * size, left + across, base + 0.37 * size))


def paragraph(first: float, *, left: float = 50) -> list[Line]:
    return [line(text, first + 25 * number, left=left) for number, text in enumerate(PROSE)]


def said(blocks: list[PageBlock]) -> list[tuple[BlockKind, str]]:
    return [(block.kind, block.text) for block in blocks]


def test_a_wider_gap_ends_a_paragraph_although_its_last_line_is_long() -> None:
    blocks = blocks_of([*paragraph(100), *paragraph(100 + 3 * 25 + 7)])
    assert said(blocks) == [(BlockKind.PARAGRAPH, " ".join(PROSE))] * 2
    assert [block.lines for block in blocks] == [3, 3]


def test_what_is_set_larger_is_a_heading_and_sizes_are_those_of_the_page() -> None:
    blocks = blocks_of([line("A large, early map", 60, size=40), *paragraph(120)], scale=2.0)
    assert [(block.kind, block.size) for block in blocks] == [(BlockKind.HEADING, 20), (BlockKind.PARAGRAPH, 10)]


def test_a_number_before_a_short_line_makes_it_a_heading_and_one_before_a_row_of_lines_a_list() -> None:
    lines = [
        line("2.1 Springs, (early maps)", 50),
        *paragraph(100),
        line("1. jug", 230),
        line("2. plough", 255),
        line("• a yellow jug", 330),
    ]
    assert said(blocks_of(lines)) == [
        (BlockKind.HEADING, "2.1 Springs, (early maps)"),
        (BlockKind.PARAGRAPH, " ".join(PROSE)),
        (BlockKind.LIST, "1. jug\n2. plough"),
        (BlockKind.LIST, "- a yellow jug"),
    ]


def test_rows_of_cells_stay_rows() -> None:
    rows = [("rye, (early)", "14"), ("barley, (early)", "7"), ("spelt, (early)", "90")]
    cells = [line(text, 100 + 25 * n, left=50 + 300 * m) for n, row in enumerate(rows) for m, text in enumerate(row)]
    assert said(blocks_of(cells)) == [(BlockKind.PARAGRAPH, "rye, (early) 14\nbarley, (early) 7\nspelt, (early) 90")]


def test_what_runs_up_the_edge_of_a_page_comes_last_and_is_no_heading() -> None:
    stamp = Line("version 3", Box(5, 40, 35, 400))
    assert said(blocks_of([stamp, *paragraph(100)]))[-1] == (BlockKind.PARAGRAPH, "version 3")


def test_columns_of_a_right_to_left_script_are_read_from_the_right() -> None:
    texts = ["שלום לכולם כאן בעמק הרחב", "המים נשארים באדמה כל הקיץ", "והציפורים חוזרות בכל אביב"]
    right = [line(text, 100 + 26 * row, left=400) for row, text in enumerate(texts)]
    left = [line(f"{text} עוד", 100 + 26 * row, left=50, width=300) for row, text in enumerate(texts)]
    first, second = blocks_of([*left, *right])
    assert first.text == " ".join(texts)
    assert (first.box or Box(0, 0, 0, 0)).left == 400
    assert second.text.endswith("עוד")


def test_signs_of_markdown_are_only_signs() -> None:
    (block,) = blocks_of([line("a *rough* [guess](not a link) for <b>you</b>", 100)])
    assert block.text == "a \\*rough\\* [guess\\](not a link) for \\<b>you\\</b>"


def test_a_place_on_a_turned_sheet_is_where_it_lay() -> None:
    box = Box(10, 20, 30, 60)
    assert UprightSheet([], 100, 200).before_rotation(box) == box
    assert UprightSheet([], 100, 200, 1).before_rotation(Box(20, 70, 60, 90)) == box
    assert UprightSheet([], 100, 200, 2).before_rotation(Box(70, 140, 90, 180)) == box
    assert UprightSheet([], 100, 200, 3).before_rotation(Box(140, 10, 180, 30)) == box


def grey_sheet() -> Image.Image:
    """Shadows, a dark edge and grain, as scanners make them."""
    sheet = Image.blend(Image.new("L", (600, 800), 220), Image.linear_gradient("L").resize((600, 800)), 0.1)
    sheet.paste(30, (0, 0, 12, 800))
    return Image.blend(sheet, Image.effect_noise(sheet.size, 25), 0.05)


def test_an_empty_sheet_has_no_ink_and_one_with_a_number_has() -> None:
    sheet = grey_sheet()
    assert not has_ink(sheet)
    ImageDraw.Draw(sheet).text((290, 740), "12", fill=60, font_size=20)
    assert has_ink(sheet)


def test_a_language_is_read_with_the_models_of_its_scripts() -> None:
    assert scripts_of_language("de") == ("Latin",)
    assert scripts_of_language("sr") == ("Cyrillic", "Latin")
    assert scripts_of_language("zh") == ("HanS", "HanT")
    assert {"en", "zh", "ja", "ru", "ar", "hi", "ko", "th"} < RECOGNISED_LANGUAGES
    assert all(scripts_of_language(language) for language in RECOGNISED_LANGUAGES)


@pytest.mark.parametrize(
    "size",
    [(30, 20), (1700, 2200), (12000, 9000), (1000, 30000), (20, 9000)],
    ids=lambda size: "x".join(map(str, size)),
)
def test_pictures_of_any_shape_are_read_at_a_bearable_size(size: tuple[int, int]) -> None:
    scale = reading_scale(*size)
    width, height = (max(1, round(side * scale)) for side in size)
    assert width * height <= MOST_PIXELS * 1.01


@pytest.mark.parametrize("degrees", [-3, 20, 85, *(pytest.param(one, marks=pytest.mark.long) for one in (-12, 2))])
def test_the_tilt_of_a_page_is_found_and_boxes_are_where_they_were(degrees: int) -> None:
    page = Image.new("L", (700, 500), 255)
    pen = ImageDraw.Draw(page)
    for row in range(40, 460, 30):
        pen.text((40, row), "rivers run to the sea and back again " * 2, fill=0, font_size=18)
    tilted = page.rotate(degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=255)
    tilt = tilt_of(tilted)
    assert abs(tilt + (degrees if degrees < 45 else degrees - 90)) <= 0.5
    straight = straightened(tilted, tilt)
    middle = Box(straight.width / 2 - 5, straight.height / 2 - 5, straight.width / 2 + 5, straight.height / 2 + 5)
    found = before_straightening(middle, tilt, tilted.size, straight.size)
    assert abs((found.left + found.right) / 2 - tilted.width / 2) < 1
    assert abs((found.top + found.bottom) / 2 - tilted.height / 2) < 1


def test_a_level_page_and_a_picture_have_no_tilt() -> None:
    page = Image.new("L", (600, 300), 255)
    for row in range(30, 270, 30):
        ImageDraw.Draw(page).text((30, row), "level words in a row", fill=0, font_size=18)
    assert tilt_of(page) == 0
    assert tilt_of(Image.effect_noise((300, 300), 60)) == 0
