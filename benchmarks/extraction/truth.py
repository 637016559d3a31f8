"""What PDFium itself finds in a PDF: text, words with their places, form values and notes. Runs in the sandbox."""

from __future__ import annotations

import ctypes
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pypdfium2 import raw as pypdfium2_raw

from octavo.extract.pdf.document import PageError, open_document
from octavo.sandbox import Limits, Sandbox, SandboxedFunction, Task, sandboxed

_raw: Any = pypdfium2_raw
LIMITS = Limits(cpu_seconds=120, wall_seconds=240)
NOTES = (_raw.FPDF_ANNOT_TEXT, _raw.FPDF_ANNOT_FREETEXT, _raw.FPDF_ANNOT_HIGHLIGHT, _raw.FPDF_ANNOT_UNDERLINE)
BUTTON, CHECKED = (_raw.FPDF_FORMFIELD_CHECKBOX, _raw.FPDF_FORMFIELD_RADIOBUTTON), "checked"


async def ask(sandbox: Sandbox, function: SandboxedFunction[[]], path: Path) -> Any:  # noqa: ANN401
    with tempfile.TemporaryFile() as output:
        await sandbox.run(function.call(), input_file=path, output_file=output, limits=LIMITS)
        return json.loads(output.read())


@sandboxed
def page_texts(task: Task) -> None:
    """The text of each page; None for a page that cannot be opened."""
    texts: list[str | None] = []
    with open_document(Path(task.input_path)) as document:
        for number in range(1, document.page_count + 1):
            try:
                with document.page(number) as page:
                    texts.append(page.text())
            except PageError:
                texts.append(None)
    task.output.write(json.dumps(texts).encode())


@sandboxed
def placed_words(task: Task) -> None:
    """Words of each page with their boxes."""
    pages: list[list[tuple[str, list[float]]]] = []
    with open_document(Path(task.input_path)) as document:
        for number in range(1, document.page_count + 1):
            try:
                with document.page(number) as page:
                    pages.append(list(_words(page.letters())))
            except PageError:
                pages.append([])
    task.output.write(json.dumps(pages).encode())


def _words(letters: Iterator[Any]) -> Iterator[tuple[str, list[float]]]:
    text, box = "", list[float]()
    for one in [*letters, None]:
        if one is None:
            if text:
                yield text, box
            text, box = "", []
            continue
        letter, place = one
        text += letter
        box = [*map(min, box[:2], place[:2]), *map(max, box[2:], place[2:])] if box else list(place)


@sandboxed
def form_values(task: Task) -> None:
    """Values of form fields (`fields`) and texts of notes (`notes`). Check marks are left out: they have no text.

    `names` are the names of all fields, and the authors of all notes.
    """
    found: dict[str, list[str]] = {"fields": [], "notes": [], "names": []}
    handle = _raw.FPDF_LoadDocument(bytes(Path(task.input_path)) + b"\0", None)
    if handle:
        forms = _raw.FPDFDOC_InitFormFillEnvironment(handle, _raw.FPDF_FORMFILLINFO(version=2))
        for number in range(_raw.FPDF_GetPageCount(handle)):
            page = _raw.FPDF_LoadPage(handle, number)
            for index in range(_raw.FPDFPage_GetAnnotCount(page) if page else 0):
                _read_annotation(forms, _raw.FPDFPage_GetAnnot(page, index), found)
    task.output.write(json.dumps(found).encode())


def _read_annotation(forms: Any, annotation: Any, found: dict[str, list[str]]) -> None:  # noqa: ANN401
    kind = _raw.FPDFAnnot_GetSubtype(annotation)
    for key in (b"T\0", b"TU\0", b"Contents\0"):
        found["names"].append(_string(lambda *to, key=key: _raw.FPDFAnnot_GetStringValue(annotation, key, *to)))
    for get in (_raw.FPDFAnnot_GetFormFieldName, _raw.FPDFAnnot_GetFormFieldAlternateName):
        found["names"].append(_string(lambda *to, get=get: get(forms, annotation, *to)))
    if kind == _raw.FPDF_ANNOT_WIDGET and _raw.FPDFAnnot_GetFormFieldType(forms, annotation) not in BUTTON:
        found["fields"].append(_string(lambda *to: _raw.FPDFAnnot_GetFormFieldValue(forms, annotation, *to)))
    elif kind in NOTES:
        found["notes"].append(_string(lambda *to: _raw.FPDFAnnot_GetStringValue(annotation, b"Contents\0", *to)))


def _string(get: Any) -> str:  # noqa: ANN401
    size = get(None, 0)
    buffer = ctypes.create_string_buffer(max(size, 2))
    get(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw.decode("utf-16-le", errors="replace").rstrip("\0")
