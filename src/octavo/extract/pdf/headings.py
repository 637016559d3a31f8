"""Finds headings and their levels. Levels come from bookmarks if there are any, otherwise from numbers and fonts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from octavo.extract.extracted import BlockKind, Box, RegionKind
from octavo.extract.markdown import plain_title
from octavo.extract.pdf.letters import count_letters
from octavo.extract.pdf.page_batches import Bookmark, PageBlock, PageText
from octavo.extract.pdf.running_headers import Place

MOST_LEVEL = 6
_MOST_CHARACTERS = 150
_MOST_LINES = 3
_MOST_LINES_OF_TITLE = 5
_LARGER = 1.08  # as a multiple of the size of the body text
_SMALLER = 0.92
_SMALLER_NUMBERED = 0.85
_LEAST_SMALL, _MORE_ABOVE = 0.78, 1.3  # of a small heading: its size; the space above it as a multiple of that below
_SAME_SIZE = 0.035
_SHORT = 100
_FEW_WORDS = 60
_MOST_LINES_OF_BODY_SIZE = 2
_LEAST_LETTERS = 3
_LEAST_CAPITALS = 5  # shorter texts in capitals are abbreviations
_MUCH_LARGER = 1.25
_CENTRED_LARGER = 1.15
_TITLE = 1.6
_LEAST_INDENT, _MOST_INDENT = 0.8, 6.0  # of a definition, as multiples of the size of the body text
_LONG = 3  # lines
_LEAST_PROSE = 0.4  # as a share of the letters of a document; forms, invoices and slides have less
_FEW_PAGES = 2
_NEAR = 40  # blocks
_TEXTS = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH})
_BODY = frozenset({BlockKind.PARAGRAPH, BlockKind.LIST})
_COUNTED = _BODY | {BlockKind.TABLE}
_NUMBER = re.compile(
    r"(?:(?i:chapter|section|part|appendix|kapitel|chapitre)\s+)?"
    r"((?:\d{1,3}|[A-Z]|[IVX]{1,5})(?:\.\d{1,3})*)\.?\s+(?:[|:\u2013\u2014-]\s+)?[^\W\d_]"
)
_CAPITALS = re.compile(r"(?:[\dIVX]{1,4}[.)]?\s+)?[^\W\d_]{3}[^\d_(){}=]*")
_DEEP_NUMBER = re.compile(r"\d{1,2}(?:\.\d{1,2}){1,4}\.?\s+[^\W\da-z_]")
_CONTENTS_LINE = re.compile(r"[^\W\d_].*\s\d{1,4}\Z")
_ENOUGH_NUMBERS = 3
_CURRENCY = r"(?:[€$£¥]|\b(?:EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK)\b)"
_MONTH = (
    r"(?:jan|feb|f[ée]v|m[aä]r|maart|a[pvb]r|ma[iy]|mei|jui?n|jui?l|aug|ago|ao[uû]|sep|o[ckt]t|nov|d[eéi][cz]|gen|ene|mag"
    r"|giu|lug|set)[^\W\d_]*\.?"
)
_NEVER = re.compile(
    rf"(?:{_CURRENCY}\s*-?\d[\d.,'\s]*|\d\s*{_CURRENCY})\s*\Z"
    r"|\w\s*:\s+\S.*\w\s*:\s+\S|:.*\b\d{5}\s+[^\W\d_]"
    r"|^(?:algorithm|listing|specification|procedure|algorithme|algorithmus|listado|listato)\s+\d"
    r"|^(?:sources?|notes?|quellen?|fuente|fonte|bron)\s*:|(?:\\?_){4}|^[\[(][^\])]*[\])]\Z"
    r"|^--\w[\w-]*\s+[a-z]|\S@\S+\.\w|https?://|\bwww\.|\w\.(?:com|org|net)\b|\bIBAN\b|\b(?:tel|fax|phone|t[ée]l[ée]phone|telefon)\b\W*[\d(+]"
    r"|^\W*\+?\d[\d ()/-]{6,}|^(?:[A-Z]{1,3}[- ])?\d{5}\s*[^\W\d_]|\b(?-i:[A-Z]{2})\s+\d{5}\b"
    r"|^(?:page|seite|pagina|p[áa]gina|sida|side|strona|blatt)\s*:?\s*\d+(?:\s*(?:/|of|von|de|van|sur|di|av|z)\s*\d+)?\Z"
    rf"|^(?:[^\W\d_]{{3,10}},\s+)?(?:\d{{1,2}}(?:st|nd|rd|th|er|\.)?\s+(?:de\s+)?)?{_MONTH}\s+(?:de\s+)?(?:\d{{1,2}},?\s+)?\d{{4}}\Z",
    re.IGNORECASE | re.DOTALL,
)
_BARE_NUMBER = re.compile(r"(?:\d{1,2}|[A-Z])(?:\.\d{1,2})*\.?")
_DIGIT_AFTER_NUMBER = re.compile(r"(?:-?\d{1,2}(?:[.-]\d{1,2})*[.)]?\s+)?+\D*\d")
_TITLE_WORD = re.compile(
    r"(?:[\w-]+\s+)?\w*(?:rechnung|rechnungskorrektur|gutschrift|mahnung|quittung|angebot|lieferschein|vertrag|bescheid"
    r"|antrag|invoices?|credit note|receipt|quotation|statement|bill|facture|avoir|devis|reçu|factura|recibo"
    r"|fattura|ricevuta|preventivo|factuur|offerte|faktura|paragon|rachunek)"
    r"\W*(?:\Z|[#(/]|(?:no|nr|n°|nº|num[a-z]*|des|der|of|vom)\b|\S*\d)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile("(?:[.;,:\u3002\uff0e\uff0c\uff1a\uff1b]\\W*|[^\\W\\d_]-)\\Z")
_CAPTION_LABEL = re.compile(r"[^\W\d_]{3,12}\.?\s*[A-Z]?[\d.-]{1,6}[.:]?")
_NAME = r"(?:[^\W\d_a-z][\w.'\u2019-]*|and|und|et|y|van|von|de|der|di|la)[\d\u2217*†‡§,]*"
_NAMES = re.compile(rf"{_NAME}(?:[\s,;&\n]+{_NAME})+")
_AFFILIATION = re.compile(r"\S@\S+\.\w|\b(?:universit|institut|department|college|laborator)", re.IGNORECASE)
_CHAPTER = re.compile(
    r"(?:chapter|part|appendix|kapitel|teil|anhang|chapitre|partie|annexe|cap[íi]tulo|parte|ap[ée]ndice|capitolo|appendice"
    r"|hoofdstuk|bijlage|rozdział|глава|часть|приложение)\s+(?:\d{1,3}|[A-Z]|[IVX]{1,5})[.:]?",
    re.IGNORECASE,
)
_FAR_BELOW = 4.0  # the largest gap between "Chapter 3" and its title, as a multiple of the letter size
_PARAGRAPH_SIGN = re.compile(r"§+\s*\d")
_ONE_SENTENCE = re.compile(r"[^.;]*[^.;,:-]\.")
_CLAUSE_END = re.compile("(?:[;,:\uff0c\uff1a\uff1b]\\W*|[^\\W\\d_]-)\\Z")
_SECTION = re.compile(
    r"(?:(?:article|section|chapter|part|annex|appendix|schedule|artikel|abschnitt|kapitel|teil|anlage|anhang|chapitre|titre"
    r"|annexe|art[íi]culo|secci[óo]n|cap[íi]tulo|anexo|articolo|capo|allegato|bijlage)\s+|§\s*)(?:\d{1,3}|[ivx]{1,5})\b",
    re.IGNORECASE,
)
_COMMAND_NAME = re.compile(r"[^\W\d_][\w?*-]{2,24}")  # of a command, which begins with a small letter
_IDENTIFIER = re.compile(r"\w+(?:[_.:]\w|\(|[a-z][A-Z])")  # the name of a function or module
_LABEL = re.compile(rf"\w\s*:\s*\S|{_CURRENCY}")
_LABEL_END = re.compile(r":\s*\S")


class Style(NamedTuple):
    """The font size of a heading and whether the heading is bold."""

    size: float
    bold: bool


Headings = Mapping[Place, PageBlock]


def body_size(pages: Iterable[PageText]) -> float:
    """Return the font size of the body text. Returns 0 if no size is known.

    The body size is the most common size of the prose. If the most common size of all text is larger, that size is used
    instead. In an invoice, for example, the prose is only the small print.
    """
    prose: Counter[float] = Counter()
    letters: Counter[float] = Counter()
    for block in (block for page in pages for block in page.blocks if block.kind in _COUNTED and block.size):
        letters[block.size] += (count := count_letters(block.text))
        prose[block.size] += count if _is_prose(block) else 0
    sizes = [max(counts, key=lambda size: (counts[size], size), default=0.0) for counts in (+prose, letters)]
    return max(sizes)


def is_form(pages: Sequence[PageText]) -> bool:
    """Whether a document is probably a form, letter or invoice.

    Such a document has little prose, and it has only a few pages or many labels.
    """
    blocks = [block for page in pages for block in page.blocks if block.kind in _COUNTED]
    letters = sum(len(block.text) for block in blocks)
    if sum(len(block.text) for block in blocks if _is_prose(block) or _is_short_prose(block)) >= _LEAST_PROSE * letters:
        return False
    labels = sum(_LABEL.search(block.text) is not None for block in blocks)
    return len(pages) <= _FEW_PAGES or labels >= _ENOUGH_NUMBERS * len(pages)


def _is_prose(block: PageBlock) -> bool:
    return block.kind in _BODY and block.lines >= _LONG and "\n" not in block.text


def _is_short_prose(block: PageBlock) -> bool:
    """Whether a block is a paragraph or list that has more than one line and ends with a full stop."""
    is_long = block.lines > 1 and len(block.text) > _SHORT
    return is_long and block.kind in _BODY and "\n" not in block.text and block.text.endswith(".")


def heading_levels(
    pages: Sequence[PageText], body: float, marked: Mapping[Place, int], skipped: Collection[Place]
) -> dict[Place, int]:
    """Map each heading to its level. Blocks that are not in the result are not headings.

    `marked` contains, for each block that a bookmark points to, the level of the bookmark. Blocks in `skipped` are
    ignored.
    """
    is_heading = partial(_is_title_of_form if is_form(pages) else _is_heading_of_prose, body)
    likely = {
        place: block
        for number, page in enumerate(pages)
        for index, block in enumerate(page.blocks)
        if block.kind in _TEXTS
        and (place := Place(number, index)) not in skipped
        and (place in marked or (_may_be_heading(block, body) and is_heading(page.blocks, index)))
        and (number or place in marked or not _are_authors(page.blocks, index))
    }
    if marked and not _are_flat(likely, marked):
        by_style = _levels_of_marked(likely, marked)
    else:
        marked = {}
        likely = _without_contents(likely)
        by_style = _levels_by_number(likely) or _levels_by_rank(likely)
    contents = {number for number, page in enumerate(pages) if any(_are_contents(one.text) for one in page.blocks)}
    return {
        place: min(marked.get(place) or by_style[_style(block)], MOST_LEVEL)
        for place, block in likely.items()
        if place in marked or place.page not in contents or not _CONTENTS_LINE.search(block.text)
    }


def _are_flat(likely: Headings, marked: Mapping[Place, int]) -> bool:
    """Whether the bookmark levels are meaningless: they are all equal, but the headings have many different sizes."""
    if len(set(marked.values())) > 1:
        return False
    sizes = sorted({likely[place].size for place in marked})
    return sum(other > _LARGER * one for one, other in pairwise(sizes)) > 1


def _may_be_heading(block: PageBlock, body: float) -> bool:
    """Whether the region of a block can contain headings: the body of the page or a text box.

    In a text box, a heading must be bold and have very large letters.
    """
    if block.region is RegionKind.BOX:
        return block.bold and block.size >= _TITLE * body > 0
    return block.region is RegionKind.BODY


def is_likely(block: PageBlock, body: float) -> bool:
    """Whether a block looks like a heading. `body` is the font size of the body text."""
    most_lines = _MOST_LINES_OF_TITLE if body and block.size > _TITLE * body else _MOST_LINES
    if len(block.text) > _MOST_CHARACTERS or block.lines > most_lines:
        return False
    is_styled = _is_styled(block, body) if body and block.size else block.kind is BlockKind.HEADING
    return is_styled and _NEVER.search(block.text) is None


def _is_styled(block: PageBlock, body: float) -> bool:
    text, ratio = block.text, block.size / body
    if block.bold and _PARAGRAPH_SIGN.match(text) and ratio >= _SMALLER_NUMBERED and len(text) <= _SHORT:
        return True
    is_large = block.bold and ratio >= _MUCH_LARGER and _ONE_SENTENCE.fullmatch(text) is not None
    is_name = block.bold and ratio >= _LARGER and _COMMAND_NAME.fullmatch(text) is not None
    number = _NUMBER.match(text)
    is_numbered = number is not None and (
        any(map(str.isdigit, number[1]))
        or text[number.end(1) : number.end(1) + 1] == "."
        or not text.rstrip().endswith((":", ";", ","))
    )
    if count_letters(text) < _LEAST_LETTERS or not (is_numbered or _reads_as_title(text, ratio) or is_large or is_name):
        return False
    if ratio >= _LARGER:
        return True
    least = _SMALLER_NUMBERED if block.bold and _DEEP_NUMBER.match(text) else _SMALLER
    if ratio < least or block.lines > _MOST_LINES_OF_BODY_SIZE or len(text) > _SHORT:
        return False
    return (
        block.bold
        or _DEEP_NUMBER.match(text) is not None
        or (text.isupper() and count_letters(text) >= _LEAST_CAPITALS and _CAPITALS.fullmatch(text) is not None)
    )


def _reads_as_title(text: str, ratio: float) -> bool:
    """Whether the text reads like a title, and not like part of a sentence.

    A short text in large letters may start in lower case. If it is a single word, it may also end with a full stop.
    """
    if ratio >= _MUCH_LARGER and len(text) <= _FEW_WORDS:
        return _CLAUSE_END.search(text) is None and (" " not in text or not text.endswith("."))
    return not _SENTENCE_END.search(text) and (not text[:1].islower() or _IDENTIFIER.match(text) is not None)


def _is_heading_of_prose(body: float, blocks: Sequence[PageBlock], index: int) -> bool:
    return (
        (is_likely(blocks[index], body) and not _is_term(body, blocks, index) and not _is_titled_caption(blocks, index))
        or _is_italic_heading(body, blocks, index)
        or _is_small_heading(body, blocks, index)
        or _is_centred_section(body, blocks, index)
    )


def _are_authors(blocks: Sequence[PageBlock], index: int) -> bool:
    """Whether a line on the first page contains only names.

    The line must not be bold. It must be centred below a title in larger letters, or the text below it must contain an
    affiliation, such as a university, or an email address.
    """
    block = blocks[index]
    after = blocks[index + 1].text if index + 1 < len(blocks) else ""
    if index and not block.bold and _NAMES.fullmatch(block.text) and _AFFILIATION.search(after[:_MOST_CHARACTERS]):
        return True
    above = [one for one in blocks[max(0, index - _MOST_LINES) : index] if one.box and not one.figure]
    if block.bold or block.box is None or not above or not _NAMES.fullmatch(block.text):
        return False
    middle = block.box.left + block.box.right
    return any(
        one.size > _CENTRED_LARGER * block.size and abs(sum((one.box.left, one.box.right)) - middle) < 2 * block.size
        for one in above
        if one.box
    )


def _is_term(body: float, blocks: Sequence[PageBlock], index: int) -> bool:
    """Whether a line is the term of a definition, because the text directly below it is indented further."""
    block, after = blocks[index], blocks[index + 1] if index + 1 < len(blocks) else None
    if after is None or block.box is None or after.box is None or block.size >= _LARGER * body:
        return False
    if after.kind is not BlockKind.PARAGRAPH or _NUMBER.match(block.text) or (block.bold and block.text.isupper()):
        return False
    indent, gap = after.box.left - block.box.left, after.box.top - block.box.bottom
    return _LEAST_INDENT * body < indent < _MOST_INDENT * body and -body < gap < body


def _is_titled_caption(blocks: Sequence[PageBlock], index: int) -> bool:
    """Whether a line is the title of a table or figure, because the line directly above it is only a label such as
    "Table 1".
    """
    block, before = blocks[index], blocks[index - 1] if index else None
    if before is None or before.region is not RegionKind.CAPTION or block.box is None or before.box is None:
        return False
    is_below = -block.size < block.box.top - before.box.bottom < block.size
    return is_below and _CAPTION_LABEL.fullmatch(before.text) is not None


def _is_centred_section(body: float, blocks: Sequence[PageBlock], index: int) -> bool:
    """Whether a centred line names a section, such as "Article 4: Scope", and is directly above a paragraph."""
    block, after = blocks[index], blocks[index + 1] if index + 1 < len(blocks) else None
    if block.lines > 1 or len(block.text) > _SHORT or block.size < _SMALLER * body or not _SECTION.match(block.text):
        return False
    if after is None or after.kind not in _BODY or block.box is None or after.box is None:
        return False
    return block.box.left > after.box.left + 2 * block.size and _is_centred(blocks, index)


def _is_centred(blocks: Sequence[PageBlock], index: int) -> bool:
    """Whether a block is centred between the outer edges of the page's text, and clearly narrower than this text."""
    box, boxes = blocks[index].box, [block.box for block in blocks if block.box and not block.figure]
    if box is None or len(boxes) < _FEW_PAGES:
        return False
    left, right = min(one.left for one in boxes), max(one.right for one in boxes)
    is_middle = abs(box.left + box.right - left - right) < 0.04 * (right - left)
    return is_middle and box.right - box.left < 0.8 * (right - left)


def _is_italic_heading(body: float, blocks: Sequence[PageBlock], index: int) -> bool:
    """Whether an italic line is a heading.

    It must be directly above a paragraph, and must not continue the paragraph above it.
    """
    block, before = blocks[index], blocks[index - 1] if index else None
    if not block.italic or block.lines > 1 or block.size < _SMALLER * body or not _reads_as_title(block.text, 1.0):
        return False
    if _NEVER.search(block.text) or len(block.text) > _FEW_WORDS or count_letters(block.text) < _LEAST_LETTERS:
        return False
    if before and before.kind is BlockKind.PARAGRAPH and not before.text.endswith((".", "!", "?", ":")):
        return False
    after = blocks[index + 1] if index + 1 < len(blocks) else block
    is_above = _starts_section(blocks, index) or _NUMBER.match(block.text) is not None
    return not after.italic and after.lines > 1 and "\n" not in after.text and is_above


def _is_small_heading(body: float, blocks: Sequence[PageBlock], index: int) -> bool:
    """Whether a bold line in smaller letters than the body text is a heading.

    The gap above it must be larger than the gap below it, and a paragraph in the size of the body text must follow.
    """
    block, before = blocks[index], blocks[index - 1] if index else None
    after = blocks[index + 1] if index + 1 < len(blocks) else block
    if not block.bold or block.lines > 1 or not _LEAST_SMALL * body <= block.size < _SMALLER * body:
        return False
    if len(block.text) > _FEW_WORDS or not _reads_as_title(block.text, 1.0) or _NEVER.search(block.text):
        return False
    if after.size < _SMALLER * body or not _is_prose_line(after) or not _starts_section(blocks, index):
        return False
    if before is None or before.box is None or block.box is None or after.box is None:
        return False
    above = block.box.top - before.box.bottom
    return _is_prose_line(before) and above > max(block.size / 2, _MORE_ABOVE * (after.box.top - block.box.bottom))


def _is_prose_line(block: PageBlock) -> bool:
    """Whether a block is a paragraph or a list and ends with `.`, `!`, `?` or `:`."""
    return block.kind in _BODY and block.text.endswith((".", "!", "?", ":"))


def _is_title_of_form(body: float, blocks: Sequence[PageBlock], index: int) -> bool:
    """Whether a line is a heading in a form.

    It is a common title such as "Invoice", or a line that is clearly separate from other lines.
    """
    block = blocks[index]
    text, ratio = block.text, block.size / body if body else 0.0
    if not is_likely(block, body):
        return _is_centred_section(body, blocks, index)
    if _TITLE_WORD.match(text):
        return _LABEL_END.search(text) is None
    if ":" in text or _has_beside(blocks, index):
        return False
    if block.bold and ratio >= _CENTRED_LARGER and block.lines == 1 and _is_centred(blocks, index):
        return True
    if _DIGIT_AFTER_NUMBER.match(text):
        return False
    # In manual pages, the text below a heading in capitals is indented.
    indent = _MOST_INDENT if text.isupper() and block.lines == 1 else 2.0
    return not ratio or ratio >= _MUCH_LARGER or (block.bold and _starts_section(blocks, index, indent))


def _has_beside(blocks: Sequence[PageBlock], index: int) -> bool:
    """Whether the page has other text at the same height as this block. Pictures, such as logos, are ignored."""
    box = blocks[index].box
    near = (*blocks[max(0, index - _NEAR) : index], *blocks[index + 1 : index + _NEAR])
    near = tuple(one for one in near if not one.figure)
    return box is not None and any(
        one.box is not None and one.box.top < (box.top + box.bottom) / 2 < one.box.bottom for one in near
    )


def _starts_section(blocks: Sequence[PageBlock], index: int, indent: float = 2.0) -> bool:
    """Whether the block can be the heading of a section, judging by the block directly below it.

    That block must be a table or have nearly the same left edge, and must not be bold unless it is indented. `indent`
    is the largest distance between the edges, as a multiple of the size of the heading.
    """
    block, after = blocks[index], blocks[index + 1] if index + 1 < len(blocks) else None
    if after is None or block.box is None or after.box is None:
        return False
    if after.bold and after.box.left < block.box.left + block.size:
        return False
    gap = after.box.top - block.box.bottom
    is_aligned = abs(after.box.left - block.box.left) < indent * block.size or after.kind is BlockKind.TABLE
    return is_aligned and -block.size < gap < 3 * block.size


def join_headings(pages: Sequence[PageText], body: float) -> Sequence[PageText]:
    """Join the lines of each heading that has several lines.

    Also joins a heading with its number if they are separate blocks.
    """
    if not body or is_form(pages):
        return pages
    return [replace(page, blocks=tuple(_joined(page.blocks, body))) for page in pages]


def _joined(blocks: Sequence[PageBlock], body: float) -> list[PageBlock]:
    made: list[PageBlock] = []
    for block in blocks:
        if made and _continues(made[-1], block, body):
            made[-1] = _join(made[-1], block)
        elif made and _is_chapter_number(made[-1], block, body):
            made[-1] = replace(_join(made[-1], block), size=block.size, bold=block.bold)
        else:
            made.append(block)
    return made


def _continues(one: PageBlock, other: PageBlock, body: float) -> bool:
    """Whether `other` is the next line of the heading `one`, or the text that belongs to the heading number `one`."""
    if (
        {one.kind, other.kind} - _TEXTS
        or {one.region, other.region} != {RegionKind.BODY}
        or _style(one) != _style(other)
    ):
        return False
    if one.box is None or other.box is None or one.size < _LARGER * body or one.lines + other.lines > _MOST_LINES:
        return False
    if _BARE_NUMBER.fullmatch(one.text):
        return abs(one.box.top - other.box.top) < one.size / 2 and one.box.right < other.box.left
    if not is_likely(one, body) or _NUMBER.match(other.text) or _SENTENCE_END.search(other.text):
        return False
    runs_on = one.text.endswith("-") or other.text[:1].islower()
    hangs = _NUMBER.match(one.text) is not None and other.box.left > one.box.left + one.size / 2
    centred = abs(one.box.left + one.box.right - other.box.left - other.box.right) < one.size
    wrapped = other.box.right < one.box.right + one.size and other.box.left > one.box.left - one.size
    gap = abs(other.box.top - one.box.bottom) / one.size
    return gap < (1 if runs_on or hangs else 1 / 2) and (wrapped or centred or runs_on)


def _is_chapter_number(one: PageBlock, other: PageBlock, body: float) -> bool:
    """Whether `one` is a chapter number for the title `other`: "Chapter 3" above it, or a large number beside it."""
    if {one.kind, other.kind} - _TEXTS or {one.region, other.region} != {RegionKind.BODY} or one.lines > 1:
        return False
    if one.box is None or other.box is None or min(one.size, other.size) < _CENTRED_LARGER * body:
        return False
    if not is_likely(other, body) or _CHAPTER.fullmatch(other.text):
        return False
    if _CHAPTER.fullmatch(one.text):
        return one.size <= _LARGER * other.size and -one.size < other.box.top - one.box.bottom < _FAR_BELOW * one.size
    is_beside = one.box.top < (other.box.top + other.box.bottom) / 2 < one.box.bottom and one.box.right < other.box.left
    return is_beside and one.size > _LARGER * other.size and one.text.isdecimal()


def _join(one: PageBlock, other: PageBlock) -> PageBlock:
    sides = zip(one.box or (), other.box or (), (min, min, max, max), strict=False)
    box = Box(*(outer(side, beside) for side, beside, outer in sides))
    divided = one.text.endswith("-") and other.text[:1].islower()
    text = one.text[:-1] + other.text if divided else f"{one.text} {other.text}"
    return replace(one, text=text, box=box, lines=one.lines + other.lines)


def _style(block: PageBlock) -> Style:
    return Style(block.size, block.bold)


def _levels_of_marked(likely: Headings, marked: Mapping[Place, int]) -> dict[Style, int]:
    """Find the heading level of each style (font size and weight) from bookmarks.

    The level of a style is the most common level of the bookmarks that point to headings in this style. A style without
    bookmarks gets the level below those of all larger styles.
    """
    votes: defaultdict[Style, Counter[int]] = defaultdict(Counter)
    for place, level in marked.items():
        if place in likely:
            votes[_style(likely[place])][level] += 1
    known = {style: max(levels, key=lambda level: (levels[level], -level)) for style, levels in votes.items()}
    deepest = max(known.values(), default=0)
    levels: dict[Style, int] = {}
    for style in {_style(block) for block in likely.values()}:
        above = [level for other, level in known.items() if other >= style]
        levels[style] = known.get(style) or min(max(above, default=0) + 1, deepest + 1)
    return levels


def _levels_by_rank(likely: Headings) -> dict[Style, int]:
    """Find the heading level of each style from its font size. Larger styles have higher levels.

    At the same size, bold text has a higher level than regular text. If the largest style is used only on the first
    page, it is the document title, and the next style also gets level 1.
    """
    places: defaultdict[Style, list[Place]] = defaultdict(list)
    for place, block in likely.items():
        places[_style(block)].append(place)
    levels: dict[Style, int] = {}
    level, before = 0, None
    for style in sorted(places, reverse=True):
        if before is None or not _is_same(before, style):
            level += 1
        levels[style] = level
        before = style
        is_title = style == max(places) and all(place.page == 0 for place in places[style])
        if is_title and len(places) > 1:
            level = 0
    return levels


def _levels_by_number(likely: Headings) -> dict[Style, int]:
    """Find the heading level of each style from section numbers: "2.1" means level 2.

    A style without numbers gets the level below the next larger style with numbers. Returns an empty dictionary if too
    few headings have numbers.
    """
    depths: defaultdict[Style, Counter[int]] = defaultdict(Counter)
    for block in likely.values():
        depths[_style(block)][_depth(block.text)] += 1
    levels: dict[Style, int] = {}
    above = 0
    for style in sorted(depths, reverse=True):
        numbered = {depth: count for depth, count in depths[style].items() if depth}
        if sum(numbered.values()) >= max(_ENOUGH_NUMBERS, depths[style].total() / 3):
            above = levels[style] = max(above, max(numbered, key=lambda depth: (numbered[depth], -depth)))
        else:
            levels[style] = above + 1
    return levels if above else {}


def _depth(text: str) -> int:
    found = _NUMBER.match(text)
    return found[1].count(".") + 1 if found else 0


def _without_contents(likely: Headings) -> dict[Place, PageBlock]:
    """Remove the lines of a printed table of contents. They look like headings, but end with page numbers."""
    lines = {place for place, block in likely.items() if _CONTENTS_LINE.search(block.text)}
    near = (Place(place.page, place.block + step) in lines for place in lines for step in (-1, 1))
    entries = Counter(place.page for place in lines) if any(near) else Counter[int]()
    return {
        place: block
        for place, block in likely.items()
        if entries[place.page] < _ENOUGH_NUMBERS or not _CONTENTS_LINE.search(block.text)
    }


def _are_contents(text: str) -> bool:
    """Whether a text consists of several lines of a printed table of contents."""
    return "\n" in text and all(map(_CONTENTS_LINE.search, text.split("\n")))


def _is_same(one: Style, other: Style) -> bool:
    return one.bold == other.bold and abs(one.size - other.size) <= _SAME_SIZE * max(one.size, other.size)


# Bookmarks: each points to a block on the same page with nearly the same words.

_ALIKE = 0.85
# Allowed differences: a number before the title, or a title that continues in the next block.
_MORE_CHARACTERS = 12
_PART = 0.6
_MOST_COMPARED = 300
_NOT_WORDS = re.compile(r"[\W_]+")


class Match(NamedTuple):
    """The index of a bookmark, and the position of the block that it points to."""

    bookmark: int
    place: Place


def match_bookmarks(
    pages: Sequence[PageText], bookmarks: Sequence[Bookmark], skipped: Collection[Place]
) -> Iterator[Match]:
    """Find the block that each bookmark points to, by the bookmark's title.

    If two blocks match equally well, the first is chosen.
    """
    wanted: defaultdict[int, list[int]] = defaultdict(list)
    for number, bookmark in enumerate(bookmarks):
        if bookmark.page and bookmark.page <= len(pages):
            wanted[bookmark.page - 1].append(number)
    for page, numbers in wanted.items():
        blocks = {
            Place(page, index): (_words(block.text), block)
            for index, block in enumerate(pages[page].blocks)
            if block.kind in _TEXTS and len(block.text) <= _MOST_COMPARED and Place(page, index) not in skipped
        }
        for number in numbers:
            title = _words(bookmarks[number].title)
            best = max(blocks, key=lambda place: _score(title, *blocks[place]), default=None)
            if best and _score(title, *blocks[best]) > 0:
                yield Match(number, best)
                del blocks[best]


def _words(text: str) -> str:
    return _NOT_WORDS.sub(" ", plain_title(text).lower()).strip()


def _score(title: str, words: str, block: PageBlock) -> float:
    """Return how well a block matches a bookmark's title. Returns 0 if it does not match.

    Headings and large text score higher.
    """
    alike = _likeness(title, words)
    return alike + (block.kind is BlockKind.HEADING) * 0.2 + min(block.size, 100.0) / 1000 if alike else 0.0


def _shared_letters(one: str, other: str) -> int:
    """Return twice the number of letters that two texts have in common.

    The result can be divided by the total length of both texts.
    """
    return 2 * (Counter(one) & Counter(other)).total()


def _likeness(title: str, words: str) -> float:
    if not title or not words:
        return 0.0
    if title == words:
        return 1.0
    if title in words and len(words) < len(title) + _MORE_CHARACTERS:
        return 0.95
    if words in title and len(words) > _PART * len(title):
        return 0.9
    length = len(title) + len(words)
    # Upper bounds of the ratio, which take a fraction of the time.
    if 2 * min(len(title), len(words)) / length < _ALIKE or _shared_letters(title, words) / length < _ALIKE:
        return 0.0
    ratio = SequenceMatcher(None, title, words, autojunk=False).ratio()
    return ratio * 0.9 if ratio >= _ALIKE else 0.0
