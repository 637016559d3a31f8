"""Pages are drawn as they are seen, and never larger than a machine bears."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.extract.pdf.document import MOST_PIXELS, MOST_SIDE, PageError, fitting_scale, open_document, render
from tests.support.pdf import Pdf, Picture, Words


def test_a_page_is_drawn_at_the_scale_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(Pdf([[Words("Ink")], []]).write())
    with open_document(path) as document:
        shown, blank = render(document, 1, 0.5), render(document, 2, 0.5)
    assert (shown.mode, shown.size) == ("RGB", (306, 396))
    assert shown.convert("L").histogram()[255] < 306 * 396
    assert blank.convert("L").histogram()[255] == 306 * 396


def test_a_page_that_is_not_there_cannot_be_drawn(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(Pdf([[Picture()]]).write())
    with open_document(path) as document, pytest.raises(PageError):
        render(document, 2, 1.0)


@pytest.mark.parametrize(
    ("width", "height"),
    [
        pytest.param(200_000.0, 10.0, id="long"),
        pytest.param(200_000.0, 200_000.0, id="large"),
    ],
)
def test_a_page_as_large_as_a_house_is_drawn_small(width: float, height: float) -> None:
    scale = fitting_scale(width, height, 3.0)
    assert max(width, height) * scale <= MOST_SIDE + 1
    assert width * height * scale * scale <= MOST_PIXELS + 1
