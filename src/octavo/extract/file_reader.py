"""Reads the text of files of any type. Files are always parsed in the sandbox.

A short text, such as a note, is read, split into chunks and searched for facts in a single child process. Starting a
child process takes longer than reading a note, so three processes would be wasteful.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.core.errors import Defect, Empty
from octavo.core.texts import ANY_LANGUAGE
from octavo.extract.chunks.chunking import cut, read_chunks
from octavo.extract.detect import HEAD_BYTES, Hints, detect
from octavo.extract.document_facts import find_in_text, read_facts
from octavo.extract.extracted import Extracted, SourceType, add_captions, from_json, to_json
from octavo.extract.ocr.recognition import PRELOAD as OCR_PRELOAD
from octavo.extract.ocr.recognition import SECONDS, Recognition
from octavo.extract.paged_file import PRELOAD as PICTURE_PRELOAD
from octavo.extract.paged_file import OnProgress, PictureInSandbox
from octavo.extract.pdf.pdf_file import PRELOAD as PDF_PRELOAD
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.sandbox import Limits, Task, sandboxed

if TYPE_CHECKING:
    from octavo.extract.chunks.chunking import Chunk
    from octavo.facts.finding import Fact
    from octavo.sandbox import Sandbox


# Imported by the preloaded parent of a sandbox, so that its children do not import these for every file.
PRELOAD = ("octavo.extract.file_reader", "octavo.extract.formats")
_HTML_LIBRARIES = ("trafilatura", "html_to_markdown")
# Imported in addition for files of these types. Text files need none of them.
PRELOAD_BY_TYPE: dict[SourceType, tuple[str, ...]] = {
    SourceType.PDF: PDF_PRELOAD,
    SourceType.IMAGE: PICTURE_PRELOAD,
    SourceType.HTML: _HTML_LIBRARIES,
    SourceType.EML: _HTML_LIBRARIES,
    SourceType.EPUB: ("html_to_markdown",),
    SourceType.XLSX: ("python_calamine",),
}


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads files of any type.

    If `recognition` is set, OCR runs in its sandbox. Otherwise, OCR runs in `sandbox`.
    """

    sandbox: Sandbox
    recognition: Recognition | None = None

    async def read(
        self,
        path: Path,
        *,
        filename: str | None = None,
        password: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Extracted:
        """Read the text of the file at `path`. `filename` is its original name, if it differs from the path.

        Raises the errors of `Sandbox.run`, including errors from `octavo.core.errors` if the file cannot be read.
        """
        sandbox, limits = self.sandbox, self.sandbox.limits
        label = path.name if filename is None else filename
        match await asyncio.to_thread(_type_of, path, label):
            case SourceType.PDF:
                return await PdfInSandbox(sandbox, path, password, limits, self.recognition).extract(on_progress)
            case SourceType.IMAGE:
                return await PictureInSandbox(sandbox, path, None, limits, self.recognition).extract(on_progress)
            case _:
                return await extract_in_sandbox(sandbox, path, label, password=password, on_progress=on_progress)


@asynccontextmanager
async def open_reader(
    limits: Limits | None = None,
    language: str = ANY_LANGUAGE,
    page_seconds: int = SECONDS,
    files: Sequence[tuple[Path, str]] = (),
    more: Sequence[str] = (),
) -> AsyncGenerator[FileReader]:
    """Open a reader for interactive use. `language` and `page_seconds` are for OCR, which runs in a separate sandbox.

    Each sandbox starts when the first file needs it. `files` lists the paths and names of the files to read, if they
    are known, so that the sandbox imports only the libraries for these files. `more` names additional modules that the
    caller needs in the sandbox.
    """
    from octavo.sandbox import Sandbox

    needed = await asyncio.to_thread(preload_for, files) if files else ()
    later = () if files else [module for modules in PRELOAD_BY_TYPE.values() for module in modules]
    preload = (*PRELOAD, *needed, *more)
    async with (
        aclosing(Sandbox(preload=preload, later=later, limits=limits, niceness=0)) as sandbox,
        aclosing(Sandbox(preload=OCR_PRELOAD, limits=limits, niceness=0)) as recognising,
    ):
        yield FileReader(sandbox, Recognition(recognising, language, page_seconds, parallel=os.cpu_count() or 1))


def preload_for(files: Iterable[tuple[Path, str]]) -> tuple[str, ...]:
    """Return the names of the modules that the sandbox must import to read these files.

    Files that cannot be opened are skipped. Their error is reported later, when they are read.
    """
    types: set[SourceType] = set()
    for path, name in files:
        with suppress(OSError):
            types.add(_type_of(path, name))
    return tuple(dict.fromkeys(module for one in sorted(types) for module in PRELOAD_BY_TYPE.get(one, ())))


def _type_of(path: Path, label: str) -> SourceType:
    with path.open("rb") as file:
        return detect(file.read(HEAD_BYTES), label)


async def extract_in_sandbox(
    sandbox: Sandbox,
    path: Path,
    filename: str,
    content_type: str = "",
    *,
    source_type: SourceType | None = None,
    url: str = "",
    password: str | None = None,
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
) -> Extracted:
    """Read the file at `path` in one child process.

    Raises the errors of `Sandbox.run`, including `Empty` and `NotSupported`. `source_type` is needed for content whose
    type cannot be detected, `url` is the URL of a web page, and `password` opens a password-protected file.
    """
    call = extract_file.call(
        filename=filename,
        content_type=content_type,
        source_type=source_type,
        url=url,
        password=password or "",
    )
    with tempfile.TemporaryFile() as output:
        await sandbox.run(call, input_file=path, output_file=output, limits=limits, on_progress=on_progress)
        return await asyncio.to_thread(lambda: from_json(output.read()))


@sandboxed
def extract_file(
    task: Task, *, filename: str, content_type: str, source_type: str | None, url: str, password: str
) -> None:
    """Read a file and write the extracted document to the output file, as it may be too large for a return value."""
    task.output.write(to_json(read_document(task, filename, content_type, source_type, url, password)))


def read_document(
    task: Task, filename: str, content_type: str, source_type: str | None, url: str, password: str = ""
) -> Extracted:
    """Read the input file of a task. Runs in the sandbox."""
    from octavo.extract.formats import known_processors

    head = task.input.read(HEAD_BYTES)
    if not head:
        raise Empty("The file is 0 bytes long.")
    known = SourceType(source_type) if source_type else detect(head, filename, content_type)
    hints = Hints(known, filename, content_type, url, password)
    return add_captions(known_processors()[known].extract(Path(task.input_path), hints))


# Imported by the preloaded parent of a sandbox, so that its children do not import it for every document.
SHORT_TEXT_PRELOAD = ("octavo.extract.file_reader",)
TYPES = frozenset({SourceType.TEXT, SourceType.MARKDOWN, SourceType.PASTE})
MOST_BYTES = 64 << 10
_PARTS = 3


@dataclass(frozen=True, slots=True)
class ShortText:
    """A text with its chunks and facts.

    The language is not detected in the sandbox, so the facts include it only after `add_language`.
    """

    extracted: Extracted
    chunks: list[Chunk]
    facts: list[Fact]


async def read_in_sandbox(
    sandbox: Sandbox,
    content: bytes,
    filename: str,
    content_type: str = "",
    *,
    source_type: SourceType | None = None,
    url: str = "",
) -> ShortText:
    """Read a short text in one child process. Raises the same errors as `extract_in_sandbox`."""
    call = read_short_text.call(filename=filename, content_type=content_type, source_type=source_type, url=url)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        given.write(content)
        given.flush()
        await sandbox.run(call, input_file=given, output_file=made)
        parts = made.read().split(b"\n")
    if len(parts) != _PARTS:
        raise Defect("The sandbox returned an invalid text.")
    document, chunks, facts = parts
    extracted = from_json(document)
    return ShortText(extracted, read_chunks(chunks, extracted.markdown), read_facts(facts))


@sandboxed
def read_short_text(task: Task, *, filename: str, content_type: str, source_type: str | None, url: str) -> None:
    """Read a text. Writes three lines of JSON: the text, its chunks and its facts."""
    extracted = read_document(task, filename, content_type, source_type, url)
    document = to_json(extracted)
    task.output.write(b"\n".join((document, cut(document), find_in_text(extracted, filename))))
