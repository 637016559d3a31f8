"""`--dry-run`: estimates the cost of model calls, without adding, changing or paying anything.

Local files are read on this machine, as with `octavo extract`. The server provides the prices and the names of the
models.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.costs import usd
from octavo.cli.local_files import LocalFile
from octavo.cli.output import make_table, open_console, print_json, print_on
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of
from octavo.core.languages import count_words
from octavo.core.settings import load_settings
from octavo.core.types import Extraction

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.account import DocumentEstimate

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show the estimated cost of models. Nothing is added or spent.")
]


@dataclass(frozen=True, slots=True)
class PlannedDocument:
    """A document and the estimated costs of processing it."""

    name: str
    words: int
    pages: int
    estimate: DocumentEstimate


async def plan_files(client: Client, files: Sequence[LocalFile], prompts: int = 1) -> list[PlannedDocument]:
    """Estimate the cost of model calls for local files, which are read on this machine."""
    planned: list[PlannedDocument] = []
    async for name, words, pages in _read(files):
        planned.append(PlannedDocument(name, words, pages, await client.estimate(words, pages, prompts)))
    return planned


async def _read(files: Sequence[LocalFile]) -> AsyncIterator[tuple[str, int, int]]:
    from octavo.extract.file_reader import open_reader
    from octavo.sandbox import Limits

    settings = load_settings()
    limits = Limits(memory_bytes=settings.sandbox_memory_bytes, cpu_seconds=settings.sandbox_cpu_seconds)
    async with open_reader(limits, settings.ocr_language, settings.ocr_seconds) as reader:
        for file in files:
            extracted = await reader.read(file.path, filename=file.name)
            yield file.shown, extracted.word_count, len(extracted.pages)


async def plan_text(client: Client, name: str, text: str) -> PlannedDocument:
    words = count_words(text)
    return PlannedDocument(name, words, 0, await client.estimate(words, 0))


async def plan_documents(client: Client, documents: Sequence[UUID], prompts: int = 1) -> list[PlannedDocument]:
    """Estimate the cost of model calls for documents in the library."""
    found = [await client.show_document(one) for one in documents]
    return [
        PlannedDocument(
            one.title, one.word_count or 0, one.page_count or 0, await client.estimate_document(one.id, prompts)
        )
        for one in found
    ]


def local_file(named: str) -> LocalFile | None:
    path = Path(named)
    return LocalFile(path, named, path.name, path.stat().st_size) if path.is_file() else None


def print_plan(planned: Sequence[PlannedDocument], extraction: Extraction, *, as_json: bool) -> None:
    if as_json:
        return print_json({"documents": planned})
    head = ["DOCUMENT", "WORDS", "PAGES", "TEXT", "DESCRIPTION", "CONNECTIONS", "TOTAL"]
    rows = [[one.name, f"{one.words:,}", f"{one.pages:,}", *map(usd, _costs(one, extraction))] for one in planned]
    console = open_console()
    print_on(console, make_table(console, head, rows))
    total = sum(_costs(one, extraction)[-1] for one in planned)
    return typer.echo(f"{count_of(len(planned), 'document')}, about {usd(total)}. Nothing was added.")


def _costs(one: PlannedDocument, extraction: Extraction) -> list[float]:
    """Return four estimated costs: text, description (title, summary, tags), connections, and their sum."""
    estimate = one.estimate
    texts = {Extraction.PLAIN: 0.0, Extraction.CLEAN: estimate.clean.usd, Extraction.PAGES: estimate.pages.usd}
    costs = [texts[extraction], estimate.describe.usd, estimate.connections.usd]
    return [*costs, sum(costs)]


def plan_addition(
    target: Target, files: Sequence[LocalFile], texts: Sequence[tuple[str, str]]
) -> list[PlannedDocument]:
    async def run(client: Client) -> list[PlannedDocument]:
        return [*await plan_files(client, files), *[await plan_text(client, *one) for one in texts]]

    return call(target, run)


def print_analysis_plan(planned: PlannedDocument, prompts: int, *, as_json: bool) -> None:
    if as_json:
        return print_json({"document": planned, "prompts": prompts})
    cost = usd(planned.estimate.analysis.usd)
    return typer.echo(f"{planned.name}: {count_of(prompts, 'prompt')}, about {cost}. Nothing was started.")


def refuse_links(count: int) -> None:
    if count:
        raise BadInput(
            "The cost of a link is known only after it is fetched. Leave out the links, or add them without --dry-run."
        )
