"""`octavo extract` and `octavo get`: the text of files, and the text, file and data of documents.

`octavo extract` converts any file to Markdown, JSON or HTML, without a database, a server or a data folder.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from octavo.cli.local_files import LocalFile, find_files, keep_stdin
from octavo.cli.options import PROMPT_FOR_IT, AsJson, Key, Password, Server, find_ids, read_password
from octavo.cli.output import clean
from octavo.cli.progress import open_reading_bar
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput, OctavoError, StorageFailed
from octavo.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from octavo.client import Client, Document
    from octavo.extract.extracted import Extracted

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
        raise BadInput("--html writes its own file: leave out --out and --json.")
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
    from octavo.cli.side_by_side import write_file
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
        """Write the HTML of one file. For the first file, the head of the HTML page is written before it."""
        from octavo.cli.side_by_side import HEAD

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
    """Yield the document as one line of JSON, piece by piece, because a document can be long."""
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
    """Return a message if pages of the file have no text, or text that may be wrong; otherwise None."""
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
    export: Annotated[
        bool, typer.Option("--export", help="Get a ZIP file: the text, and pictures of figures.")
    ] = False,
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
        raise BadInput("This is not text for a terminal. Write it to a file with --out, or pipe it.")
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
    """Copy a downloaded file to standard output. It is complete, so a pipe never receives part of a failed download."""
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


async def save(client: Client, document: Document, content: Content, out: Path) -> Path:
    """Download to a file, or into a folder under the name of the document. Returns the path of the file."""
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
