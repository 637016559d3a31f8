"""Reads the annotations of a PDF page, which PDF files store separately from the text of the page.

Check boxes become characters at their position on the page. Form values are added to the line of their label. Text that
was typed onto the page becomes a paragraph. Comments and highlights become quotes after the paragraph that they refer
to.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from math import isfinite
from typing import Any

from pypdfium2 import raw as pypdfium2_raw

from octavo.extract.extracted import BlockKind, Box, Region, RegionKind
from octavo.extract.pdf import markup
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.letters import clean_letters, one_line
from octavo.extract.pdf.page_batches import PageBlock

_raw: Any = pypdfium2_raw

_MOST_ANNOTATIONS = 1000
_MOST_OPTIONS = 500
_MOST_BYTES = 1 << 18
_MOST_QUADS = 200
_NUL_BYTES = 2
_HIDDEN = 0x02 | 0x20  # the flags Hidden and NoView
_PASSWORD = 1 << 13
_TICKED, _EMPTY = "☑", "☐"
_SIZE, _LARGEST = 0.7, 11.0  # letter height: a share of the field's height, and points
_BESIDE = 0.5
_MOST_TO_LABEL = 2.0  # heights of a check box
_OVERLAP = 2.0  # points
_TOUCHING = 0.15  # as a share of the height of a highlighted area
_TAGS = re.compile(r"<[^>]{0,2000}>")

_MARKS = {
    "FPDF_ANNOT_HIGHLIGHT": "highlight",
    "FPDF_ANNOT_UNDERLINE": "highlight",
    "FPDF_ANNOT_SQUIGGLY": "highlight",
    "FPDF_ANNOT_STRIKEOUT": "strikeout",
    "FPDF_ANNOT_FREETEXT": "free_text",
    **dict.fromkeys(
        (f"FPDF_ANNOT_{name}" for name in ("TEXT", "STAMP", "INK", "SQUARE", "CIRCLE", "LINE", "POLYGON", "POLYLINE")),
        "note",
    ),
    "FPDF_ANNOT_CARET": "note",
}
_KINDS: dict[int, str] = {getattr(_raw, name): kind for name, kind in _MARKS.items()}
_TEXT_FIELDS = frozenset({_raw.FPDF_FORMFIELD_TEXTFIELD})
_CHOICES = frozenset({_raw.FPDF_FORMFIELD_COMBOBOX, _raw.FPDF_FORMFIELD_LISTBOX})
_TICKS = frozenset({_raw.FPDF_FORMFIELD_CHECKBOX, _raw.FPDF_FORMFIELD_RADIOBUTTON})


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation of a page.

    `kind` is `field` (a value in a form), `tick` (a check box or radio button), `free_text`, `note`, `highlight` or
    `strikeout`. `value` is the value of a field or the text of a comment. `text` is the text of the page that is
    highlighted or struck out.
    """

    kind: str
    box: Box
    name: str = ""
    value: str = ""
    author: str = ""
    text: str = ""

    @property
    def is_in_place(self) -> bool:
        """Whether the annotation shows text at its position on the page, like a filled-in form field but unlike a
        comment.
        """
        return self.kind in {"field", "tick", "free_text"}


Place = Callable[[float, float, float, float], Box]


def read_annotations(page: Any, form: Any, place: Place) -> list[Annotation]:  # noqa: ANN401
    """Read the annotations of a PDFium page. `form` is the handle of the document's form, if it has one."""
    count = min(_raw.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)
    if count <= 0:
        return []
    opened: list[Any] = []

    def text_page() -> Any:  # noqa: ANN401
        # Loaded only for a highlight: loading takes as long as reading the page, and most annotations are links.
        if not opened:
            opened.append(_raw.FPDFText_LoadPage(page))
        return opened[0]

    try:
        read = (_read_one(page, index, form, text_page, place) for index in range(count))
        return [one for one in read if one]
    finally:
        for one in opened:
            _raw.FPDFText_ClosePage(one)


def _read_one(page: Any, index: int, form: Any, text_page: Callable[[], Any], place: Place) -> Annotation | None:  # noqa: ANN401
    handle = _raw.FPDFPage_GetAnnot(page, index)
    if not handle:
        return None
    try:
        return _annotation(form, handle, text_page, place)
    finally:
        _raw.FPDFPage_CloseAnnot(handle)


def _annotation(form: Any, handle: Any, text_page: Callable[[], Any], place: Place) -> Annotation | None:  # noqa: ANN401
    kind, sides = _raw.FPDFAnnot_GetSubtype(handle), _raw.FS_RECTF()
    known = kind == _raw.FPDF_ANNOT_WIDGET or kind in _KINDS
    if not known or _raw.FPDFAnnot_GetFlags(handle) & _HIDDEN or not _raw.FPDFAnnot_GetRect(handle, sides):
        return None
    box = place(*_ordered(sides.left, sides.bottom, sides.right, sides.top))
    if not isfinite(sum(box)):
        return None
    if kind == _raw.FPDF_ANNOT_WIDGET:
        return _field(form, handle, box)
    value = _text(handle, "Contents") or _cleaned(unescape(_TAGS.sub(" ", _text(handle, "RC"))))
    marked = _marked_text(text_page(), handle) if _KINDS[kind] in {"highlight", "strikeout"} else ""
    found = Annotation(_KINDS[kind], box, value=value, author=_text(handle, "T"), text=marked)
    return found if value or marked else None


def _ordered(left: float, bottom: float, right: float, top: float) -> tuple[float, float, float, float]:
    return min(left, right), min(bottom, top), max(left, right), max(bottom, top)


# Fields -------------------------------------------------------------------------------------------------------------


def _field(form: Any, handle: Any, box: Box) -> Annotation | None:  # noqa: ANN401
    if not form:
        value = _text(handle, "V")
        return Annotation("field", box, _text(handle, "TU") or _text(handle, "T"), value) if value else None
    kind = _raw.FPDFAnnot_GetFormFieldType(form, handle)
    names = (_form_text(reader, form, handle) for reader in ("GetFormFieldAlternateName", "GetFormFieldName"))
    name = next(filter(None, names), "")
    if kind in _TICKS:
        return Annotation("tick", box, name, _TICKED if _is_ticked(form, handle) else _EMPTY)
    if kind in _CHOICES:
        value = _selected(form, handle) or _form_text("GetFormFieldValue", form, handle)
    elif kind in _TEXT_FIELDS and not _raw.FPDFAnnot_GetFormFieldFlags(form, handle) & _PASSWORD:
        value = _form_text("GetFormFieldValue", form, handle)
    else:
        return None
    return Annotation("field", box, name, value) if value else None


def _is_ticked(form: Any, handle: Any) -> bool:  # noqa: ANN401
    # PDFium does not know the state of a check box whose appearance is damaged. `AS` is the name of the visible state.
    return bool(_raw.FPDFAnnot_IsChecked(form, handle)) or _text(handle, "AS") not in {"", "Off"}


def _selected(form: Any, handle: Any) -> str:  # noqa: ANN401
    """Return the labels of the selected options of a list field, separated by commas."""
    count = min(_raw.FPDFAnnot_GetOptionCount(form, handle), _MOST_OPTIONS)
    chosen = [index for index in range(count) if _raw.FPDFAnnot_IsOptionSelected(form, handle, index)]
    labels = [_read(partial(_raw.FPDFAnnot_GetOptionLabel, form, handle, index)) for index in chosen]
    return ", ".join(filter(None, labels))


def _form_text(reader: str, form: Any, handle: Any) -> str:  # noqa: ANN401
    return _read(partial(getattr(_raw, f"FPDFAnnot_{reader}"), form, handle))


def _text(handle: Any, key: str) -> str:  # noqa: ANN401
    return _read(partial(_raw.FPDFAnnot_GetStringValue, handle, key.encode()))


def _read(read: Callable[..., int]) -> str:
    """Read a UTF-16 text of unknown size with a PDFium function. Returns an empty string if the text is too long."""
    size = read(None, 0)
    if not _NUL_BYTES < size <= _MOST_BYTES:
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return _cleaned(buffer.raw.decode("utf-16-le", errors="replace"))


def _cleaned(text: str) -> str:
    lines = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(filter(None, (one_line(clean_letters(line)) for line in lines)))


def _marked_text(text_page: Any, handle: Any) -> str:  # noqa: ANN401
    """Return the text of the page that a highlight covers."""
    count = min(_raw.FPDFAnnot_CountAttachmentPoints(handle), _MOST_QUADS) if text_page else 0
    quads = [(index, _raw.FS_QUADPOINTSF()) for index in range(count)]
    read = [quad for index, quad in quads if _raw.FPDFAnnot_GetAttachmentPoints(handle, index, quad)]
    text, before = "", None
    for quad in read:
        text += ("" if before and _continues(before, quad) else " ") + (_text_in(text_page, quad) or " ")
        before = quad
    return one_line(text)


def _continues(before: Any, quad: Any) -> bool:  # noqa: ANN401
    """Whether two highlighted areas touch on the same line.

    Their texts are then joined without a space, because some programs highlight every letter separately.
    """
    (_, _, end, high), (start, low, _, top) = _bounds(before), _bounds(quad)
    return max(abs(start - end), abs(top - high)) < _TOUCHING * (top - low)


def _bounds(quad: Any) -> tuple[float, float, float, float]:  # noqa: ANN401
    """Return the left, bottom, right and top of a highlighted area. Its corners can be stored in any order."""
    across, ups = (quad.x1, quad.x2, quad.x3, quad.x4), (quad.y1, quad.y2, quad.y3, quad.y4)
    return min(across), min(ups), max(across), max(ups)


def _text_in(text_page: Any, quad: Any) -> str:  # noqa: ANN401
    left, bottom, right, top = _bounds(quad)
    # Lines above and below overlap the edges of a highlight.
    inset = 0.2 * (top - bottom)
    sides = left, top - inset, right, bottom + inset
    count = _raw.FPDFText_GetBoundedText(text_page, *sides, None, 0)
    if not 0 < count <= _MOST_BYTES:
        return ""
    buffer = (ctypes.c_ushort * (count + 1))()
    _raw.FPDFText_GetBoundedText(text_page, *sides, buffer, count)
    return _cleaned(bytes(buffer).decode("utf-16-le", errors="replace"))


# On the page --------------------------------------------------------------------------------------------------------


def with_ticks(page: PageContent, annotations: Sequence[Annotation]) -> PageContent:
    """Add check boxes and radio buttons to the text of a page, if they have a label to their right.

    Check boxes and radio buttons that the text already contains are skipped.
    """
    ticks = [one for one in annotations if one.kind == "tick" and not _is_shown(one, page.runs)]
    shown = [_tick_run(one) for one in ticks if any(_is_label(run.box, one.box) for run in page.runs)]
    return replace(page, runs=(*page.runs, *shown)) if shown else page


def _is_label(label: Box, box: Box) -> bool:
    """Whether the text in `label` is directly to the right of the check box in `box`."""
    return _is_level(label, box) and -_OVERLAP < label.left - box.right < _MOST_TO_LABEL * (box.bottom - box.top)


def _is_shown(one: Annotation, runs: Sequence[TextRun]) -> bool:
    """Whether the text of the page already contains the value of this annotation at the same position."""
    inside = "".join("".join(run.text.split()) for run in runs if _is_over(run.box, one.box))
    return bool(inside) and "".join(one.value.split()) in inside


def _tick_run(one: Annotation) -> TextRun:
    size = min(_SIZE * (one.box.bottom - one.box.top), _LARGEST)
    top = (one.box.top + one.box.bottom - size) / 2
    box = Box(one.box.left, top, one.box.right, top + size)
    words = (Word(*box, one.value),)
    return TextRun(box, one.value, size, "", bold=False, italic=False, rotation=0.0, tag=None, words=words)


# Beside the blocks --------------------------------------------------------------------------------------------------


def merge_annotations(blocks: Sequence[PageBlock], annotations: Sequence[Annotation]) -> tuple[PageBlock, ...]:
    """Add form values, typed text and comments to the blocks of a page.

    Values that a block already contains are skipped.
    """
    merged = list(blocks)
    for one in sorted((one for one in annotations if one.is_in_place), key=lambda one: (one.box.top, one.box.left)):
        if not _is_read(one, merged):
            _add_value(merged, one)
    for one in (one for one in annotations if not one.is_in_place):
        merged.insert(_place_after(merged, one.box), _note(one))
    return tuple(merged)


def _is_read(one: Annotation, blocks: Sequence[PageBlock]) -> bool:
    value = "".join(markup.plain(" ".join(one.value.split())).split())
    near = (block for block in blocks if block.box and _is_over(block.box, one.box))
    return any(value in "".join(block.text.split()) for block in near)


def _add_value(blocks: list[PageBlock], one: Annotation) -> None:
    value = markup.plain(" ".join(one.value.split()))
    at = _label(blocks, one)
    if at is not None:
        label = blocks[at]
        text = f"{value} {label.text}" if one.kind == "tick" else f"{label.text} {value}"
        blocks[at] = replace(label, text=text, box=_around(label.box, one.box))
        return
    name = markup.plain(one.name.rpartition(".")[2])
    text = f"{value} {name}".strip() if one.kind == "tick" else f"{name}: {value}" if name else value
    blocks.insert(_place_after(blocks, one.box), PageBlock(BlockKind.PARAGRAPH, text, one.box))


def _label(blocks: Sequence[PageBlock], one: Annotation) -> int | None:
    """Return the index of the one-line block that labels a form field. Returns None if there is no label.

    The label of a text field is to its left, and the label of a check box is to its right.
    """
    beside = [
        (gap, index)
        for index, block in enumerate(blocks)
        if block.box and block.lines == 1 and block.kind in {BlockKind.PARAGRAPH, BlockKind.HEADING}
        if _is_level(block.box, one.box)
        if (gap := _gap(block.box, one)) is not None
    ]
    return min(beside)[1] if beside and one.kind != "free_text" else None


def _gap(label: Box, one: Annotation) -> float | None:
    gap = label.left - one.box.right if one.kind == "tick" else one.box.left - label.right
    return gap if gap > -_LARGEST else None


def _is_level(one: Box, other: Box) -> bool:
    shared = min(one.bottom, other.bottom) - max(one.top, other.top)
    return shared >= _BESIDE * min(one.bottom - one.top, other.bottom - other.top)


def _is_over(one: Box, other: Box) -> bool:
    beside = min(one.right, other.right) > max(one.left, other.left)
    return beside and min(one.bottom, other.bottom) > max(one.top, other.top)


def _around(one: Box | None, other: Box) -> Box:
    if one is None:
        return other
    return Box(*map(min, one[:2], other[:2]), *map(max, one[2:], other[2:]))


def _place_after(blocks: Sequence[PageBlock], box: Box) -> int:
    """Return the index at which to insert a new block, such as a comment, into the blocks of a page.

    The new block is inserted after the last block that overlaps its box. If no block overlaps the box, the new block is
    inserted after the last block that begins above the box.
    """
    over = [index for index, block in enumerate(blocks) if block.box and _is_over(block.box, box)]
    above = [index for index, block in enumerate(blocks) if block.box and block.box.top <= box.top]
    after = max(over or above or ([-1] if any(block.box for block in blocks) else [len(blocks) - 1]))
    while 0 <= after < len(blocks) - 1 and blocks[after + 1].kind is BlockKind.QUOTE and blocks[after + 1].box:
        after += 1
    return after + 1


def _note(one: Annotation) -> PageBlock:
    """Make a quote from a comment, its author and the text that it refers to."""
    word = {"highlight": "Highlighted", "strikeout": "Struck out"}.get(one.kind, "Note")
    by = f" ({markup.plain(one.author)})" if one.author else ""
    lines = [f"**{word}**{by}: {markup.plain(one.text)}".rstrip() if one.text else f"**{word}**{by}:"]
    said = [markup.plain(line) for line in one.value.split("\n") if line and one.value != one.text]
    if said and not one.text:
        lines = [f"{lines[0]} {said[0]}", *said[1:]]
    else:
        lines += said
    return PageBlock(BlockKind.QUOTE, "\n".join(f"> {line}  " for line in lines).rstrip(), one.box)


def field_regions(page: int, annotations: Sequence[Annotation], first_order: int = 0) -> tuple[Region, ...]:
    """Make a region for each form field of a page. Its text is the name and the value of the field."""
    return tuple(
        Region(page, RegionKind.FIELD, one.box, first_order + index, 1.0, f"{one.name}: {one.value}".lstrip(": "))
        for index, one in enumerate(one for one in annotations if one.kind in {"field", "tick"})
    )
