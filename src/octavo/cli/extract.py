"""`octavo extract` prints the text of files, and `octavo get` downloads the text, file or data of a document.

`octavo extract` converts any file to Markdown, JSON or HTML, without a database, a server or a data folder.

The HTML shows the pages of a file and their text side by side, so that people can judge the quality of the extraction.
It is one file without scripts. All text of the document is escaped, and page images are rendered in the sandbox.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple

import typer

from octavo.cli.local_files import LocalFile, find_files, keep_stdin
from octavo.cli.options import PROMPT_FOR_IT, AsJson, Key, Password, Server, find_ids, read_password
from octavo.cli.output import clean
from octavo.cli.progress import open_reading_bar
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput, OctavoError, StorageFailed
from octavo.core.settings import Settings, load_settings
from octavo.extract.extracted import PAGED, Box, Extracted, Page

if TYPE_CHECKING:
    from octavo.client import Client, Document
    from octavo.extract.extracted import Extracted


if TYPE_CHECKING:
    from octavo.sandbox import Sandbox


# Beyond this, the file would be too large for a browser.
MOST_PICTURES = 200
_PICTURE_SIDE = 1200
_STYLE = """
body { margin: 1rem; font: 15px/1.45 system-ui, sans-serif; color: #222; background: #f4f4f2 }
h1 { font-size: 1.3rem } h2 { font-size: 1rem; margin: 1.5rem 0 .4rem }
.page { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; align-items: start }
.sheet { position: relative; background: #fff; outline: 1px solid #bbb }
.sheet img { display: block; width: 100% }
.box { position: absolute; outline: 1px solid #2563eb }
.box span { position: absolute; right: 100%; top: 0; padding: 0 .2em; font-size: 10px; line-height: 1.2;
  white-space: nowrap; opacity: .8; color: #fff; background: #2563eb }
.table, .table span { outline-color: #15803d } .table span { background: #15803d }
.heading, .heading span { outline-color: #b91c1c } .heading span { background: #b91c1c }
.figure, .formula { outline-color: #a16207 } .figure span, .formula span { background: #a16207 }
.header, .footer, .footnote { outline-color: #6b7280 }
.header span, .footer span, .footnote span { background: #6b7280 }
pre { margin: 0; padding: .8rem; background: #fff; outline: 1px solid #bbb; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace }
.unsure { color: #92400e }
"""
HEAD = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Pages and their text</title>\n'
    f"<style>{_STYLE}</style></head><body>\n"
)


class Mark(NamedTuple):
    """A box to draw on a page, with its number in the reading order, its kind and its text."""

    order: int
    kind: str
    box: Box
    text: str


async def write_file(sandbox: Sandbox, path: Path, shown: str, extracted: Extracted) -> AsyncGenerator[str]:
    """Yield the HTML of one file, page by page."""
    about = f"{extracted.source_type}, quality {extracted.quality}, {extracted.word_count} words"
    yield f"<h1>{escape(clean(shown))}</h1>\n<p>{escape(about)}</p>\n"
    if not extracted.pages:
        yield f"<pre>{escape(extracted.markdown)}</pre>\n"
    for page in extracted.pages:
        drawn = extracted.source_type in PAGED and page.number <= MOST_PICTURES
        picture = await draw_page(sandbox, path, extracted, page) if drawn else "<p>No picture of this page.</p>"
        yield write_page(page, picture, marks_of(extracted, page.number), extracted.markdown[page.start : page.end])


async def draw_page(sandbox: Sandbox, path: Path, extracted: Extracted, page: Page) -> str:
    # Imported late, as in every command, so that other commands start without loading the sandbox.
    from octavo.extract.pictures.page_images import show_in_sandbox

    try:
        picture = await show_in_sandbox(sandbox, path, extracted.source_type, page.number, _PICTURE_SIDE)
    except OctavoError as error:
        return f"<p>{escape(error.line)}</p>"
    return f'<img alt="Page {page.number}" src="data:image/jpeg;base64,{b64encode(picture).decode()}">'


def marks_of(extracted: Extracted, page: int) -> list[Mark]:
    """Return the boxes to draw on a page: its regions, or its blocks if the file has no regions."""
    if extracted.regions:
        regions = (one for one in extracted.regions if one.page == page)
        return [Mark(one.order, one.kind, one.box, one.text) for one in regions]
    blocks = [one for one in extracted.blocks if one.page == page]
    return [Mark(order, one.kind, one.box, one.text) for order, one in enumerate(blocks) if one.box]


def write_page(page: Page, picture: str, marks: Sequence[Mark], text: str) -> str:
    unsure = f'<p class="unsure">The text may be wrong: {escape(page.unsure)}</p>' if page.unsure else ""
    boxes = "".join(_boxes(page, marks))
    return (
        f'<h2>Page {escape(page.label)}</h2>{unsure}\n<div class="page"><div class="sheet">{picture}{boxes}</div>'
        f"<pre>{escape(text)}</pre></div>\n"
    )


def _boxes(page: Page, marks: Sequence[Mark]) -> Iterator[str]:
    """Yield the HTML of each box. Positions are percentages of the page, so that they fit a picture of any size."""
    if not page.width or not page.height:
        return
    for mark in marks:
        left, right = (100 * side / page.width for side in (mark.box.left, mark.box.right))
        top, bottom = (100 * side / page.height for side in (mark.box.top, mark.box.bottom))
        place = f"left:{left:.2f}%;top:{top:.2f}%;width:{right - left:.2f}%;height:{bottom - top:.2f}%"
        kind = escape(mark.kind)
        label = f"<span>{mark.order} {kind}</span>"
        yield f'<div class="box {kind}" style="{place}" title="{escape(mark.text)}">{label}</div>'


STDIN = "-"

app = typer.Typer()


@app.command()
def extract(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Files, folders, glob patterns, or - for standard input.")
    ],
    password: Password = None,
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write to this file instead of standard output.")
    ] = None,
    name: Annotated[
        str, typer.Option(help="File name for standard input, such as notes.md. Its extension determines the format.")
    ] = "",
    as_json: AsJson = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Write an HTML file that shows each page next to its text, so that you can check the extraction.",
        ),
    ] = None,
) -> None:
    """Print the text of files as Markdown. Nothing is stored, and no server is needed.

    With --json, print one line per file with pages, blocks, outline and regions. Exits with code 1 if a file could not
    be read.
    """
    settings = load_settings()
    if html and (out or as_json):
        raise BadInput("--html writes its own file, so it cannot be combined with --out or --json.")
    check_output(html or out)
    if password == PROMPT_FOR_IT and STDIN in files:
        raise BadInput("Standard input can be read only once: as a file or as a password.")
    secret = read_password(password)
    with ExitStack() as stack:
        found = find_files(file for file in files if file != STDIN)
        if STDIN in files:
            kept = stack.enter_context(keep_stdin(name, settings.upload_bytes))
            found.files.append(LocalFile(kept.path, STDIN, name, kept.size))
        output = Output(html or out, as_json, several=len(found.files) > 1, as_html=html is not None)
        stack.callback(output.close)
        for refused in found.refused:
            output.refuse(refused.shown, refused.error)
        asyncio.run(read_all(settings, found.files, secret, output))
    raise typer.Exit(int(output.refused > 0))


def check_output(out: Path | None) -> None:
    """Check that the output file can be written, before a long extraction starts."""
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise BadInput(f"{clean(str(out))} cannot be written: it is a folder, or its folder does not exist.")


async def read_all(settings: Settings, files: Sequence[LocalFile], password: str | None, output: Output) -> None:
    # Imported here, as in every command, so that other commands start without loading the sandbox.
    from octavo.extract.file_reader import open_reader
    from octavo.extract.pictures.page_images import PRELOAD
    from octavo.sandbox import Limits

    limits = Limits(memory_bytes=settings.sandbox_memory_bytes, cpu_seconds=settings.sandbox_cpu_seconds)
    named = [(file.path, file.name) for file in files]
    more = PRELOAD if output.as_html else ()
    async with open_reader(limits, settings.ocr_language, settings.ocr_seconds, named, more) as reader:
        for file in files:
            try:
                with open_reading_bar(file.name or file.shown) as show:
                    extracted = await reader.read(file.path, filename=file.name, password=password, on_progress=show)
            except OctavoError as error:
                output.refuse(file.shown, error)
            except OSError as error:
                output.refuse(file.shown, StorageFailed(error.strerror))
            else:
                if output.as_html:
                    await output.write_html(write_file(reader.sandbox, file.path, file.shown, extracted))
                else:
                    output.write(file.shown, extracted)


@dataclass(slots=True)
class Output:
    """Writes the text of each file, and reports files without text.

    The output file is opened when the first text is written.
    """

    path: Path | None
    as_json: bool
    several: bool
    as_html: bool = False
    refused: int = 0
    _file: BinaryIO | None = field(default=None, init=False)

    def write(self, shown: str, extracted: Extracted) -> None:
        self._open()
        if self.as_json:
            for piece in json_line(shown, extracted):
                typer.echo(piece, file=self._file, nl=False)
            return
        self._put(as_markdown(shown if self.several else None, extracted))
        if lack := describe_lack(extracted):
            self._report(shown, lack)

    async def write_html(self, parts: AsyncIterable[str]) -> None:
        """Write the HTML of one file. Before the first file, also write the head of the HTML page."""

        if self._open():
            self._put(HEAD)
        async for part in parts:
            self._put(part)

    def refuse(self, shown: str, error: OctavoError) -> None:
        self.refused += 1
        self._report(shown, f"{error.line} ({error.code})")

    def close(self) -> None:
        if self._file and self.as_html:
            self._put("</body></html>\n")
        if self._file:
            self._file.close()

    def _open(self) -> bool:
        """Open the output file, if there is one. Returns True if this call opened it."""
        if self._file or not self.path:
            return False
        self._file = self.path.open("wb")
        return True

    def _put(self, text: str) -> None:
        typer.echo(text.encode(errors="replace"), file=self._file, nl=False)

    def _report(self, shown: str, line: str) -> None:
        typer.echo(f"octavo: {clean(shown)}: {clean(line)}", err=True)


def json_line(shown: str, extracted: Extracted) -> Iterator[bytes]:
    """Yield the document as one line of JSON, in several parts, because a document can be long."""
    from octavo.extract.extracted import json_pieces

    yield f'{{"path":{json.dumps(shown, ensure_ascii=False)},'.encode(errors="replace")
    pieces = json_pieces(extracted)
    yield next(pieces).removeprefix(b"{")
    yield from pieces
    yield b"\n"


def as_markdown(shown: str | None, extracted: Extracted) -> str:
    """Return the text of a file. If there are several files, the text starts with the file name."""
    head = "" if shown is None else f"<!-- {clean(shown).replace('--', '- -')} -->\n\n"
    text = extracted.markdown.rstrip("\n")
    return f"{head}{text}\n" + ("\n" if shown is not None else "")


def describe_lack(extracted: Extracted) -> str | None:
    """Return a message if pages of the file have no text, or text that may be wrong. Otherwise, return None."""
    from octavo.extract.extracted import Quality

    doubt = next((f" Page {page.number}: {page.unsure}" for page in extracted.pages if page.unsure), "")
    match extracted.quality:
        case Quality.EMPTY:
            return f"The file contains no text.{doubt}"
        case Quality.PARTIAL if extracted.pages_with_text < len(extracted.pages):
            return f"Only {extracted.pages_with_text} of {len(extracted.pages)} pages have text.{doubt}"
        case Quality.PARTIAL:
            return f"Some text may be wrong.{doubt}"
        case _:
            return None


# Documents ----------------------------------------------------------------------------------------------------------


class Content(StrEnum):
    """The content that `octavo get` can return."""

    MARKDOWN = "markdown"
    SOURCE = "source"
    JSON = "json"
    EXPORT = "export"


def choose(wanted: Mapping[Content, bool]) -> Content:
    chosen = [one for one, is_wanted in wanted.items() if is_wanted]
    if len(chosen) > 1:
        raise BadInput("Use one of --markdown, --source, --json and --export.")
    return chosen[0] if chosen else Content.MARKDOWN


@app.command()
def get(
    document: Annotated[str, typer.Argument(metavar="ID", help="Document id, or part of it.")],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Get the text as Markdown. This is the default.")
    ] = False,
    source: Annotated[bool, typer.Option("--source", help="Get the original file.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Get all data as JSON: record, facts, text, chunks, connections and more.")
    ] = False,
    export: Annotated[bool, typer.Option("--export", help="Get a ZIP file with the text and its figures.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Write to this file, or into this folder under the name of the document. Default: standard output.",
        ),
    ] = None,
    server: Server = None,
    key: Key = None,
) -> None:
    """Get the text, the original file or all data of a document. Interrupted downloads are resumed."""
    content = choose(
        {
            Content.MARKDOWN: markdown,
            Content.SOURCE: source,
            Content.JSON: as_json,
            Content.EXPORT: export,
        }
    )
    if out is None and content in {Content.SOURCE, Content.EXPORT} and sys.stdout.isatty():
        raise BadInput("This cannot be shown on a terminal. Write it to a file with --out, or pipe it.")
    if out is not None and not out.is_dir():
        check_output(out)

    async def run(client: Client) -> Path:
        (found,) = await find_ids(client, [document])
        return await save(client, await client.show_document(found), content, out or Path(folder))

    with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
        written = call(Target(server, key), run)
        if out is None:
            return print_file(written)
    return typer.echo(f"Written to {clean(str(written))}.", err=True)


def print_file(path: Path) -> None:
    """Copy a downloaded file to standard output.

    The download is already complete, so a pipe never receives part of a failed download.
    """
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


async def save(client: Client, document: Document, content: Content, out: Path) -> Path:
    """Download the content to `out`, and return the path of the file.

    If `out` is a folder, the file is created in it and named after the document.
    """
    path = out / file_name(document, content) if out.is_dir() else out  # noqa: ASYNC240 - quicker than a thread call
    match content:
        case Content.MARKDOWN:
            await client.download_markdown(document.id, path)
        case Content.SOURCE:
            await client.download_source(document.id, path)
        case Content.JSON:
            await client.download_export(document.id, path)
        case Content.EXPORT:
            await client.download_export(document.id, path, form="zip")
    return path


def file_name(document: Document, content: Content) -> str:
    """Return a name for a local file. The name of the document is not trusted, so folders in it are dropped."""
    name = clean(document.filename.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(".") or str(document.id)
    endings = {Content.MARKDOWN: ".md", Content.JSON: ".json", Content.EXPORT: ".zip"}
    ending = endings.get(content, "")
    return name if name.endswith(ending) else f"{name}{ending}"
