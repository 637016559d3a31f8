"""Reads marks that are drawn as shapes instead of being printed as letters: bullets, check boxes and underscores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, Shape, TextRun, Word
from octavo.extract.pdf.letters import has_right_to_left
from octavo.extract.pdf.lines import is_inside, is_monospaced

_BULLET_SIZE = 0.12, 0.75  # as shares of the letter size
_MOST_UNEQUAL = 0.25  # as a share of the width
_TO_TEXT = 0.15, 3.5  # the space between a bullet and its text, as multiples of the letter size
_SAME_PLACE = 1.0  # points
_LEAST_BULLETS = 2
_MOST_SHAPES, _MOST_MARKS = 1500, 300
_DISC = 5.0, 30.0  # points
_MOST_OF_DISC = 2.5  # as a multiple of the height of its number
_CHECK_BOX = 5.0, 18.0  # points
_BOX_SIZE = 0.55, 1.6  # as a share of the letter size
_UNDERSCORE = 1.5, 9.0  # points
_THIN = 1.3
_TOUCHING = 1.2
_BELOW = 0.55  # an underscore is below this share of the height of a line


def with_drawn_marks(page: PageContent, images: Sequence[Box]) -> PageContent:
    """Add drawn bullets, check boxes and underscores to the text of a page.

    Also adds full stops to list numbers that are printed on discs.
    """
    small = [one.box for one in page.shapes if _is_small(one)] if len(page.shapes) <= _MOST_SHAPES else []
    if strokes := [box for box in small if _is_underscore(box)][:_MOST_MARKS]:
        page = replace(page, runs=tuple(_with_underscores(run, strokes) for run in page.runs))
    if any(map(_is_short_number, page.runs)):
        filled = (one.box for one in page.shapes[:_MOST_SHAPES] if one.filled and one.curved)
        discs = [box for box in (*filled, *images) if _is_disc(box)][:_MOST_MARKS]
        page = replace(page, runs=tuple(_with_full_stop(run, discs) for run in page.runs)) if discs else page
    dots = [box for box in [*small, *images] if _is_square(box)][:_MOST_MARKS]
    bullets = tuple(_bullets(page.runs, dots)) if len(dots) >= _LEAST_BULLETS else ()
    squares = [one.box for one in page.shapes[:_MOST_SHAPES] if one.stroked and not one.curved and _is_box(one.box)]
    boxes = tuple(_check_boxes(page.runs, squares[:_MOST_MARKS])) if len(squares) >= _LEAST_BULLETS else ()
    return replace(page, runs=(*page.runs, *bullets, *boxes)) if bullets or boxes else page


def _is_small(shape: Shape) -> bool:
    return (shape.filled or shape.is_ruling) and shape.box.right - shape.box.left < _UNDERSCORE[1]


def _is_underscore(box: Box) -> bool:
    return box.bottom - box.top < _THIN and box.right - box.left > _UNDERSCORE[0]


def _is_square(box: Box) -> bool:
    wide, high = box.right - box.left, box.bottom - box.top
    return 1 < wide < _UNDERSCORE[1] and abs(wide - high) <= _MOST_UNEQUAL * wide


def _is_box(box: Box) -> bool:
    wide, high = box.right - box.left, box.bottom - box.top
    return _CHECK_BOX[0] < wide < _CHECK_BOX[1] and abs(wide - high) <= _MOST_UNEQUAL * wide


def _check_boxes(runs: Sequence[TextRun], squares: Sequence[Box]) -> Iterator[TextRun]:
    """Yield a text run for each empty square with a label directly to its right."""
    for box in dict.fromkeys(squares):
        middle, size = (box.top + box.bottom) / 2, box.right - box.left
        level = [run for run in runs if run.box.top < middle < run.box.bottom]
        after = min((run for run in level if run.box.left > box.right - _SAME_PLACE), default=None, key=_left)
        is_empty = not any(is_inside(run.box, box) for run in level)
        if (
            after is None
            or not is_empty
            or not after.text.strip()[:1].isalnum()
            or not after.text.strip()[-1:].isalpha()
        ):
            continue
        is_near = after.box.left - box.right < 2 * after.size and _BOX_SIZE[0] < size / after.size < _BOX_SIZE[1]
        if is_near and not is_monospaced(after.font) and not has_right_to_left(after.text):
            place = Box(box.left, after.box.top, box.right, after.box.bottom)
            yield after._replace(box=place, text="☐", words=(Word(*place, "☐"),), bold=False, tag=None)


def _is_disc(box: Box) -> bool:
    wide, high = box.right - box.left, box.bottom - box.top
    return _DISC[0] < wide < _DISC[1] and abs(wide - high) <= _MOST_UNEQUAL * wide


def _is_short_number(run: TextRun) -> bool:
    return len(run.text) <= 2 and run.text.isdecimal()  # noqa: PLR2004


def _with_full_stop(run: TextRun, discs: Sequence[Box]) -> TextRun:
    """Add a full stop to a list number that is printed on a disc, so that "1" becomes "1."."""
    if not _is_short_number(run):
        return run
    size = run.box.bottom - run.box.top
    if not any(is_inside(run.box, disc) and disc.bottom - disc.top < _MOST_OF_DISC * size for disc in discs):
        return run
    return run._replace(text=f"{run.text}.", words=(Word(*run.box, f"{run.text}."),), bold=False)


def _with_underscores(run: TextRun, strokes: Sequence[Box]) -> TextRun:
    """Join two words of a text run if a short line below the letters fills the gap between them."""
    top, bottom = run.box.top + _BELOW * (run.box.bottom - run.box.top), run.box.bottom + _TOUCHING
    level = [box for box in strokes if top < box.top and box.bottom < bottom] if len(run.words) > 1 else []
    words: list[Word] = []
    text, end = "", 0
    for word in run.words if level else ():
        before, start = words[-1] if words else None, run.text.find(word.text, end)
        if start < 0:
            return run
        is_joined = before is not None and any(_fills(box, before, word) for box in level)
        text += f"{'_' if is_joined else run.text[end:start]}{word.text}"
        end = start + len(word.text)
        if before and is_joined:
            words[-1] = before._replace(right=word.right, text=f"{before.text}_{word.text}")
        else:
            words.append(word)
    return run._replace(words=tuple(words), text=text) if 0 < len(words) < len(run.words) else run


def _fills(box: Box, before: Word, after: Word) -> bool:
    return abs(box.left - before.right) < _TOUCHING and abs(box.right - after.left) < _TOUCHING


def _bullets(runs: Sequence[TextRun], dots: Sequence[Box]) -> Iterator[TextRun]:
    """Yield a text run for each drawn bullet.

    Bullets are dots of the same size, one below the other. Each is directly to the left of the first text on a line.
    """
    found: defaultdict[tuple[int, int, int], dict[Box, TextRun]] = defaultdict(dict)
    for box in dots:
        if run := _text_beside(box, runs):
            key = round(box.left / 2), round(2 * (box.right - box.left)), round(run.box.left / 2)
            found[key][box] = run
    for column in found.values():
        if len({round(box.top) for box in column}) < _LEAST_BULLETS:
            continue
        for box, run in column.items():
            place = Box(box.left, run.box.top, box.right, run.box.bottom)
            yield run._replace(box=place, text="•", words=(Word(*place, "•"),), bold=False, tag=None)


def _text_beside(box: Box, runs: Sequence[TextRun]) -> TextRun | None:
    """Return the text that begins to the right of a dot.

    Returns None if there is no such text, or if there is also text to the left of the dot.
    """
    middle = (box.top + box.bottom) / 2
    level = [run for run in runs if run.box.top < middle < run.box.bottom]
    after = min((run for run in level if run.box.left > box.right - _SAME_PLACE), default=None, key=_left)
    if after is None or any(
        run.box.right > box.left - _TO_TEXT[1] * run.size and run.box.left < box.left for run in level
    ):
        return None
    gap, size = after.box.left - box.right, box.right - box.left
    is_near = _TO_TEXT[0] * after.size <= gap <= _TO_TEXT[1] * after.size
    is_dot = _BULLET_SIZE[0] * after.size <= size <= _BULLET_SIZE[1] * after.size
    if is_monospaced(after.font):  # a tree of files
        return None
    return after if is_near and is_dot and after.text.strip()[:1].isalnum() and len(after.text) > 2 else None  # noqa: PLR2004


def _left(run: TextRun) -> float:
    return run.box.left
