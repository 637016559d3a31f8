"""Recognised paragraphs as Markdown, each with its place on the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from octavo.extract.contract import BlockKind, Box
from octavo.extract.ocr.lines import Line
from octavo.extract.ocr.order import reading_order
from octavo.extract.ocr.paragraphs import Paragraph, join_lines
from octavo.extract.plain_text.escape import escape, escape_inside

# A short paragraph that is set this much larger than most of the page is a heading.
HEADING = 1.3
HEADING_WORDS = 16
_ITEM = re.compile(r"^[\u2022\u25cf\u25aa\u2013*\u00b7-]\s+")


@dataclass(frozen=True, slots=True)
class Piece:
    """`markdown` is one block; a heading's level is counted among the sizes of its page."""

    kind: BlockKind
    markdown: str
    text: str
    box: Box
    level: int | None = None


def pieces_of(lines: Sequence[Line]) -> list[Piece]:
    """The blocks of one page in reading order."""
    paragraphs = [paragraph for column in reading_order(lines) for paragraph in join_lines(column)]
    if not paragraphs:
        return []
    usual = median(line.height for line in lines)
    sizes = sorted({round(one.size / usual, 1) for one in paragraphs if _is_heading(one, usual)}, reverse=True)
    return [_piece(one, usual, sizes) for one in paragraphs]


def _is_heading(paragraph: Paragraph, usual: float) -> bool:
    return paragraph.size >= HEADING * usual and len(paragraph.text.split()) <= HEADING_WORDS


def _piece(paragraph: Paragraph, usual: float, sizes: list[float]) -> Piece:
    text = paragraph.text
    if _is_heading(paragraph, usual):
        level = min(6, sizes.index(round(paragraph.size / usual, 1)) + 1)
        return Piece(BlockKind.HEADING, f"{'#' * level} {escape_inside(text)}", text, paragraph.box, level)
    if item := _ITEM.match(text):
        rest = text[item.end() :]
        return Piece(BlockKind.LIST, f"- {escape(rest)}", rest, paragraph.box)
    return Piece(BlockKind.PARAGRAPH, escape(text), text, paragraph.box)
