"""Calls Tesseract through the C interface of the library that comes with tesserocr.

tesserocr itself loads models only from files, which sandbox processes cannot write. The C interface loads them from
memory, so the models stay compressed in the package, and a child process unpacks only the models that it needs.
"""

from __future__ import annotations

import ctypes
import lzma
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from PIL import ImageOps

from octavo.core.texts import HAN_SCRIPTS
from octavo.extract.extracted import Box
from octavo.extract.ocr.order import Line, around

if TYPE_CHECKING:
    from PIL.Image import Image

DATA = Path(__file__).with_name("data")
ORIENTATION = "osd"
# Tesseract needs a resolution only to distinguish letters from specks. This one fits letters of normal size.
_DOTS_PER_INCH = 200
# The engine for scripts and orientation compares the shapes of letters. The engine for text is a neural network.
_SHAPES, _NETWORK = 0, 1
_FIND_ORIENTATION, _WHOLE_PAGE, _ONE_LINE, _SPARSE = 0, 3, 7, 11
_LINE, _WORD = 2, 3
# Words that are this many line heights apart belong to different columns, or to different cells of a table.
WIDE_GAP = 1.7
_QUARTER = 90
# Letters at the edge of a picture are missed, so a picture with a shorter side than this gets a white margin of
# this many pixels.
_SMALL_PICTURE, _MARGIN = 700, 20
# With fewer letters, Latin is often mistaken for Cyrillic.
_FEWEST_LETTERS = b"32"
# Tesseract puts a space after every character of these scripts, unless it must preserve spaces.
_WIDE = frozenset({*HAN_SCRIPTS, "Hangul", "Khmer", "Lao", "Myanmar", "Thai"})
# Used in Arabic and Persian to keep letters apart. In other scripts, the models insert it without reason.
_NON_JOINER = "\u200c"


class Orientation(NamedTuple):
    """The orientation and script of a picture.

    `quarters` is the number of quarter turns to the left that make the picture upright. `script` is the orientation
    model's name for the script.
    """

    quarters: int
    script: str
    certainty: float


@dataclass(frozen=True, slots=True)
class Reader:
    """A loaded OCR model. Recognises text in pictures."""

    script: str
    handle: int

    def read(self, picture: Image) -> list[Line]:
        """Recognise the lines of an upright grey picture, in the order of Tesseract's page analysis."""
        return list(self._lines(picture, _WHOLE_PAGE))

    def read_line(self, picture: Image) -> list[Line]:
        """Recognise the text in a picture of a single line."""
        return list(self._lines(picture, _ONE_LINE))

    def read_sparse(self, picture: Image) -> list[Line]:
        """Recognise single words anywhere in a picture, such as the labels in a diagram.

        The result can contain shapes that Tesseract mistook for letters.
        """
        return list(self._lines(picture, _SPARSE))

    def close(self) -> None:
        """Free the model's memory, which can be up to 90 MB."""
        _library().TessBaseAPIDelete(self.handle)

    def _lines(self, picture: Image, mode: int) -> Iterator[Line]:
        if max(picture.size) >= _SMALL_PICTURE:
            return self._lines_inside(picture, mode)
        wider = ImageOps.expand(picture, _MARGIN, fill=255)
        found = self._lines_inside(wider, mode)
        return (replace(line, box=Box(*(side - _MARGIN for side in line.box))) for line in found)

    def _lines_inside(self, picture: Image, mode: int) -> Iterator[Line]:
        library = _library()
        self._show(picture, mode)
        if library.TessBaseAPIRecognize(self.handle, None):
            return
        place = library.TessBaseAPIGetIterator(self.handle)
        words: list[Line] = []
        while place:
            words.append(self._part(place, _WORD))
            if library.TessPageIteratorIsAtFinalElement(_page(place), _LINE, _WORD):
                yield from self._split(self._part(place, _LINE), words)
                words = []
            if not library.TessResultIteratorNext(place, _WORD):
                library.TessResultIteratorDelete(place)
                return

    def _part(self, place: int, level: int) -> Line:
        library = _library()
        text = self._clean(_text(library.TessResultIteratorGetUTF8Text(place, level)))
        return Line(text, _box(place, level), library.TessResultIteratorConfidence(place, level) / 100, margin=0.0)

    def _split(self, line: Line, words: Sequence[Line]) -> Iterator[Line]:
        """Split a line at wide gaps, because Tesseract sometimes joins the lines of neighbouring columns."""
        gap = WIDE_GAP * line.height
        parts = [[words[0]]]
        for before, word in pairwise(words):
            apart = max(word.box.left - before.box.right, before.box.left - word.box.right)
            if apart > gap:
                parts.append([])
            parts[-1].append(word)
        # Tesseract's confidence in a whole line is that of its worst part.
        lines = [replace(line, score=_score(words))] if len(parts) == 1 else [self._join(part) for part in parts]
        return (one for one in lines if one.text)

    def _join(self, words: list[Line]) -> Line:
        text = ("" if self.script in HAN_SCRIPTS else " ").join(word.text for word in words)
        return Line(text, around(words), _score(words), margin=0.0)

    def _show(self, picture: Image, mode: int) -> None:
        library = _library()
        library.TessBaseAPISetPageSegMode(self.handle, mode)
        library.TessBaseAPISetImage(self.handle, picture.tobytes(), picture.width, picture.height, 1, picture.width)
        library.TessBaseAPISetSourceResolution(self.handle, _DOTS_PER_INCH)

    def _clean(self, text: str) -> str:
        return " ".join((text if self.script == "Arabic" else text.replace(_NON_JOINER, "")).split())

    def find_orientation(self, picture: Image) -> Orientation | None:
        """Find the orientation and the script of a grey picture. Returns None if the picture has too few letters."""
        turn, sure, name, certainty = ctypes.c_int(), ctypes.c_float(), ctypes.c_char_p(), ctypes.c_float()
        self._show(picture, _FIND_ORIENTATION)
        known = _library().TessBaseAPIDetectOrientationScript(
            self.handle, ctypes.byref(turn), ctypes.byref(sure), ctypes.byref(name), ctypes.byref(certainty)
        )
        if not known:
            return None
        script = (name.value or b"").decode(errors="replace")
        return Orientation(turn.value // _QUARTER % 4, script, min(sure.value, certainty.value))


@cache
def load_reader(script: str) -> Reader:
    """Load a model, or return the loaded model if this process has already loaded it.

    The parent process of the sandbox loads the common models, so that its child processes inherit them.
    """
    return open_reader(script)


def open_reader(script: str) -> Reader:
    """Load the model for a script, or the orientation model. Takes up to a fifth of a second."""
    library = _library()
    model = lzma.decompress((DATA / f"{script}.traineddata.xz").read_bytes())
    handle = library.TessBaseAPICreate()
    engine = _SHAPES if script == ORIENTATION else _NETWORK
    if library.TessBaseAPIInit5(handle, model, len(model), script.encode(), engine, None, 0, None, None, 0, 0):
        raise RuntimeError(f"the model of {script} cannot be loaded")
    for name, value in (
        (b"preserve_interword_spaces", b"1" if script in _WIDE else b"0"),
        (b"min_characters_to_try", _FEWEST_LETTERS),
        (b"textord_tabfind_vertical_text", b"0"),  # vertical text is found where there is none, especially in Korean
    ):
        library.TessBaseAPISetVariable(handle, name, value)
    return Reader(script, handle)


def _score(words: Sequence[Line]) -> float:
    """Return the mean confidence of words, weighted by their letter counts."""
    return sum(word.score * len(word.text) for word in words) / max(1, sum(len(word.text) for word in words))


def _text(pointer: int | None) -> str:
    if not pointer:
        return ""
    text = ctypes.string_at(pointer).decode(errors="replace")
    _library().TessDeleteText(pointer)
    return text


def _page(place: int) -> int:
    return _library().TessResultIteratorGetPageIterator(place)


def _box(place: int, level: int) -> Box:
    sides = [ctypes.c_int() for _ in range(4)]
    _library().TessPageIteratorBoundingBox(_page(place), level, *map(ctypes.byref, sides))
    return Box(*(float(side.value) for side in sides))


_POINTER, _INT, _FLOAT, _BYTES = ctypes.c_void_p, ctypes.c_int, ctypes.c_float, ctypes.c_char_p
_INTS = ctypes.POINTER(_INT)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "TessBaseAPICreate": (_POINTER,),
    "TessBaseAPIDelete": (None, _POINTER),
    "TessBaseAPIInit5": (
        (_INT, _POINTER, _BYTES, _INT, _BYTES, _INT, _POINTER, _INT, _POINTER, _POINTER, ctypes.c_size_t, _INT)
    ),
    "TessBaseAPISetVariable": (_INT, _POINTER, _BYTES, _BYTES),
    "TessBaseAPISetPageSegMode": (None, _POINTER, _INT),
    "TessBaseAPISetImage": (None, _POINTER, _BYTES, _INT, _INT, _INT, _INT),
    "TessBaseAPISetSourceResolution": (None, _POINTER, _INT),
    "TessBaseAPIRecognize": (_INT, _POINTER, _POINTER),
    "TessBaseAPIDetectOrientationScript": (
        (_INT, _POINTER, _INTS, ctypes.POINTER(_FLOAT), ctypes.POINTER(_BYTES), ctypes.POINTER(_FLOAT))
    ),
    "TessBaseAPIGetIterator": (_POINTER, _POINTER),
    "TessResultIteratorDelete": (None, _POINTER),
    "TessResultIteratorGetPageIterator": (_POINTER, _POINTER),
    "TessResultIteratorGetUTF8Text": (_POINTER, _POINTER, _INT),
    "TessResultIteratorConfidence": (_FLOAT, _POINTER, _INT),
    "TessResultIteratorNext": (_INT, _POINTER, _INT),
    "TessPageIteratorIsAtFinalElement": (_INT, _POINTER, _INT, _INT),
    "TessPageIteratorBoundingBox": (_INT, _POINTER, _INT, _INTS, _INTS, _INTS, _INTS),
    "TessDeleteText": (None, _POINTER),
}


@cache
def _library() -> Any:  # noqa: ANN401 - the functions of a C library
    (path,) = (file.locate() for file in files("tesserocr") or () if file.name.startswith("libtesseract"))
    library = ctypes.CDLL(str(path))
    for name, (result, *arguments) in _SIGNATURES.items():
        function: Callable[..., Any] = getattr(library, name)
        function.restype, function.argtypes = result, arguments  # type: ignore[attr-defined]
    return library
