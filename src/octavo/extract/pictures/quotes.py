"""Finds the words of a quote on a PDF page and returns one box per line. The file is read in the sandbox."""

from __future__ import annotations

import json
import re
import tempfile
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.core.errors import PageNotDrawn
from octavo.extract.extracted import Box, QuoteOnPage
from octavo.extract.pdf.placed_words import PlacedWord, join_letters
from octavo.sandbox import ENDED, Limits, Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import Sandbox

PRELOAD = ("octavo.extract.pictures.quotes", "octavo.extract.pdf.document")
# A user is waiting for the result.
SECONDS = 10
MOST_BYTES = 1 << 20
_LEFT_OUT = re.compile(r"\.\.\.|…")
_SAME_LINE = 0.5  # as a share of the height of a word; words on one line overlap vertically by at least this


async def quote_in_sandbox(sandbox: Sandbox, path: Path, number: int, quote: str) -> QuoteOnPage:
    """Find a quote on a page of the file at `path`.

    Raises `PageNotDrawn` if the page cannot be read. Errors of the file, such as `Encrypted`, are passed on.
    """
    call = find_quote_in_file.call(number=number, quote=quote)
    try:
        with tempfile.TemporaryFile() as output:
            await sandbox.run(call, input_file=path, output_file=output, limits=_limits(sandbox))
            answer = output.read()
    except ENDED as error:
        raise PageNotDrawn(error.title) from error
    return _checked(answer)


async def words_in_sandbox(sandbox: Sandbox, path: Path, number: int) -> list[PlacedWord]:
    """Return the words of a page with their boxes.

    The list is empty if the page is a scan. Raises `PageNotDrawn` if the page cannot be read. Errors of the file, such
    as `Encrypted`, are passed on.
    """
    try:
        with tempfile.TemporaryFile() as output:
            call = read_words_of_page.call(number=number)
            await sandbox.run(call, input_file=path, output_file=output, limits=_limits(sandbox))
            rows = json.loads(output.read())
        words = [PlacedWord(str(text), Box(*map(float, box))) for text, *box in rows]
    except ENDED as error:
        raise PageNotDrawn(error.title) from error
    except (ValueError, TypeError):
        raise PageNotDrawn from None
    if not all(isfinite(side) for word in words for side in word.box):
        raise PageNotDrawn
    return words


@sandboxed
def read_words_of_page(task: Task, *, number: int) -> None:
    from octavo.extract.pdf.document import PageError, open_document

    with open_document(Path(task.input_path)) as document:
        try:
            with document.page(number) as page:
                rows = [[word.text, *(round(side, 1) for side in word.box)] for word in join_letters(page.letters())]
        except PageError:
            raise PageNotDrawn from None
    task.output.write(json.dumps(rows, ensure_ascii=False, allow_nan=False).encode())


def _checked(answer: bytes) -> QuoteOnPage:
    try:
        given = json.loads(answer)
        width, height = float(given["width"]), float(given["height"])
        boxes = [Box(*map(float, box)) for box in given["boxes"]]
    except (ValueError, TypeError, KeyError):
        raise PageNotDrawn from None
    if not all(isfinite(side) for box in (*boxes, (width, height)) for side in box) or min(width, height) <= 0:
        raise PageNotDrawn
    return QuoteOnPage(width, height, boxes)


def _limits(sandbox: Sandbox) -> Limits:
    usual = sandbox.limits
    seconds = min(usual.cpu_seconds, SECONDS)
    return replace(usual, cpu_seconds=seconds, wall_seconds=2 * seconds, output_bytes=MOST_BYTES)


@sandboxed
def find_quote_in_file(task: Task, *, number: int, quote: str) -> None:
    found = find_quote(Path(task.input_path), number, quote)
    task.output.write(json.dumps(asdict(found), allow_nan=False).encode())


def find_quote(path: Path, number: int, quote: str) -> QuoteOnPage:
    from octavo.extract.pdf.document import PageError, open_document

    with open_document(path) as document:
        try:
            with document.page(number) as page:
                width, height = page.size
                return QuoteOnPage(width, height, locate(list(join_letters(page.letters())), quote))
        except PageError:
            raise PageNotDrawn from None


def locate(words: Sequence[PlacedWord], quote: str) -> list[Box]:
    """Find a quote on a page. Returns one box for each line of the quote.

    Returns an empty list if any part of the quote is not found. If the quote contains an ellipsis, the parts before and
    after it need not be next to each other on the page. Only letters and digits are compared, so punctuation and
    hyphenation do not matter.
    """
    letters: list[str] = []
    owners: list[int] = []
    for at, word in enumerate(words):
        plain = _plain(word.text)
        letters.append(plain)
        owners += [at] * len(plain)
    text, place = "".join(letters), 0
    found: list[Box] = []
    for part in filter(None, map(_plain, _LEFT_OUT.split(quote))):
        start = _find(text, part, place, owners)
        if start < 0:
            return []
        place = start + len(part)
        found += _lines([words[at].box for at in sorted(set(owners[start:place]))])
    return found


def _find(text: str, part: str, place: int, owners: Sequence[int]) -> int:
    """Find `part` in `text` at or after `place`. Prefers a match of whole words to an earlier match inside words.

    Returns the offset of the match. Returns -1 if there is no match.
    """
    first = start = text.find(part, place)
    while start >= 0:
        end = start + len(part)
        begins = start == 0 or owners[start - 1] != owners[start]
        if begins and (end == len(text) or owners[end] != owners[end - 1]):
            return start
        start = text.find(part, start + 1)
    return first


def _lines(boxes: Sequence[Box]) -> list[Box]:
    lines: list[Box] = []
    for box in boxes:
        last = lines[-1] if lines else None
        if last and _is_beside(last, box):
            last = Box(last.left, min(last.top, box.top), max(last.right, box.right), max(last.bottom, box.bottom))
            lines[-1] = last
        else:
            lines.append(box)
    return lines


def _is_beside(last: Box, box: Box) -> bool:
    overlap = min(last.bottom, box.bottom) - max(last.top, box.top)
    height = min(last.bottom - last.top, box.bottom - box.top)
    return overlap >= _SAME_LINE * height and box.left >= last.left


def _plain(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKC", text).casefold() if one.isalnum())
