"""Pages made from known text: columns, boxes beside the text, margin notes and rotated pages."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw as pypdfium2_raw

from benchmarks.extraction.counting import Counting
from benchmarks.extraction.judging import edit_similarity, plain_words, tokens
from benchmarks.extraction.rows import Row, mean_row, missing, read_file, report
from octavo.extract.extracted import Extracted
from tests.support.pdf import Line, Part, Pdf, Words

_pdfium: Any = pypdfium2
_raw: Any = pypdfium2_raw
SEEDS = 6
SENTENCES = (
    "The harbour was rebuilt after the flood of that year",
    "Each committee reports to the council before the end of June",
    "Prices for grain fell sharply while wages remained stable",
    "A second survey confirmed what the engineers had suspected",
    "Readers of the journal may send letters to the editor",
    "The valley lies between two ridges of old limestone",
    "No vessel left the port without a written permission",
    "Several families kept their own records of births and deaths",
    "The printing house moved to a larger building near the river",
    "Most of the archive was copied by hand during the winter",
    "Ships from the north carried timber and dried fish",
    "Nobody expected the bridge to last for more than a decade",
)
ASIDE = (
    "See the map on the inner cover",
    "A glossary of old measures follows later",
    "Dates before this year use the older calendar",
    "Copies can be ordered from the society",
    "Photographs were taken in spring",
    "Names of places are given in modern spelling",
)


class MadePage(NamedTuple):
    """`truth` lists the texts in reading order; `aside` are texts whose place among them is free."""

    parts: list[Words | Line]
    truth: list[str]
    aside: list[str]


class Column:
    """Writes paragraphs into a column, from the top down."""

    def __init__(self, left: float, width: float, top: float, size: float = 10.0) -> None:
        self.left, self.width, self.top, self.size = left, width, top, size
        self.parts: list[Words | Line] = []

    def write(self, text: str, indent: float = 0.0) -> None:
        room = int((self.width - indent) / (0.5 * self.size))
        line = ""
        for word in [*text.split(), None]:
            if word is None or len(line) + len(word) > room:
                self.parts.append(Words(line.strip(), self.left + indent, self.top, self.size))
                self.top += 1.25 * self.size
                line = ""
            line += f" {word}" if word else ""
        self.top += 0.7 * self.size


def paragraphs(seed: random.Random, count: int) -> list[str]:
    return [". ".join(seed.sample(SENTENCES, seed.randint(3, 6))) + "." for _ in range(count)]


def asides(seed: random.Random) -> list[str]:
    """Two texts for a box. Their sentences are not in the body, so that it is clear which text is which."""
    chosen = seed.sample(ASIDE, len(ASIDE))
    return [". ".join(chosen[:3]) + ".", ". ".join(chosen[3:]) + "."]


def make_page(kind: str, number: int) -> MadePage:
    """Every second page is written line by line across its columns, as some programs do, not in reading order."""
    page = KINDS[kind](random.Random(f"{kind} {number}"))
    if number % 2:
        page = page._replace(parts=sorted(page.parts, key=lambda part: (part.top, part.left)))
    return page


def columns(seed: random.Random, count: int) -> MadePage:
    """A title over columns of equal width."""
    title = Words("A Report on the State of the Harbour", 60, 70, 16, "bold")
    width = (492 - 18 * (count - 1)) / count
    parts: list[Words | Line] = [title]
    truth = [title.text]
    for number in range(count):
        column = Column(60 + number * (width + 18), width - 4, 110)
        for text in paragraphs(seed, 4):
            if column.top < 620:
                column.write(text)
                truth.append(text)
        parts += column.parts
    return MadePage(parts, truth, [])


def side_box(seed: random.Random, framed: bool) -> MadePage:  # noqa: FBT001
    """A body with a box or margin notes at its right side, next to the middle of the text."""
    body, box = Column(60, 320, 90), Column(404, 140, 90 + seed.randint(30, 120), 9)
    truth, aside = paragraphs(seed, 5), asides(seed)
    for text in truth:
        body.write(text)
    top = box.top
    for text in aside:
        box.write(text)
    frame = _frame(396, top - 16, 552, box.top) if framed else []
    return MadePage([*body.parts, *box.parts, *frame], truth, aside)


def _frame(left: float, top: float, right: float, bottom: float) -> list[Words | Line]:
    sides = [(left, top, right, top), (left, bottom, right, bottom)]
    return [Line(*side) for side in [*sides, (left, top, left, bottom), (right, top, right, bottom)]]


def narrow_columns(seed: random.Random) -> MadePage:
    """A newspaper: two justified columns with headings in them, one em apart, whose lines are not at equal heights."""
    parts: list[Words | Line] = []
    truth: list[str] = []
    for left, top in ((60, 80), (60 + 40 * 6 + 10, 80 + seed.choice((0, 4)))):
        y = float(top)
        for number in range(3):
            heading = seed.choice(SENTENCES).title()[:36].rsplit(" ", 1)[0]
            lines = fill(". ".join(seed.sample(SENTENCES, 5)) + ".", 40)
            parts.append(Words(heading, left, y, 13, "bold"))
            parts += [Words(line, left, y + 16 + 12 * row, 10, "code") for row, line in enumerate(lines)]
            truth += [heading, *lines]
            y += 16 + 12 * len(lines) + (14 if number else 20)
    return MadePage(parts, truth, [])


def fill(text: str, room: int) -> list[str]:
    """Lines of equal length, as in justified text of one letter width; the last line stays short."""
    lines, line = list[str](), list[str]()
    for word in text.split():
        if len(" ".join([*line, word])) > room:
            gaps = max(len(line) - 1, 1)
            spare = room - len("".join(line))
            widths = [spare // gaps + (number < spare % gaps) for number in range(len(line) - 1)]
            lines.append("".join(one + " " * width for one, width in zip(line, [*widths, 0], strict=True)))
            line = []
        line.append(word)
    return [*lines, " ".join(line)]


def form(seed: random.Random) -> MadePage:
    """Two framed halves with labels above their values, as in an application form."""
    parts: list[Words | Line] = []
    truth: list[str] = []
    for side, left in (("Applicant", 60.0), ("Employer", 312.0)):
        parts += [Words(f"{side} details", left + 8, 100, 12, "bold"), *_frame(left, 84, left + 240, 420)]
        truth.append(f"{side} details")
        for row, label in enumerate(("Full name", "Street and number", "Town", "Telephone", "Reason")):
            value = seed.choice(SENTENCES)[: 30 if row else 18].strip()
            parts.append(Words(label, left + 8, 128 + 56 * row, 8))
            parts.append(Words(value, left + 8, 144 + 56 * row, 11))
            truth += [label, value]
    return MadePage(parts, truth, [])


def left_box(seed: random.Random) -> MadePage:
    """A narrow box at the left, in the line grid of a body that is set beside and below it."""
    box, body = Column(60, 150, 100, 9), Column(230, 320, 100)
    aside, truth = asides(seed), paragraphs(seed, 3)
    for text in aside:
        box.write(text)
    for text in truth:
        body.write(text)
    below = Column(60, 490, max(box.top, body.top) + 12)
    for text in (more := paragraphs(seed, 2)):
        below.write(text)
    frame = _frame(52, 84, 216, box.top)
    return MadePage([*body.parts, *box.parts, *below.parts, *frame], [*truth, *more], aside)


KINDS: dict[str, Callable[[random.Random], MadePage]] = {
    "two columns": lambda seed: columns(seed, 2),
    "three columns": lambda seed: columns(seed, 3),
    "narrow columns": narrow_columns,
    "two-column form": form,
    "box at the left": left_box,
    "side box": lambda seed: side_box(seed, framed=True),
    "margin notes": lambda seed: side_box(seed, framed=False),
}


def similarity(page: MadePage, text: str) -> float:
    """The body is compared in its order; texts aside may be at any place, if they are in one piece."""
    left = plain_words(text)
    kept = 0
    for one in page.aside:
        words = plain_words(one)
        kept += words in left
        left = left.replace(words, " ", 1)
    body = edit_similarity(plain_words(" ".join(page.truth)).split(), left.split())
    weight = sum(map(len, page.aside)) / sum(map(len, [*page.truth, *page.aside]))
    return body * (1 - weight) + weight * (kept / len(page.aside) if page.aside else 0)


async def measure_order(sandbox: Counting, _folder: Path) -> list[Row]:
    rows: list[Row] = []
    every: list[float] = []
    for name in KINDS:
        values: list[float] = []
        for number in range(SEEDS):
            page = make_page(name, number)
            extracted = await read_made(sandbox, page.parts)
            values.append(similarity(page, extracted.markdown if extracted else ""))
        rows.append(mean_row(f"order, made pages, {name}: edit similarity", values, 0.97))
        every += values
    note = "made pages; no real page in the folder has its order beside it"
    return [mean_row("order of columns and boxes: edit similarity", every, 0.97, note), *rows]


async def read_made(sandbox: Counting, parts: Sequence[Part]) -> Extracted | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.pdf"
        path.write_bytes(Pdf([parts]).write())
        return await read_file(sandbox, path)


# Rotated pages ------------------------------------------------------------------------------------------------------

ROTATED_PAGES = 12


async def measure_rotated(sandbox: Counting, folder: Path) -> list[Row]:
    """The first pages of long PDFs, saved with a rotation: the page looks the same, or is displayed on its side."""
    files = sorted((folder / "pdf-headings").glob("*.pdf"))
    if not files:
        return [missing("rotated pages", 0.95, "no folder pdf-headings")]
    same: list[float] = []
    boxes: list[float] = []
    sideways: list[float] = []
    with tempfile.TemporaryDirectory() as temporary:
        for path in files:
            upright = await read_file(sandbox, rotate(path, Path(temporary) / "0.pdf", 0, compensate=False))
            for turn in (90, 180, 270):
                seen = await read_file(sandbox, rotate(path, Path(temporary) / "1.pdf", turn, compensate=True))
                turned = await read_file(sandbox, rotate(path, Path(temporary) / "2.pdf", turn, compensate=False))
                same.append(likeness(upright, seen))
                boxes.append(share_boxed(seen))
                sideways.append(likeness(upright, turned))
                report(f"{path.stem[:32]:32} {turn:3}  same {same[-1]:.3f}  sideways {sideways[-1]:.3f}")
    return [
        mean_row("rotated pages that look upright: edit similarity to the upright file", same, 0.99),
        mean_row("rotated pages that look upright: blocks with a box", boxes, 0.99),
        mean_row("pages displayed on their side: edit similarity to the upright file", sideways, 0.95),
    ]


def rotate(path: Path, target: Path, turn: int, *, compensate: bool) -> Path:
    """Save the first pages with a rotation. With `compensate`, the content is turned back, as printers do it."""
    copy = _pdfium.PdfDocument.new()
    source = _pdfium.PdfDocument(path)
    copy.import_pages(source, list(range(min(ROTATED_PAGES, len(source)))))
    for page in copy:
        if compensate and turn:
            _turn_content(page, turn)
        page.set_rotation(turn)
    copy.save(target)
    return target


def _turn_content(page: Any, turn: int) -> None:  # noqa: ANN401
    left, bottom, right, top = page.get_cropbox()
    width, height = right - left, top - bottom
    matrix = {
        90: (0, 1, -1, 0, top, -left),
        180: (-1, 0, 0, -1, right + left, top + bottom),
        270: (0, -1, 1, 0, -bottom, right),
    }[turn]
    size = (width, height) if turn == 180 else (height, width)
    place = (left, bottom) if turn == 180 else (0.0, 0.0)
    box = (place[0], place[1], place[0] + size[0], place[1] + size[1])
    page.set_mediabox(*box)
    page.set_cropbox(*box)
    _raw.FPDFPage_TransFormWithClip(page, _raw.FS_MATRIX(*matrix), _raw.FS_RECTF(box[0], box[3], box[2], box[1]))


def likeness(one: Extracted | None, other: Extracted | None) -> float:
    return edit_similarity(*(tokens(each.markdown if each else "") for each in (one, other)))


def share_boxed(extracted: Extracted | None) -> float:
    blocks = extracted.blocks if extracted else ()
    return sum(block.box is not None for block in blocks) / max(len(blocks), 1)
