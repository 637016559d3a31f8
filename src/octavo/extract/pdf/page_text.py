"""Reads the metadata and the pages of a PDF. Uses liteparse, PDFium where liteparse fails, and OCR."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median

from octavo.core.texts import ANY_LANGUAGE
from octavo.extract.extracted import BlockKind, Box, Metadata, RegionKind
from octavo.extract.markdown import read_blocks
from octavo.extract.markdown.blocks import shorten
from octavo.extract.pdf.annotations import Annotation, field_regions, merge_annotations, read_annotations, with_ticks
from octavo.extract.pdf.content import WHITE, ContentError, PageContent, TextRun, Word, read_contents
from octavo.extract.pdf.document import Document, OpenPage, PageError, fitting_scale, open_document, render
from octavo.extract.pdf.doubts import MOVED, has_moved_words
from octavo.extract.pdf.drawn_marks import with_drawn_marks
from octavo.extract.pdf.letters import (
    RAISED,
    clean_letters,
    count_letters,
    has_split_letters,
    has_unread_letters,
    is_garbled,
    is_meaningless,
    is_phonetic,
    is_right_to_left,
    one_line,
    signs_of,
    with_whole_korean,
)
from octavo.extract.pdf.lines import is_inside, is_inside_any, is_monospaced
from octavo.extract.pdf.own_letters import (
    may_have_halved_ligatures,
    with_own_letters,
    with_own_spaces,
    with_raised_letters,
    with_whole_ligatures,
    without_doubles,
)
from octavo.extract.pdf.page_batches import Batch, Bookmark, PageBlock, PageText, PdfFacts
from octavo.extract.pdf.placed_words import join_letters
from octavo.extract.pdf.regions import PageLayout, lay_out, turn_of
from octavo.extract.pdf.wrong_glyphs import with_right_symbols, with_whole_listings, without_known_codes
from octavo.extract.plain_text import convert

_MOST_LABEL = 40
_FEW_LETTERS = 80
_FEW_AT_EDGES, _AT_EDGE = 4, 0.06  # blocks; share of the height of the page
_LEFT = 0.7  # as a share of PDFium's letters; with fewer, PDFium's text is used
_NEARLY_ALL = 0.96
_LEAST_MISSING = 20
_LEAST_OF_FONT = 0.1  # as a share of the letters of a page
_JOINED = 0.12  # as a share of the letter size; letters closer than this are one word
_WORD_SPACE = 0.5  # as a share of the height of a word
_SCAN = 0.85  # as a share of the page
_LEAST_OF_LAYER = 0.85  # letters and digits among the characters of a page; less is noise
_LEAST_OF_LINE = 0.5
_LABEL_NUMBER = re.compile(r"[\dA-Z]{1,3}[.:]?[\u2014\u2013-]")
_UNEVEN = 0.25  # as a share of the letter size, in recognised text
_COPY_BYTES = 64 * 1024 * 1024
_LAST_OF_FIRST_PLANE = "\uffff"
_BEYOND_FIRST_PLANE = re.compile("[\U00010000-\U0010ffff]")
DAMAGED = "The page is damaged."
_NO_LAYOUT = "This page was read without its layout. The order, headings and tables may be wrong."
_MISSING = "Some letters on this page may be missing."
_UNREAD = "Some characters on this page could not be read."
_GARBLED = "A font on this page cannot be decoded. Text in this font is missing."


def read_batch(path: Path, first: int, last: int, password: str | None = None, *, layout: bool = True) -> Batch:
    """Read the pages from `first` to `last`, inclusive.

    If `layout` is false, only PDFium is used, and the text has no layout.
    """
    with open_document(path, password) as document:
        last = min(last, document.page_count)
        contents = _contents(document, first, last, _pages_per_copy(path, document)) if layout else iter(())
        return Batch(tuple(_read_pages(document, first, last, contents)))


def _read_pages(
    document: Document, first: int, last: int, contents: Iterator[tuple[int, PageContent]]
) -> Iterator[PageText]:
    """Read the pages one by one. The contents of a page are freed before the next page is read."""
    number, content = next(contents, (0, None))
    for wanted in range(first, last + 1):
        while number and number < wanted:
            number, content = next(contents, (0, None))
        yield _page(document, wanted, content if number == wanted else None)


def _pages_per_copy(path: Path, document: Document) -> int:
    """Return the number of pages to copy at a time.

    The number is limited, because a book of large images could fill the memory.
    """
    return max(1, _COPY_BYTES * document.page_count // max(path.stat().st_size, 1))


def _contents(document: Document, first: int, last: int, pages_per_copy: int) -> Iterator[tuple[int, PageContent]]:
    """Yield the number and the contents of each page, read with the liteparse library.

    PDFium first copies the pages to a new file, because liteparse cannot read every file directly. liteparse rejects
    files without the right extension, keeps the whole file in memory, crashes on bookmarks that form a cycle, and
    cannot open some damaged files that PDFium repairs.
    """
    for start in range(first, last + 1, pages_per_copy):
        end = min(start + pages_per_copy - 1, last)
        try:
            for content in read_contents(document.copy(start, end)):
                yield content.number + start - 1, content
        except (ContentError, PageError):
            continue


def label_of(document: Document, number: int) -> str:
    return clean_letters(document.label(number)).strip()[:_MOST_LABEL] or str(number)


def _page(document: Document, number: int, content: PageContent | None) -> PageText:
    label = label_of(document, number)
    try:
        with document.page(number) as page:
            found = read_annotations(page.handle, document.form(), page.placed())
            read = _read_page(document, page, number, label, content, found)
            text = "".join(block.text for block in read.blocks)
            if is_meaningless(text):
                read = replace(read, blocks=(), pictures=True, plain=False, unsure=None)
            elif text and (len(text) < _FEW_LETTERS or _is_at_edges(read)) and page.shows_one_picture():
                read = replace(read, pictures=True)
            return _with_annotations(read, found) if found else read
    except PageError:
        return PageText(number, label, None, None, failed=DAMAGED)


def _is_at_edges(page: PageText) -> bool:
    """Whether all text of a page is in a few lines at its upper and lower edge, such as a web address under a scan."""
    boxes = [block.box for block in page.blocks if not block.figure]
    height = page.height or 0.0
    return len(boxes) <= _FEW_AT_EDGES and all(
        box and (box.bottom < _AT_EDGE * height or box.top > (1 - _AT_EDGE) * height) for box in boxes
    )


def _with_annotations(page: PageText, found: Sequence[Annotation]) -> PageText:
    """Add form values, typed text and comments to a page. PDF files store them separately from the text."""
    fields = (
        PageBlock(BlockKind.PARAGRAPH, one.text, one.box, region=RegionKind.FIELD)
        for one in field_regions(page.number, found)
    )
    return replace(page, blocks=merge_annotations(page.blocks, found), fields=tuple(fields))


def _read_page(
    document: Document,
    page: OpenPage,
    number: int,
    label: str,
    content: PageContent | None,
    annotations: Sequence[Annotation],
) -> PageText:
    if content is None or not content.runs:
        return _read_plain(page, number, label)
    own = page.text()
    content, reasons, garbled = _with_right_letters(page, content, own)
    if garbled:
        return PageText(number, label, content.width, content.height, pictures=True)
    found = "".join(run.text for run in content.runs)
    letters = count_letters(found)
    if _LEFT * count_letters(own) > letters and _LEFT * count_letters(without_doubles(own)) > letters:
        if is_garbled(own):
            return PageText(number, label, *page.size, pictures=True)
        content, reasons = _from_own_letters(page, content), ()
    content = with_ticks(_without_hidden(page, content), annotations)
    images = page.images()
    is_scan = any(_is_page(image, content) for image in images) and page.has_hidden_text()
    if is_scan:
        content = _with_even_letters(content)
    content = with_drawn_marks(content, images)
    laid = _laid_out(document, page, number, content, images) if content.runs else None
    if laid is None:
        return _read_plain(page, number, label)
    blocks = tuple(replace(block, text=with_whole_korean(block.text, own)) for block in laid.blocks)
    read = PageText(number, label, laid.width, laid.height, blocks, right_to_left=is_right_to_left(found))
    if is_scan:
        return _read_scan(replace(read, unsure=" ".join(laid.unsure) or None), own)
    moved = (MOVED,) if has_moved_words(blocks, own) else ()
    return replace(read, unsure=" ".join((*reasons, *laid.unsure, *moved)) or None)


def _without_hidden(page: OpenPage, content: PageContent) -> PageContent:
    """Remove white text on a white background. Forms often contain such hidden text."""
    white = [run for run in content.runs if run.white]
    if white:
        dark = [shape.box for shape in content.shapes if shape.filled and shape.colour != WHITE]
        white = [run for run in white if not is_inside_any(run.box, dark)]
    if not white:
        return content
    hidden = {
        run.box for run, is_hidden in zip(white, page.hides([run.box for run in white]), strict=True) if is_hidden
    }
    kept = tuple(run for run in content.runs if run.box not in hidden or not run.white)
    first = {run.box: run.words[0] for run in white if run.box not in hidden and len(run.words) > 1}
    starts = list(first.values())
    faint = {
        word for word, is_hidden in zip(starts, page.hides([Box(*one[:4]) for one in starts]), strict=True) if is_hidden
    }
    kept = tuple(_without_first(run) if run.white and first.get(run.box) in faint else run for run in kept)
    return replace(content, runs=kept) if kept else content


def _without_first(run: TextRun) -> TextRun:
    """Remove the first word of a text run, because the word is white on white. The other words have another colour.

    If the second word begins with a short number and a dash, as in "1.-", these are also removed.
    """
    second = _LABEL_NUMBER.sub("", run.words[1].text)
    words = (run.words[1]._replace(text=second or run.words[1].text), *run.words[2:])
    start = run.text.find(words[0].text, len(run.words[0].text))
    return run._replace(
        box=run.box._replace(left=words[0].left), words=words, text=run.text[max(start, 0) :], white=False
    )


def _from_own_letters(page: OpenPage, content: PageContent) -> PageContent:
    """Replace all words of a page with PDFium's words, because the words from liteparse are incomplete.

    The fonts of PDFium's words are unknown.
    """
    runs: list[TextRun] = []
    for word in join_letters(page.letters(by_size=True)):
        box, before = word.box, runs[-1] if runs else None
        placed, size = Word(*box, word.text), round(box.bottom - box.top, 1)
        if before and _is_level(before.box, box) and 0 <= box.left - before.box.right < _WORD_SPACE * size:
            whole = Box(before.box.left, min(before.box.top, box.top), box.right, max(before.box.bottom, box.bottom))
            words = (*before.words, placed)
            runs[-1] = before._replace(box=whole, text=f"{before.text} {word.text}", words=words)
        elif word.text.strip():
            runs.append(TextRun(box, word.text, size, "", False, False, 0.0, None, (placed,)))  # noqa: FBT003
    return replace(content, runs=tuple(runs))


def _with_even_letters(content: PageContent) -> PageContent:
    """Remove the font names, which are meaningless in text from OCR, and even out small differences in letter size."""
    usual = median(run.size for run in content.runs)
    return replace(
        content,
        runs=tuple(
            run._replace(font="", size=usual if abs(run.size - usual) < _UNEVEN * usual else run.size)
            for run in content.runs
        ),
    )


def _is_page(image: Box, content: PageContent) -> bool:
    return (image.right - image.left) * (image.bottom - image.top) > _SCAN * content.width * content.height


def _read_scan(read: PageText, own: str) -> PageText:
    """Drop the unreadable blocks of a scanned page whose text was added by another OCR program.

    If most of the text is unreadable, all blocks are dropped, so that Octavo runs OCR on the page.
    """
    if _share_of_letters(own) < _LEAST_OF_LAYER:
        return replace(read, blocks=(), pictures=True, unsure=None)
    kept = tuple(block for block in read.blocks if block.figure or _share_of_letters(block.text) > _LEAST_OF_LINE)
    return replace(read, blocks=kept, recognised=True)


def _share_of_letters(text: str) -> float:
    """Return the share of letters and digits among the characters that are not spaces."""
    dense = "".join(text.split())
    return sum(map(str.isalnum, dense)) / max(len(dense), 1)


def _with_right_letters(page: OpenPage, content: PageContent, own: str) -> tuple[PageContent, tuple[str, ...], bool]:
    """Restore missing letters from PDFium's text (`own`), and remove text in fonts that map glyphs to wrong characters.

    Returns the corrected page, the reasons why it may be wrong, and whether most letters were wrong.
    """
    content, missing, misses_digits = with_own_letters(content, own, page.characters)
    content = with_own_spaces(content, own)
    if may_have_halved_ligatures(own):
        content = with_whole_ligatures(content, page.characters(), page.font_of)
    content = with_right_symbols(content, own, page.characters, page.font_of)
    content = with_whole_listings(content, page.characters)
    if RAISED.search(own):
        characters = page.characters()
        content = with_raised_letters(content, characters, page.raised(characters.text))
    reasons: list[str] = []
    fonts: defaultdict[str, list[TextRun]] = defaultdict(list)
    for run in content.runs:
        fonts[run.font].append(run)
    least = _LEAST_OF_FONT * sum(len(run.text) for run in content.runs)
    bad = {font for font, runs in fonts.items() if _is_bad(font, " ".join(run.text for run in runs), least)}
    if bad:
        kept = tuple(run for run in content.runs if run.font not in bad)
        if 2 * sum(len(run.text) for run in kept) < sum(len(run.text) for run in content.runs):
            return content, (), True
        content = replace(content, runs=kept)
        reasons.append(_GARBLED)
    if not own.isascii() and _BEYOND_FIRST_PLANE.search(own):
        content = with_lost_letters(page, content)
    misses_letters = missing > max(_LEAST_MISSING, (1 - _NEARLY_ALL) * len(own))
    if (misses_digits or misses_letters) and not bad and not is_garbled(own):
        reasons.append(_MISSING)
    if not bad and not reasons and _has_unread_letters(content, own):
        reasons.append(_UNREAD)
    return content, tuple(reasons), False


def _has_unread_letters(content: PageContent, own: str) -> bool:
    found = " ".join(run.text for run in content.runs)
    if any(map(is_phonetic, {run.font for run in content.runs})) or has_split_letters(found):
        return True
    signs = sum(len(word.text) == 1 for run in content.runs if signs_of(run.font) for word in run.words)
    return has_unread_letters(without_known_codes(own), found, signs)


def _is_bad(font: str, text: str, least: float) -> bool:
    """Whether a font probably maps glyphs to wrong characters, judging by its letters.

    Monospaced fonts and fonts with few letters, such as symbol fonts, are ignored.
    """
    return len(text) >= least and not is_monospaced(font) and is_garbled(text)


def with_lost_letters(page: OpenPage, content: PageContent) -> PageContent:
    """Add characters beyond U+FFFF, which liteparse leaves out.

    A character is inserted into the text run at its position or becomes a new text run.
    """
    letters = (one if one and one[0] > _LAST_OF_FIRST_PLANE else None for one in page.letters())
    runs = list(content.runs)
    for word in join_letters(letters):
        place = min(range(len(content.runs)), key=lambda at: _distance(runs[at].box, word.box), default=None)
        near = runs[place] if place is not None else None
        if place is not None and near and is_inside(word.box, near.box) and near.words[0].left < word.box.left:
            runs[place] = _with_letters(near, word.text, word.box)
            continue
        size = near.size if near else word.box.bottom - word.box.top
        is_level = near and _is_level(near.box, word.box)
        box = Box(word.box.left, near.box.top, word.box.right, near.box.bottom) if near and is_level else word.box
        runs.append(TextRun(box, word.text, size, "", False, False, 0.0, None, (Word(*box, word.text),)))  # noqa: FBT003
    return replace(content, runs=tuple(runs))


def _with_letters(run: TextRun, text: str, box: Box) -> TextRun:
    """Insert characters into a text run. They are appended to the word directly before them, or become a new word."""
    place = sum(word.left < box.left for word in run.words)
    before = run.words[place - 1]
    is_joined = box.left - before.right < _JOINED * run.size
    added = before._replace(right=box.right, text=before.text + text) if is_joined else Word(*box, text)
    words = (*run.words[: place - is_joined], added, *run.words[place:])
    return run._replace(words=words, text=" ".join(word.text for word in words))


def _distance(one: Box, other: Box) -> float:
    across = max(one.left - other.right, other.left - one.right, 0.0)
    return across + 4 * abs(one.top + one.bottom - other.top - other.bottom)


def _is_level(one: Box, other: Box) -> bool:
    return one.top <= (other.top + other.bottom) / 2 <= one.bottom


def _laid_out(
    document: Document, page: OpenPage, number: int, content: PageContent, images: Sequence[Box]
) -> PageLayout | None:
    """Divide the contents of a page into blocks. Returns None if the page cannot be read.

    If most of the text is printed sideways, a rotated copy of the page is read, and the positions are converted back.
    """
    turn = turn_of(content)
    if not turn:
        return lay_out(content, images, page.right_text())
    try:
        copy = document.copy(number, number, turn=-turn)
        turned = next(read_contents(copy), None)
    except (ContentError, PageError):
        return None
    if turned is None:
        return None
    with page.turned(-turn):
        turned, _, _ = _with_right_letters(page, turned, page.text())
        laid = lay_out(turned, page.images(), page.right_text())
    blocks = (replace(block, box=_turned_back(block.box, laid, turn)) for block in laid.blocks)
    return PageLayout(number, content.width, content.height, tuple(blocks), laid.unsure)


def _turned_back(box: Box | None, laid: PageLayout, turn: int) -> Box | None:
    """Convert a box on a rotated copy of a page to a box on the displayed page."""
    if box is None:
        return None
    left, top, right, bottom = box
    match turn:
        case 90:
            sides = laid.height - bottom, left, laid.height - top, right
        case 180:
            sides = laid.width - right, laid.height - bottom, laid.width - left, laid.height - top
        case _:
            sides = top, laid.width - right, bottom, laid.width - left
    return Box(*(round(side, 1) for side in sides))


def _read_plain(page: OpenPage, number: int, label: str) -> PageText:
    """Read a page only with PDFium, without layout, because liteparse could not read it or found nothing on it."""
    width, height = page.size
    blocks = tuple(block for block in read_plain(page) if block.text)
    pictures = not blocks and page.shows_pictures()
    text = "".join(block.text for block in blocks)
    if is_garbled(text):
        return PageText(number, label, width, height, pictures=True)
    unsure = _NO_LAYOUT if blocks else None
    backwards = is_right_to_left(text)
    return PageText(number, label, width, height, blocks, pictures, backwards, plain=bool(blocks), unsure=unsure)


def read_plain(page: OpenPage) -> Iterator[PageBlock]:
    """Yield the text of a page as blocks without positions.

    Lists and other structures are recognised only by their text.
    """
    markdown = convert(clean_letters(page.text()).replace("\f", "\n")).markdown
    for block in read_blocks(markdown):
        content = markdown[block.start : block.end]
        match block.kind:
            case BlockKind.HEADING:
                yield PageBlock(BlockKind.HEADING, one_line(content.lstrip("# ")))
            case BlockKind.PARAGRAPH:
                yield PageBlock(BlockKind.PARAGRAPH, "\n".join(map(one_line, content.split("\n"))))
            case BlockKind.RULE:
                pass
            case _:
                yield PageBlock(block.kind, content)


# Pixels per point: 200 dpi. More does not improve letters of normal size.
SCALE = 200 / 72


def recognise_pdf_page(path: Path, number: int, password: str | None = None, language: str = ANY_LANGUAGE) -> PageText:
    """Draw a page and run OCR on the image. Positions are in points on the displayed page."""
    # Imported late: the engine takes a second to load, and most files do not need it.
    from octavo.extract.ocr.page_recognition import recognise_page

    with open_document(path, password) as document:
        label = label_of(document, number)
        try:
            with document.page(number) as page:
                width, height = page.size
            picture = render(document, number, SCALE)
        except PageError:
            return PageText(number, label, None, None, failed=DAMAGED)
    scale = fitting_scale(width, height, SCALE)
    found = recognise_page(picture, number, label, scale=scale, language=language)
    return replace(found, width=width, height=height)


# Facts about the whole file

MOST_BOOKMARKS = 20_000
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_DATE = re.compile(r"(?:D:)?\s*(\d{4})(?:-?(0[1-9]|1[0-2])(?:-?(0[1-9]|[12]\d|3[01]))?)?")
_YEARS = ("1900", "2999")
_FILE_NAME = re.compile(
    r"(?:Microsoft \w+ - )?.*\.(?:docx?|pptx?|xlsx?|dvi|tex|indd|qxd|rtf|odt|pdf|ps)", re.IGNORECASE
)
_NO_TITLE = frozenset({"untitled", "unknown", "title", "document", "(anonymous)", "anonymous", "none"})
_EXTRA = {"Subject": "subject", "Keywords": "keywords", "Creator": "creator", "Producer": "producer"}


def open_pdf(path: Path, password: str | None = None) -> PdfFacts:
    """Read the bookmarks and metadata of a PDF. Raises the same errors as `open_document`."""
    with open_document(path, password) as document:
        return PdfFacts(
            page_count=document.page_count,
            bookmarks=_bookmarks(document),
            metadata=_metadata(document),
            encrypted=document.is_encrypted,
            tagged=document.is_tagged,
        )


def _bookmarks(document: Document) -> tuple[Bookmark, ...]:
    found = ((level, _in_one_line(title), page) for level, title, page in islice(document.bookmarks(), MOST_BOOKMARKS))
    return tuple(Bookmark(level, title, page) for level, title, page in found if title)


def _metadata(document: Document) -> Metadata:
    information = {name: line for name, value in document.information.items() if (line := _in_one_line(value))}
    title = information.get("Title", "")
    language = document.language
    return Metadata(
        title=None if _is_not_a_title(title) else title,
        author=information.get("Author"),
        date=_date(information.get("CreationDate", "")) or _date(information.get("ModDate", "")),
        language=language if _LANGUAGE.fullmatch(language) else None,
        extra={ours: information[theirs] for theirs, ours in _EXTRA.items() if theirs in information},
    )


def _in_one_line(value: str) -> str:
    return shorten(clean_letters(value))


def _is_not_a_title(title: str) -> bool:
    """Whether the title is missing, a placeholder or a file name. Many programs write the file name as the title."""
    return not title or title.lower() in _NO_TITLE or _FILE_NAME.fullmatch(title) is not None


def _date(written: str) -> str | None:
    found = _DATE.match(written)
    return "-".join(filter(None, found.groups())) if found and _YEARS[0] <= found[1] <= _YEARS[1] else None
