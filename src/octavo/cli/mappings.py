"""`octavo mappings`: lists, prints, tests, adds and deletes mappings, which are rules for converting documents
to XML.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.local_files import LocalFile, find_files
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import clean, make_table, open_console, print_items, print_json, print_on
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput, OctavoError
from octavo.core.settings import load_settings

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.convert.values import Conversion, Value
    from octavo.records.conversions import MappingSummary, MappingView

app = typer.Typer(
    help="Mappings define which fields a conversion extracts, and their names in XML.", no_args_is_help=True
)
MappingFile = Annotated[Path, typer.Argument(metavar="FILE", help="A YAML mapping, or an invoice2data template.")]


@app.command("ls")
def list_all(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List mappings: first the built-in ones, then your own."""

    async def run(client: Client) -> list[MappingSummary]:
        return await client.conversions.list_mappings()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    console = open_console()
    rows = [[one.name, clean(one.title), f"{len(one.fields)}", "own" if one.created_at else ""] for one in found]
    return print_on(console, make_table(console, ["NAME", "TITLE", "FIELDS", ""], rows))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name with version, such as invoice_v1.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Print the text of a mapping (rules for converting documents to XML)."""

    async def run(client: Client) -> MappingView:
        return await client.conversions.show_mapping(name)

    found = call(Target(server, key), run)
    if as_json:
        return print_json(found)
    return typer.echo(found.text, nl=not found.text.endswith("\n"))


@app.command()
def add(file: MappingFile, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Add your own mapping.

    It is validated first. It cannot be edited later; save changes under a new version instead.
    """
    text = _read(file)

    async def run(client: Client) -> MappingSummary:
        return await client.conversions.add_mapping(file.name, text)

    found = call(Target(server, key), run)
    if as_json:
        return print_json(found)
    return typer.echo(f"Added {found.name}. Use it with `octavo convert --mapping {found.name}`.")


@app.command()
def rm(
    name: Annotated[str, typer.Argument(help="Name with version, such as mine_v1.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Delete one of your mappings.

    Existing conversions are not affected: each keeps a copy of the mapping it was made with.
    """

    async def run(client: Client) -> None:
        await client.conversions.delete_mapping(name)

    call(Target(server, key), run)
    if as_json:
        return print_json({"deleted": name})
    return typer.echo(f"Deleted {clean(name)}.")


@app.command("test")
def try_mapping(
    file: MappingFile,
    pdfs: Annotated[list[str] | None, typer.Argument(metavar="PDF", help="PDFs to test the mapping with.")] = None,
    as_json: AsJson = False,
) -> None:
    """Validate a mapping file. If PDFs are given, show the values that it finds in them.

    Nothing is stored, and no server is needed.
    """
    from octavo.convert.mappings.shipped_mappings import mapping_from_text

    text = _read(file)
    mapping = mapping_from_text(text, file.name)
    found = find_files(pdfs or [])
    if not as_json:
        typer.echo(f"{mapping.name} is valid: {len(mapping.fields)} fields.")
    refused = [(one.shown, one.error) for one in found.refused]
    converted, failed = asyncio.run(_convert_all(found.files, text, file.name))
    if as_json:
        print_json({"mapping": mapping.name, "files": [{"path": shown, **one.as_json()} for shown, one in converted]})
    else:
        for shown, one in converted:
            _print(shown, one)
    for shown, error in (*refused, *failed):
        typer.echo(f"octavo: {clean(shown)}: {clean(error.line)} ({error.code})", err=True)
    raise typer.Exit(int(bool(refused or failed)))


async def _convert_all(
    files: Sequence[LocalFile], text: str, label: str
) -> tuple[list[tuple[str, Conversion]], list[tuple[str, OctavoError]]]:
    from octavo.convert.in_sandbox import convert_in_sandbox
    from octavo.extract.file_reader import open_reader
    from octavo.extract.pdf.pdf_file import PdfInSandbox
    from octavo.extract.pdf.placed_words import read_words_in_sandbox
    from octavo.sandbox import Limits

    settings = load_settings()
    limits = Limits(memory_bytes=settings.sandbox_memory_bytes, cpu_seconds=settings.sandbox_cpu_seconds)
    converted: list[tuple[str, Conversion]] = []
    failed: list[tuple[str, OctavoError]] = []
    async with open_reader(limits, settings.ocr_language, settings.ocr_seconds) as reader:
        for file in files:
            pdf = PdfInSandbox(reader.sandbox, file.path, limits=limits, recognition=reader.recognition)
            try:
                words = await read_words_in_sandbox(pdf)
                converted.append((file.shown, await convert_in_sandbox(reader.sandbox, words.document, text, label)))
            except OctavoError as error:
                failed.append((file.shown, error))
    return converted, failed


def _print(shown: str, one: Conversion) -> None:
    console = open_console()
    typer.echo(f"\n{clean(shown)}")
    rows = [
        [value.path, clean(value.value), f"{value.place.page}" if value.place else "", _certainty(value)]
        for value in one.values
    ]
    print_on(console, make_table(console, ["FIELD", "VALUE", "PAGE", "CONFIDENCE"], rows))
    for check in one.checks:
        if check.holds is not None:
            typer.echo(f"{'passed' if check.holds else 'FAILED'}: {check.check}")
    if one.missing:
        typer.echo(f"missing: {', '.join(one.missing)}")


def _certainty(value: Value) -> str:
    """Describe how certain a value is: a percentage if it was measured, otherwise `sure` or `check this`."""
    if value.calibrated:
        return f"{value.confidence:.0%}"
    return "check this" if value.needs_review else "sure"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise BadInput(f"{clean(str(file))} cannot be read: {error}") from None
