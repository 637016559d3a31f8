"""All pages are asked for, answers that were cut off are asked for again in parts, and what is missing is told."""

from __future__ import annotations

import pytest

from octavo.core.errors import TokenLimit
from octavo.extract.by_model import Answer, CallLimits, PageRange, read_pages
from octavo.extract.by_model.sections import find_page_markers, page_marker


class Model:
    """Reads pages that it makes up, and stops in the middle of an answer that is too long for it."""

    def __init__(self, most_pages: int, blind: frozenset[int] = frozenset()) -> None:
        self._most_pages = most_pages
        self._blind = blind
        self.calls: list[PageRange] = []

    async def read(self, pages: PageRange) -> Answer:
        self.calls.append(pages)
        numbers = range(pages.first, pages.last + 1)
        shown = [number for number in numbers if number not in self._blind][: self._most_pages]
        return Answer("\n\n".join(map(page, shown)), whole=len(numbers) <= self._most_pages)


def page(number: int) -> str:
    return f"{page_marker(number)}\n\n" + " ".join(f"On page {number} word {word} is said." for word in range(30))


def whole(pages: int) -> str:
    return "\n\n".join(map(page, range(1, pages + 1)))


async def test_a_short_document_is_one_call() -> None:
    model = Model(200)
    reading = await read_pages(model, [300] * 40)
    assert (model.calls, reading.markdown, reading.missing) == ([PageRange(1, 40)], whole(40), ())


async def test_a_long_one_is_joined() -> None:
    model = Model(100)
    reading = await read_pages(model, [300] * 320)
    assert [pages.last for pages in model.calls] == [100, 190, 280, 320]
    assert reading.markdown == whole(320)
    assert list(find_page_markers(reading.markdown)) == list(range(1, 321))
    assert None not in reading.seams


async def test_an_answer_that_was_cut_off_is_asked_for_in_parts() -> None:
    model = Model(20)
    reading = await read_pages(model, [300] * 150)
    assert (reading.markdown, reading.missing) == (whole(150), ())
    assert len(model.calls) < 40


async def test_a_page_that_no_answer_can_hold_is_an_error() -> None:
    with pytest.raises(TokenLimit, match="page 1"):
        await read_pages(Model(0), [300] * 3)


async def test_pages_that_the_model_left_out_are_told() -> None:
    reading = await read_pages(Model(10, blind=frozenset({4, 17})), [1] * 30, CallLimits(0, 10, 2))
    assert reading.missing == (4, 17)
