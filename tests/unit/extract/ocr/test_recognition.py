"""Print on a picture is read with the real engine: columns in their order, also of a sheet on its side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from octavo.extract.extracted import BlockKind, Box
from octavo.extract.ocr.page_recognition import recognise_page
from octavo.extract.pdf.page_batches import PageText
from tests.support.pdf import Words
from tests.support.scans import lines, sheet

LEFT = ["Moss holds the rain for", "weeks. It grows slowly,", "and peat is what is left", "of it after many years."]
RIGHT = ["Reeds clean the water", "that comes down from the", "fields. Birds nest there", "from March to July."]
SCALE = 1.5


def read(picture: Image.Image, language: str = "auto") -> PageText:
    return recognise_page(picture, 1, "1", scale=SCALE, language=language)


def texts(page: PageText) -> list[tuple[BlockKind, str]]:
    return [(block.kind, block.text) for block in page.blocks]


def test_two_columns_below_a_heading_are_read_one_after_the_other(tmp_path: Path) -> None:
    heading = Words("Life in the wetlands", left=60, top=60, size=26)
    columns = [*lines(LEFT, top=110, left=60), *lines(RIGHT, top=110, left=320)]
    page = read(sheet([heading, *columns], tmp_path, height=200))
    assert texts(page) == [
        (BlockKind.HEADING, "Life in the wetlands"),
        (BlockKind.PARAGRAPH, " ".join(LEFT)),
        (BlockKind.PARAGRAPH, " ".join(RIGHT)),
    ]
    assert (page.width, page.height, page.recognised, page.pictures) == (612, 200, True, False)
    title, first, second = page.blocks
    assert title.size == pytest.approx(26, rel=0.15)
    assert first.size == second.size == pytest.approx(12, rel=0.15)
    assert tuple(first.box or ()) == pytest.approx((60, 100, 183, 161), abs=5)
    assert tuple(second.box or ()) == pytest.approx((320, 100, 457, 161), abs=5)


def test_a_sheet_that_lies_on_its_side_is_read_as_if_it_did_not(tmp_path: Path) -> None:
    text = ["The ferry leaves at seven,", "and comes back at noon."]
    note = sheet(lines(text, top=30, left=20), tmp_path, height=80).crop((0, 0, 300, 120))
    page = read(note.rotate(90, expand=True), "en")
    assert texts(page) == [(BlockKind.PARAGRAPH, " ".join(text))]
    # It began 20 points from the left and 18 from the top, which is now the bottom and the left.
    left, _, _, bottom = page.blocks[0].box or Box(0, 0, 0, 0)
    assert (left, 200 - bottom) == pytest.approx((18, 20), abs=5)


def test_the_engine_keeps_no_thread_beside_it_and_tells_nobody_that_it_is_used(tmp_path: Path) -> None:
    count = "import octavo.extract.ocr.load_models, os; print(len(os.listdir('/proc/self/task')))"
    home = {"HOME": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", count], env=home, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "1"
    assert list(tmp_path.rglob("*")) == []


def test_a_blank_sheet_lacks_nothing() -> None:
    blank = read(Image.new("RGB", (300, 200), "ivory"))
    assert (blank.blocks, blank.pictures, blank.recognised) == ((), False, True)
