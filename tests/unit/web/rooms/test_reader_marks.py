"""Places on pages become places on pictures of any size, and the frame of pictures stays as it is."""

from __future__ import annotations

from octavo.web.markdown.windows import Sheet, make_plan
from octavo.web.rooms.reader.text import marks_of, most_common_size

PLAN = make_plan("First\n\nSecond", [Sheet(1, "i", 0, 5, 600, 800), Sheet(2, "ii", 7, 13)])


def test_sides_are_parts_of_the_page() -> None:
    assert marks_of([[1, 60, 80, 300, 400.4]], PLAN) == [(1, 1000, 1000, 5000, 5005)]


def test_a_page_without_a_size_or_that_is_not_there_has_no_marks() -> None:
    assert marks_of([[2, 60, 80, 300, 400], [3, 60, 80, 300, 400]], PLAN) == []


def test_the_frame_has_the_size_of_most_pages() -> None:
    sizes = [(792.0, 612.0), (612.0, 792.0), (612.2, 791.8), (None, None)]
    assert most_common_size(Sheet(n, None, 0, 0, *size) for n, size in enumerate(sizes)) == (612, 792)


def test_a_frame_is_never_a_tower_and_never_missing() -> None:
    assert most_common_size([Sheet(1, None, 0, 0, 100, 9000)]) == (100, 150)
    assert most_common_size([]) == (3, 4)
