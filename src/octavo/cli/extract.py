"""`octavo extract`: any file as Markdown or JSON, without a database, a server or a data folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from octavo.cli.options import AsJson
from octavo.cli.passwords import ASKED, Password, read_password
from octavo.cli.paths import LocalFile, find_files
from octavo.cli.reading import open_reading
from octavo.cli.stdin import keep_stdin
from octavo.cli.tables import clean
from octavo.core.errors import BadInput, OctavoError, StorageFailed
from octavo.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from octavo.extract.extracted import Extracted

STDIN = "-"

app = typer.Typer()


@app.command()
def extract(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Files, folders, patterns, or - for standard input.")
    ],
    password: Password = None,
    out: Annotated[Path | None, typer.Option(metavar="PATH", help="Write here instead of to standard output.")] = None,
    name: Annotated[
        str, typer.Option(help="What standard input is called, as notes.md; tells kinds of text apart.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Print the text of files as Markdown, or with --json with its pages, blocks and outline, a line for each file.

    Nothing is kept, and no server is needed. The exit code is 1 when a file could not be read.
    """
    settings = load_settings()
    check_output(out)
    if password == ASKED and STDIN in files:
        raise BadInput("Standard input can be read once: as a file or as a password.")
    secret = read_password(password)
    with ExitStack() as stack:
        found = find_files(file for file in files if file != STDIN)
        if STDIN in files:
            kept = stack.enter_context(keep_stdin(name, settings.upload_bytes))
            found.files.append(LocalFile(kept.path, STDIN, name, kept.size))
        output = Output(out, as_json, several=len(found.files) > 1)
        stack.callback(output.close)
        for refused in found.refused:
            output.refuse(refused.shown, refused.error)
        asyncio.run(read_all(settings, found.files, secret, output))
    raise typer.Exit(int(output.refused > 0))


def check_output(out: Path | None) -> None:
    """Before hours of reading, not after."""
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise BadInput(f"{clean(str(out))} cannot be written: it is a folder, or in one that does not exist.")


async def read_all(settings: Settings, files: Sequence[LocalFile], password: str | None, output: Output) -> None:
    # Imported late, as everywhere in commands: others start without a sandbox.
    from octavo.extract.file_reader import open_reader
    from octavo.sandbox import Limits

    limits = Limits(memory_bytes=settings.sandbox_memory_bytes, cpu_seconds=settings.sandbox_cpu_seconds)
    async with open_reader(limits, settings.ocr_language, settings.ocr_seconds) as reader:
        for file in files:
            try:
                with open_reading(file.name or file.shown) as show:
                    extracted = await reader.read(file.path, filename=file.name, password=password, on_progress=show)
            except OctavoError as error:
                output.refuse(file.shown, error)
            except OSError as error:
                output.refuse(file.shown, StorageFailed(error.strerror))
            else:
                output.write(file.shown, extracted)


@dataclass(slots=True)
class Output:
    """Where texts go, and what is said about those that have none. A file is opened when there is something for it."""

    path: Path | None
    as_json: bool
    several: bool
    refused: int = 0
    _file: BinaryIO | None = field(default=None, init=False)

    def write(self, shown: str, extracted: Extracted) -> None:
        if self.path and self._file is None:
            self._file = self.path.open("wb")
        text = as_line(shown, extracted) if self.as_json else as_markdown(shown if self.several else None, extracted)
        typer.echo(text.encode(errors="replace"), file=self._file, nl=False)
        if not self.as_json and (lack := say_lack(extracted)):
            self._say(shown, lack)

    def refuse(self, shown: str, error: OctavoError) -> None:
        self.refused += 1
        self._say(shown, f"{error.line} ({error.code})")

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _say(self, shown: str, line: str) -> None:
        typer.echo(f"octavo: {clean(shown)}: {clean(line)}", err=True)


def as_line(shown: str, extracted: Extracted) -> str:
    from octavo.extract.extracted import to_document

    return json.dumps({"path": shown, **to_document(extracted)}, ensure_ascii=False, separators=(",", ":")) + "\n"


def as_markdown(shown: str | None, extracted: Extracted) -> str:
    """With its name before it where there are several."""
    head = "" if shown is None else f"<!-- {clean(shown).replace('--', '- -')} -->\n\n"
    text = extracted.markdown.rstrip("\n")
    return f"{head}{text}\n" + ("\n" if shown is not None else "")


def say_lack(extracted: Extracted) -> str | None:
    """No text is never silent."""
    from octavo.extract.extracted import Quality

    match extracted.quality:
        case Quality.EMPTY:
            return "There is no text in it."
        case Quality.PARTIAL:
            return f"Text of {extracted.pages_with_text} of {len(extracted.pages)} pages."
        case _:
            return None
