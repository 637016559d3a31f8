"""A chunk knows where it stands on its pages, whatever it was cut from."""

from __future__ import annotations

from octavo.extract.chunks.chunking import BoxFinder, chunk
from octavo.extract.extracted import Block, BlockKind, Box

UPPER, LOWER, NEXT = Box(72, 90.04, 540, 120), Box(72, 400, 540, 600), Box(72, 80, 300, 96)


def block(start: int, end: int, page: int | None, box: Box | None) -> Block:
    return Block(BlockKind.PARAGRAPH, start, end, "", None, page, box)


FINDER = BoxFinder([block(0, 10, 1, UPPER), block(12, 40, 1, LOWER), block(42, 60, 2, NEXT), block(62, 70, 2, None)])


def test_text_has_the_boxes_of_all_blocks_that_it_touches() -> None:
    assert FINDER.boxes_in(0, 60) == ((1, 72, 90.0, 540, 120), (1, *LOWER), (2, *NEXT))
    assert FINDER.boxes_in(12, 40) == ((1, *LOWER),)


def test_a_block_that_is_cut_has_its_whole_box() -> None:
    assert FINDER.boxes_in(20, 45) == ((1, *LOWER), (2, *NEXT))
    assert FINDER.boxes_in(39, 40) == ((1, *LOWER),)


def test_what_lies_between_blocks_or_has_no_place_has_no_box() -> None:
    assert FINDER.boxes_in(10, 12) == ()
    assert FINDER.boxes_in(62, 70) == ()
    assert BoxFinder([block(0, 10, None, UPPER)]).boxes_in(0, 10) == ()


def joined(*boxes: Box) -> list[tuple[float, ...]]:
    blocks = [block(number * 10, number * 10 + 9, 1, box) for number, box in enumerate(boxes)]
    return [box[1:] for box in BoxFinder(blocks).boxes_in(0, len(boxes) * 10)]


def test_adjacent_boxes_become_one() -> None:
    title, text, letter = Box(72, 80, 300, 96), Box(72, 100, 540, 200), Box(90, 120, 99, 130)
    assert joined(title, text, letter) == [(72, 80, 540, 200)]
    assert joined(letter, text, title) == [(72, 80, 540, 200)]


def test_columns_stay_apart_and_so_does_what_is_above_them() -> None:
    title, left, right = Box(72, 80, 540, 96), Box(72, 100, 290, 700), Box(320, 100, 540, 300)
    assert joined(title, left, right) == [title, left, right]


def test_what_stands_far_below_stays_apart() -> None:
    text, foot = Box(72, 100, 540, 600), Box(500, 700, 540, 710)
    assert joined(text, foot) == [text, foot]


def test_a_chunk_brings_its_boxes() -> None:
    first, second = "Words of a page. " * 15, "Words of the next page. " * 15
    blocks = [block(0, len(first), 1, UPPER), block(len(first) + 1, len(first) + 1 + len(second), 2, NEXT)]
    (one,) = chunk(f"{first}\n{second}", blocks)
    assert [box.page for box in one.boxes] == [1, 2]
