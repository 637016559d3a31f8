"""Reads the words of a PDF with their positions, from the characters that PDFium reports. Used by conversions."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from octavo.core.errors import Defect
from octavo.core.types import JSON
from octavo.extract.extracted import Block, Box
from octavo.extract.pdf.letters import clean_letters
from octavo.extract.pdf.page_batches import PageBlock, batch_from_json
from octavo.sandbox import Task, sandboxed

if TYPE_CHECKING:
    from octavo.extract.pdf.pdf_file import PdfInSandbox

# Imported by the preloaded parent of a sandbox, so that its children do not import these for every file.
PRELOAD = ("octavo.extract.pdf.placed_words", "octavo.extract.pdf.document")

MOST_PAGES = 50  # the most pages of a form; further pages are not read
MOST_ATTACHMENT_BYTES = 4 * 1024 * 1024
FEW_WORDS = 5  # a page with fewer words may be a scan
_MOST_RECOGNISED = 10  # the most pages of one file that are recognised; a longer scan is not a form
_GAP = 0.25  # as a share of the letter height; letters of one word are never further apart
_OFF_LINE = 0.6
_WORD = re.compile(r"\S+")


Letter = tuple[str, Box]


class PlacedWord(NamedTuple):
    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class WordPage:
    number: int
    width: float
    height: float
    words: tuple[PlacedWord, ...]


@dataclass(frozen=True, slots=True)
class WordPages:
    """The words of a PDF. `attachments` contains the names and contents of attached XML files."""

    page_count: int
    pages: tuple[WordPage, ...]
    attachments: tuple[tuple[str, bytes], ...]


def join_letters(letters: Iterator[Letter | None]) -> Iterator[PlacedWord]:
    """Join characters into words. A word ends at a wide gap or at None, which represents a space character."""
    word: list[Letter] = []
    for letter in letters:
        if word and (letter is None or _is_apart(word[-1][1], letter[1])):
            yield _word(word)
            word = []
        if letter is not None:
            word.append(letter)
    if word:
        yield _word(word)


def _is_apart(before: Box, after: Box) -> bool:
    height = max(before.bottom - before.top, after.bottom - after.top, 1.0)
    across, down = after.left - before.right, abs(after.bottom - before.bottom)
    return across > _GAP * height or across < -height or down > _OFF_LINE * height


def _word(letters: list[Letter]) -> PlacedWord:
    lefts, tops, rights, bottoms = zip(*(box for _, box in letters), strict=True)
    text = clean_letters("".join(text for text, _ in letters))
    return PlacedWord(text, Box(min(lefts), min(tops), max(rights), max(bottoms)))


def words_of_blocks(blocks: Sequence[PageBlock] | Sequence[Block]) -> Iterator[PlacedWord]:
    """Estimate the positions of words in blocks. Assumes that lines have equal height and letters have equal width."""
    for block in blocks:
        if block.box is None:
            continue
        lines = [line for line in block.text.split("\n") if line.strip()]
        height = (block.box.bottom - block.box.top) / max(len(lines), 1)
        widest = max(map(len, lines), default=1)
        wide = (block.box.right - block.box.left) / widest
        for row, line in enumerate(lines):
            top = block.box.top + row * height
            for word in _WORD.finditer(line):
                left, right = (block.box.left + index * wide for index in word.span())
                yield PlacedWord(word[0], Box(left, top, right, top + height))


def words_as_json(read: WordPages) -> dict[str, JSON]:
    """Return the words and attachments as JSON, in the form that conversions read. Attachments are base64-encoded."""
    attachments: list[JSON] = [[name, b64encode(body).decode()] for name, body in read.attachments]
    return {"page_count": read.page_count, "pages": pages_as_json(read), "attachments": attachments}


def pages_as_json(read: WordPages) -> list[JSON]:
    return [page_as_json(page) for page in read.pages]


def page_as_json(page: WordPage) -> JSON:
    """Return a page as JSON. Each word is a list: its text and the left, top, right and bottom of its box."""
    words: list[JSON] = [[word.text, *(round(side, 2) for side in word.box)] for word in page.words]
    return {"number": page.number, "width": page.width, "height": page.height, "words": words}


class DocumentWords(NamedTuple):
    """The words of a document. `document` is the JSON that conversions read: pages with words, and attachments."""

    document: bytes
    page_count: int


async def read_words_in_sandbox(pdf: PdfInSandbox) -> DocumentWords:
    """Read the words of a PDF. Raises the errors of `Sandbox.run`, including `Encrypted`, `Empty` and `BadInput`."""
    made = await pdf.run(read_words_of_file.call(password=pdf.password), MOST_PAGES)
    return await recognise_words(pdf, await asyncio.to_thread(_parsed, made.output))


async def recognise_words(pdf: PdfInSandbox, read: JSON) -> DocumentWords:
    """Run OCR on the pages with few words. Returns all pages with their words."""
    document = _checked(read)
    pages: list[JSON] = []
    seen = 0
    for page in document["pages"]:
        few = len(page["words"]) < FEW_WORDS and seen < _MOST_RECOGNISED
        seen += few
        pages.append(await _recognised(pdf, page) if few else page)
    whole: dict[str, JSON] = {"pages": pages, "attachments": document["attachments"]}
    return DocumentWords(json.dumps(whole, ensure_ascii=False).encode(), int(document["page_count"]))


def _parsed(output: bytes) -> JSON:
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        raise _unusable() from None


def _checked(document: Any) -> dict[str, Any]:  # noqa: ANN401
    """Validate the JSON of a document. Checks only the fields that this process uses.

    The other fields are validated in the sandbox when the document is converted.
    """
    try:
        if all(isinstance(page["words"], list) for page in document["pages"]):
            return {"page_count": int(document["page_count"]), **document}
    except (ValueError, TypeError, KeyError):
        pass
    raise _unusable()


def _unusable() -> Defect:
    return Defect("The sandbox returned invalid words for a PDF.")


async def _recognised(pdf: PdfInSandbox, page: dict[str, Any]) -> JSON:
    """Run OCR on a page and return the page with the recognised words.

    If OCR finds no words, the page is returned unchanged.
    """
    batch = await pdf.recognise(int(page["number"]))
    if not batch:
        return page
    found = batch_from_json(batch).pages[0]
    width, height = found.width or page["width"], found.height or page["height"]
    words = tuple(words_of_blocks(found.blocks))
    return page_as_json(WordPage(found.number, width, height, words)) if words else page


@sandboxed
def read_words_of_file(task: Task, *, password: str | None) -> None:
    document = words_as_json(read_words(Path(task.input_path), password))
    task.output.write(json.dumps(document, ensure_ascii=False, allow_nan=False).encode())


def read_words(path: Path, password: str | None = None) -> WordPages:
    """Read the words of the first `MOST_PAGES` pages. A page that cannot be read has no words in the result."""
    from octavo.extract.pdf.document import PageError, open_document

    with open_document(path, password) as document:
        numbers = range(1, min(document.page_count, MOST_PAGES) + 1)
        pages: list[WordPage] = []
        for number in numbers:
            try:
                with document.page(number) as page:
                    pages.append(WordPage(number, *page.size, tuple(join_letters(page.letters()))))
            except PageError:
                pages.append(WordPage(number, 0.0, 0.0, ()))
        attachments = tuple(document.attachments(".xml", MOST_ATTACHMENT_BYTES))
        return WordPages(document.page_count, tuple(pages), attachments)
