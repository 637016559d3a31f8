"""A typed wrapper around pypdfium2, the untyped Python binding of PDFium."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import islice, repeat
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pypdfium2
from pypdfium2 import raw as pypdfium2_raw

from octavo.core.errors import BadInput, Empty, Encrypted, TooLarge
from octavo.extract.extracted import Box
from octavo.extract.pdf.letters import (
    HIGH_SURROGATES,
    RAISED,
    SURROGATES,
    Characters,
    letter_of,
    with_right_bytes,
    with_right_ligatures,
)

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PAGES = 50_000
_DEEPEST_BOOKMARK = 12
_DEEPEST_OBJECT = 4
# Fewer objects are lines and frames. More may be letters drawn as shapes.
_MANY_OBJECTS = 100
_MOST_IMAGES = 500
_MOST_OBJECTS = 20_000
_SLACK = 1.5
_LOOK_SCALE = 1.0  # pixels per point
_NEARLY_WHITE = 250  # of 255
_MOST_OF_IT = 0.6
_WHOLE_PAGE = 0.85
_MOST_COMPARED = 3000
_BELOW_BASE, _ABOVE_BASE = 0.2, 0.8  # as a share of the size of a font
_SMALLER, _HIGHER = 0.82, 0.15  # raised letters, as multiples of the size of those before them
_MOST_RAISED = 3000
_MOST_FONT_NAME = 200
_MOST_LANGUAGE_BYTES = 1000

_pdfium: Any = pypdfium2
_raw: Any = pypdfium2_raw


def _quick(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return a PDFium function that takes handles as plain numbers.

    This is faster in loops than pypdfium2, which creates an object for each handle.
    """
    place = ctypes.cast(getattr(_raw, name), ctypes.c_void_p).value
    return ctypes.CFUNCTYPE(result, *arguments)(place or 0)


_page_object = _quick("FPDFPage_GetObject", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_form_object = _quick("FPDFFormObj_GetObject", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong)
_type_of = _quick("FPDFPageObj_GetType", ctypes.c_int, ctypes.c_void_p)
_unicode_of = _quick("FPDFText_GetUnicode", ctypes.c_uint, ctypes.c_void_p, ctypes.c_int)
_PICTURE_TYPES = frozenset({_raw.FPDF_PAGEOBJ_IMAGE, _raw.FPDF_PAGEOBJ_SHADING})
_KEPT_TYPES = _PICTURE_TYPES | {_raw.FPDF_PAGEOBJ_FORM}
_LARGEST_BULLET = 16.0  # points


class PageError(Exception):
    """Raised if PDFium cannot process the page."""


@contextmanager
def open_document(path: Path, password: str | None = None) -> Generator[Document]:
    """Open a PDF.

    Raises `Encrypted`, `Empty` or `TooLarge`, and `BadInput` if the file is too damaged to open. If the password only
    protects the file against changes or printing, the file opens without it.
    """
    # Not opened by pypdfium2, because it resolves the path first. In the sandbox, the file has no other name.
    handle = _raw.FPDF_LoadDocument(bytes(path) + b"\0", password.encode() + b"\0" if password else None)
    if not handle:
        raise _named(_raw.FPDF_GetLastError(), password)
    document = _pdfium.PdfDocument(handle)
    try:
        opened = Document(document)
        if opened.page_count < 1:
            raise Empty("The PDF has no pages.")
        if opened.page_count > MOST_PAGES:
            raise TooLarge(f"A PDF can have at most {MOST_PAGES:,} pages.")
        yield opened
    finally:
        document.close()


def _named(error_code: int, password: str | None) -> Exception:
    if error_code == _raw.FPDF_ERR_PASSWORD:
        return Encrypted("The password is wrong." if password else None)
    if error_code == _raw.FPDF_ERR_SECURITY:
        return Encrypted("The encryption method of the file is not supported.")
    return BadInput("The file is damaged: it cannot be opened as a PDF.")


class Document:
    """An open PDF. Page numbers start at 1."""

    def __init__(self, document: Any) -> None:  # noqa: ANN401
        self._document = document

    @property
    def page_count(self) -> int:
        return len(self._document)

    @property
    def is_encrypted(self) -> bool:
        return _raw.FPDF_GetSecurityHandlerRevision(self._document) >= 0

    @property
    def is_tagged(self) -> bool:
        return bool(self._document.is_tagged())

    @property
    def information(self) -> dict[str, str]:
        """The metadata of the file, such as Title and Author, without empty fields."""
        return self._document.get_metadata_dict(skip_empty=True)

    @property
    def language(self) -> str:
        size = _raw.FPDFCatalog_GetLanguage(self._document, None, 0)
        if size > _MOST_LANGUAGE_BYTES:
            return ""
        buffer = ctypes.create_string_buffer(size)
        place = ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort))
        _raw.FPDFCatalog_GetLanguage(self._document, place, size)
        return buffer.raw.decode("utf-16-le", errors="replace").rstrip("\0")

    def label(self, number: int) -> str:
        """Return the printed page label. Returns an empty string if the page has no label."""
        return self._document.get_page_label(number - 1)

    def bookmarks(self) -> Iterator[tuple[int, str, int | None]]:
        """Return the level, title and page of each bookmark.

        Bookmarks can form a cycle, so a bookmark that was already read is skipped.
        """
        return self._bookmarks(None, 1, set())

    def _bookmarks(self, parent: Any, level: int, seen: set[int]) -> Iterator[tuple[int, str, int | None]]:  # noqa: ANN401
        pointer = _raw.FPDFBookmark_GetFirstChild(self._document, parent)
        while pointer and (place := ctypes.addressof(pointer.contents)) not in seen:
            seen.add(place)
            bookmark = _pdfium.PdfBookmark(pointer, self._document, level - 1)
            target = bookmark.get_dest()
            index = target.get_index() if target else None
            yield level, bookmark.get_title(), None if index is None else index + 1
            if level < _DEEPEST_BOOKMARK:
                yield from self._bookmarks(pointer, level + 1, seen)
            pointer = _raw.FPDFBookmark_GetNextSibling(self._document, pointer)

    def copy(self, first: int, last: int, *, turn: int = 0) -> bytes:
        """Make a PDF of the pages from `first` to `last`, rotated by `turn` degrees, without bookmarks and without a
        password.
        """
        made = _pdfium.PdfDocument.new()
        try:
            made.import_pages(self._document, list(range(first - 1, last)))
            for page in made if turn else ():
                page.set_rotation((page.get_rotation() + turn) % 360)
            buffer = BytesIO()
            made.save(buffer)
            return buffer.getvalue()
        except pypdfium2.PdfiumError as error:
            raise PageError from error
        finally:
            made.close()

    def attachments(self, ending: str, most_bytes: int) -> Iterator[tuple[str, bytes]]:
        """Yield the name and content of each attached file whose name ends with `ending`.

        Skips empty files and files that are too large.
        """
        for index in range(self._document.count_attachments()):
            attachment = self._document.get_attachment(index)
            name, size = attachment.get_name(), ctypes.c_ulong()
            if not name.lower().endswith(ending) or not _raw.FPDFAttachment_GetFile(attachment, None, 0, size):
                continue
            if 0 < size.value <= most_bytes:
                yield name, bytes(attachment.get_data())

    def save_unlocked(self, output: BinaryIO) -> None:
        """Write the whole document without password protection."""
        self._document.save(output, flags=_raw.FPDF_REMOVE_SECURITY)

    def form(self) -> Any:  # noqa: ANN401
        """Return PDFium's handle for the document's form. Returns None if the document has no form."""
        try:
            self._document.init_forms()
        except pypdfium2.PdfiumError:
            return None
        return self._document.formenv and self._document.formenv.raw

    @contextmanager
    def page(self, number: int) -> Generator[OpenPage]:
        self.form()  # otherwise, PDFium would not find the fields of a page that was opened earlier
        try:
            page = self._document[number - 1]
            try:
                yield OpenPage(page)
            finally:
                page.close()
        except pypdfium2.PdfiumError as error:
            raise PageError from error


class OpenPage:
    """An open page. Boxes are in points from its upper left corner."""

    def __init__(self, page: Any) -> None:  # noqa: ANN401
        self._page = page
        self._read_text: Any = None
        self._characters: Characters | None = None

    @property
    def size(self) -> tuple[float, float]:
        return self._page.get_size()

    @property
    def is_turned(self) -> bool:
        return bool(self._page.get_rotation())

    @contextmanager
    def turned(self, turn: int) -> Generator[None]:
        """Rotate the page by `turn` degrees within the `with` block.

        Positions that are read within the block refer to the rotated page.
        """
        rotation = self._page.get_rotation()
        self._page.set_rotation((rotation + turn) % 360)
        self._characters = None
        try:
            yield
        finally:
            self._page.set_rotation(rotation)
            self._characters = None

    @property
    def handle(self) -> Any:  # noqa: ANN401
        """PDFium's handle for the page."""
        return self._page.raw

    def text(self) -> str:
        with self._text_page() as text_page:
            return with_right_bytes(text_page.get_text_bounded())

    def characters(self) -> Characters:
        """Return the characters of the page. Their boxes can be read until the page is closed."""
        self._characters = self._characters or self._read_characters()
        return self._characters

    def _read_characters(self) -> Characters:
        rectangle, place = _raw.FS_RECTF(), self.placed()
        with self._text_page() as text_page:
            count, text = text_page.count_chars(), text_page.get_text_range()
            if len(text) != count:
                codes = map(_unicode_of, repeat(ctypes.cast(text_page.raw, ctypes.c_void_p)), range(count))
                text = SURROGATES.sub("\ufffd", "".join(map(chr, codes)))

        def box(index: int) -> Box | None:
            if not _raw.FPDFText_GetLooseCharBox(text_page, index, rectangle):
                return None
            return place(rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)

        return Characters(text, box)

    def font_of(self, index: int) -> bytes:
        """Return the name of the font of a character."""
        name, flags = ctypes.create_string_buffer(_MOST_FONT_NAME), ctypes.c_int()
        with self._text_page() as text_page:
            _raw.FPDFText_GetFontInfo(text_page, index, name, _MOST_FONT_NAME, flags)
        return name.value

    def raised(self, text: str) -> frozenset[int]:
        """Return the indexes of superscript digits and symbols in `text`.

        They are smaller and higher than the letter before them. `text` must contain one character for each PDFium
        character.
        """
        found: set[int] = set()
        with self._text_page() as text_page:
            for match in islice(RAISED.finditer(text), _MOST_RAISED):
                base = _line_of(text_page, match.start() - 1)
                for index in range(match.end() - 1, match.start() - 1, -1):
                    if not _is_raised(_line_of(text_page, index), base):
                        break
                    found.add(index)
        return frozenset(found)

    def right_text(self) -> Callable[[Box], str]:
        """Return a function that takes a box and returns the text in it, in reading order.

        The page is read on the first call.
        """
        read: list[list[tuple[str, Box] | None]] = []

        def text_in(box: Box) -> str:
            if not read:
                read.append(list(with_right_ligatures(self.letters())))
            inside = (one if one and _is_centre_in(one[1], box) else None for one in read[0])
            return " ".join("".join(one[0] if one else " " for one in inside).split())

        return text_in

    def letters(self, *, by_size: bool = False) -> Iterator[tuple[str, Box] | None]:
        """Yield each character with its box on the displayed page, in file order. None marks the end of a word.

        If `by_size` is true, the height of a box is computed from the font size. Otherwise it is the height that the
        font declares, which can be wrong.
        """
        box, place = _raw.FS_RECTF(), self.placed()
        with self._text_page() as text_page:
            high = 0
            for index in range(text_page.count_chars()):
                code = _raw.FPDFText_GetUnicode(text_page, index)
                if code in HIGH_SURROGATES:
                    high = code
                    continue
                letter, high = letter_of(high, code), 0
                if letter.isspace() or not _raw.FPDFText_GetLooseCharBox(text_page, index, box):
                    yield None
                    continue
                sides = _by_size(text_page, index) if by_size else None
                bottom, top = sides or (box.bottom, box.top)
                yield letter, place(box.left, bottom, box.right, top)

    def placed(self) -> Callable[[float, float, float, float], Box]:
        """Return a function that converts PDF coordinates (left, bottom, right, top) to a box on the displayed page."""
        left, bottom, right, top = self._visible_area()
        match self._page.get_rotation():
            case 90:
                return lambda x0, y0, x1, y1: Box(y0 - bottom, x0 - left, y1 - bottom, x1 - left)
            case 180:
                return lambda x0, y0, x1, y1: Box(right - x1, y0 - bottom, right - x0, y1 - bottom)
            case 270:
                return lambda x0, y0, x1, y1: Box(top - y1, right - x1, top - y0, right - x0)
            case _:
                return lambda x0, y0, x1, y1: Box(x0 - left, top - y1, x1 - left, top - y0)

    def _visible_area(self) -> tuple[float, float, float, float]:
        """Return the left, bottom, right and top of the visible page. Its size can be inherited from the page tree."""
        area = _raw.FS_RECTF()
        if not _raw.FPDF_GetPageBoundingBox(self._page, area):
            return self._page.get_cropbox()
        return area.left, area.bottom, area.right, area.top

    def hides(self, boxes: Sequence[Box]) -> list[bool]:
        """Return for each box whether it is completely white on the rendered page, so that its text is invisible."""
        scale = fitting_scale(*self.size, _LOOK_SCALE)
        bitmap = self._page.render(scale=scale, grayscale=True)
        try:
            pixels, stride = bytes(bitmap.buffer), bitmap.stride
            return [_is_white(pixels, stride, bitmap.width, [round(side * scale) for side in box]) for box in boxes]
        finally:
            bitmap.close()

    def images(self) -> list[Box]:
        """Return the boxes of the images on the displayed page. The number of boxes is limited."""
        place = self.placed()
        shown = islice(_raw_images(self._page.raw), _MOST_IMAGES)
        boxes = (place(*sides) for sides in shown)
        return [box for box in boxes if isfinite(sum(box))]

    def shows_pictures(self) -> bool:
        """Whether the page may show text that is not stored as text, either in an image or as a large number of
        strokes.
        """
        for count, shown in enumerate(self._page.get_objects(max_depth=_DEEPEST_OBJECT)):
            if shown.type == _raw.FPDF_PAGEOBJ_IMAGE or count >= _MANY_OBJECTS:
                return True
        return False

    def shows_one_picture(self) -> bool:
        """Whether one image covers most of the page."""
        width, height = self.size
        for shown in self._page.get_objects(filter=[_raw.FPDF_PAGEOBJ_IMAGE], max_depth=_DEEPEST_OBJECT):
            left, bottom, right, top = shown.get_bounds()
            if abs((right - left) * (top - bottom)) >= _MOST_OF_IT * width * height:
                return True
        return False

    def has_hidden_text(self) -> bool:
        """Whether an image covers the page, and most of the text is invisible or behind the image.

        OCR programs produce such pages.
        """
        width, height = self.size
        hidden = visible = 0
        objects = self._page.get_objects(
            filter=[_raw.FPDF_PAGEOBJ_IMAGE, _raw.FPDF_PAGEOBJ_TEXT], max_depth=_DEEPEST_OBJECT
        )
        covered = False
        for shown in islice(objects, _MOST_COMPARED):
            if shown.type == _raw.FPDF_PAGEOBJ_TEXT:
                invisible = _raw.FPDFTextObj_GetTextRenderMode(shown) == _raw.FPDF_TEXTRENDERMODE_INVISIBLE
                hidden, visible = hidden + invisible, visible + (not invisible)
                continue
            left, bottom, right, top = shown.get_bounds()
            if abs((right - left) * (top - bottom)) >= _WHOLE_PAGE * width * height:
                covered, hidden, visible = True, hidden + visible, 0
        return covered and hidden > visible

    def drawn(self, scale: float, area: Box | None = None) -> Image:
        """Draw the page, or an area of the displayed page, as an image with `scale` pixels per point."""
        width, height = self.size
        cut = (area.left, height - area.bottom, width - area.right, area.top) if area else (0, 0, 0, 0)
        bitmap = self._page.render(scale=scale, crop=cut)
        try:
            return bitmap.to_pil().convert("RGB")
        finally:
            bitmap.close()

    @contextmanager
    def _text_page(self) -> Generator[Any]:
        """Open PDFium's text layer of the page. It is loaded when first needed, and closed together with the page."""
        if self._read_text is None:
            self._read_text = self._page.get_textpage()
        yield self._read_text


def _line_of(text_page: Any, index: int) -> tuple[float, float]:  # noqa: ANN401
    """Return the vertical position of a letter's baseline, and the font size of the letter."""
    bottom, top = _by_size(text_page, index) or (0.0, 0.0)
    size = (top - bottom) / (_ABOVE_BASE + _BELOW_BASE)
    return bottom + _BELOW_BASE * size, size


def _is_raised(one: tuple[float, float], base: tuple[float, float]) -> bool:
    return 0 < one[1] < _SMALLER * base[1] and _HIGHER * base[1] < one[0] - base[0] < base[1]


def _by_size(text_page: Any, index: int) -> tuple[float, float] | None:  # noqa: ANN401
    """Return the bottom and top of an upright letter, computed from its baseline and font size.

    Returns None if the letter is not upright.
    """
    across, base, matrix = ctypes.c_double(), ctypes.c_double(), _raw.FS_MATRIX()
    found = _raw.FPDFText_GetCharOrigin(text_page, index, across, base)
    if not found or not _raw.FPDFText_GetMatrix(text_page, index, matrix) or matrix.b or matrix.c:
        return None
    size = abs(matrix.d) * _raw.FPDFText_GetFontSize(text_page, index)
    return base.value - _BELOW_BASE * size, base.value + _ABOVE_BASE * size


Sides = tuple[float, float, float, float]


def _raw_images(page: Any) -> Iterator[Sides]:  # noqa: ANN401
    """Yield the left, bottom, right and top of each image on a page, in PDF coordinates.

    Colour gradients are included if they are small enough to be bullets. pypdfium2 is not used for this, because it
    creates a Python object for each path and letter, and ignores the positions of form objects.
    """
    left = _MOST_OBJECTS
    waiting: list[tuple[Any, list[Any]]] = [(page, [])]
    while waiting:
        holder, matrices = waiting.pop()
        count, get, quick_get = (
            (_raw.FPDFFormObj_CountObjects, _raw.FPDFFormObj_GetObject, _form_object)
            if matrices
            else (_raw.FPDFPage_CountObjects, _raw.FPDFPage_GetObject, _page_object)
        )
        number = max(min(count(holder), left), 0)
        left -= number
        kinds = map(_type_of, map(quick_get, repeat(ctypes.cast(holder, ctypes.c_void_p)), range(number)))
        for index, kind in [one for one in enumerate(kinds) if one[1] in _KEPT_TYPES]:
            shown = get(holder, index)
            if kind in _PICTURE_TYPES and (sides := _bounds(shown, matrices)):
                if kind == _raw.FPDF_PAGEOBJ_IMAGE or _is_bullet(sides):
                    yield sides
            elif kind == _raw.FPDF_PAGEOBJ_FORM and len(matrices) < _DEEPEST_OBJECT:
                matrix = _raw.FS_MATRIX()
                if _raw.FPDFPageObj_GetMatrix(shown, matrix):
                    waiting.append((shown, [*matrices, matrix]))


def _is_bullet(sides: Sides) -> bool:
    """Whether a colour gradient is small enough to be a bullet. Larger ones are backgrounds."""
    return max(sides[2] - sides[0], sides[3] - sides[1]) < _LARGEST_BULLET


def _bounds(shown: Any, matrices: list[Any]) -> Sides | None:  # noqa: ANN401
    """Return the left, bottom, right and top of an object on the page. Returns None if PDFium does not know them.

    `matrices` contains the transformation matrices of the form objects around it, outermost first.
    """
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not _raw.FPDFPageObj_GetBounds(shown, left, bottom, right, top):
        return None
    sides: Sides = (left.value, bottom.value, right.value, top.value)
    for matrix in reversed(matrices):
        sides = _moved(sides, matrix)
    return sides


def _moved(sides: Sides, matrix: Any) -> Sides:  # noqa: ANN401
    corners = [(across, up) for across in (sides[0], sides[2]) for up in (sides[1], sides[3])]
    acrosses: list[float] = [matrix.a * across + matrix.c * up + matrix.e for across, up in corners]
    ups: list[float] = [matrix.b * across + matrix.d * up + matrix.f for across, up in corners]
    return min(acrosses), min(ups), max(acrosses), max(ups)


def _is_centre_in(one: Box, box: Box) -> bool:
    across, down = (one.left + one.right) / 2, (one.top + one.bottom) / 2
    return box.left - _SLACK <= across <= box.right + _SLACK and box.top <= down <= box.bottom


# Limits for the image of a page, because a page can declare any size.
MOST_PIXELS = 20_000_000
MOST_SIDE = 8000


def render(document: Document, number: int, scale: float) -> Image:
    """Draw a page at `scale` pixels per point, or fewer if the image would be too large. The background is white.

    Raises `PageError` if the page cannot be drawn.
    """
    with document.page(number) as page:
        return page.drawn(fitting_scale(*page.size, scale))


def _is_white(pixels: bytes, stride: int, width: int, sides: Sequence[int]) -> bool:
    left, top, right, bottom = (max(side, 0) for side in sides)
    rows = (pixels[row * stride + left : row * stride + min(right, width)] for row in range(top, bottom))
    return all(min(row, default=_NEARLY_WHITE) >= _NEARLY_WHITE for row in rows)


def fitting_scale(width: float, height: float, scale: float) -> float:
    """Return the largest scale up to `scale` at which the image of a page of this size stays within the limits."""
    by_side = MOST_SIDE / max(width, height, 1.0)
    by_area = (MOST_PIXELS / max(width * height, 1.0)) ** 0.5
    return min(scale, by_side, by_area)
