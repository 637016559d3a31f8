"""Models and their costs: `octavo models`, `octavo usage`, `octavo budgets`, and estimates with `--dry-run`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from octavo.cli.local_files import LocalFile
from octavo.cli.options import AsJson, Key, Server, find_ids, read_password
from octavo.cli.output import make_facts, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of
from octavo.core.settings import load_settings
from octavo.core.texts import count_words
from octavo.core.types import Extraction

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.http import Page
    from octavo.records.account import (
        Budget,
        BudgetsInForce,
        DocumentBudget,
        DocumentEstimate,
        ModelProvider,
        ModelServer,
        ModelsInForce,
        ModelTest,
        Usage,
    )

usage_app = typer.Typer()


@usage_app.command()
def usage(
    month: Annotated[
        str | None, typer.Option(metavar="YYYY-MM", help="Month (UTC). Default: the current month.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the cost of model calls in a month by purpose, model and document, and the savings from reused answers."""

    async def run(client: Client) -> Usage:
        return await client.read_usage(month)

    found = call(Target(server, key), run)
    if as_json:
        return print_json(found)
    console = open_console()
    print_on(console, make_facts(usage_facts(found)))
    if found.purposes:
        head = ["PURPOSE", "MODEL", "CALLS", "FAILED", "TOKENS", "COST"]
        rows = [
            [
                one.purpose,
                one.model,
                f"{one.calls:,}",
                f"{one.failed:,}",
                f"{one.tokens_in + one.tokens_out:,}",
                usd(one.cost_usd),
            ]
            for one in found.purposes
        ]
        typer.echo()
        print_on(console, make_table(console, head, rows))
    if found.documents:
        listed = [
            [short_id(one.document_id), one.title, f"{one.calls:,}", usd(one.cost_usd)] for one in found.documents
        ]
        typer.echo()
        print_on(console, make_table(console, ["ID", "TITLE", "CALLS", "COST"], listed))
    return None


def usage_facts(found: Usage) -> dict[str, str | None]:
    estimated = f", {usd(found.estimated_usd)} of it estimated" if found.estimated_usd else ""
    return {
        "Month": found.month,
        "Cost": f"{usd(found.cost_usd)} of {usd(found.budget_usd)}{estimated}",
        "Reserved": usd(found.reserved_usd) if found.reserved_usd else None,
        "Saved": f"{usd(found.saved_usd)} by reusing {count_of(found.reuses, 'answer')}" if found.reuses else None,
        "Calls": f"{found.calls:,}",
        "Tokens": f"{found.tokens_in:,} in, {found.tokens_out:,} out",
        "All owners": usd(found.everybody_usd) if found.everybody_usd is not None else None,
        "Earlier": ", ".join(f"{one.month} {usd(one.cost_usd)}" for one in found.months if one.month != found.month),
    }


def usd(amount: float) -> str:
    """Format an amount in US dollars. Amounts below one dollar get four decimals."""
    return f"{amount:.2f} USD" if amount >= 1 or not amount else f"{amount:.4f} USD"


budgets_app = typer.Typer(help="Show and set the budgets for models.", no_args_is_help=True)

USUAL = "usual"
_AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,8})?")
EXCEEDED = {"document": "the document's budget", "owner": "the owner's budget", "month": "the budget for all owners"}
ID = typer.Argument(metavar="ID", help="Document id, or at least four characters of it.")


@budgets_app.command()
def show(
    document: Annotated[str | None, ID] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the budgets and this month's cost, or the budget of one document."""

    async def run(client: Client) -> BudgetsInForce | DocumentBudget:
        if document is None:
            return await client.read_budgets()
        (found,) = await find_ids(client, [document])
        return await client.read_document_budget(found)

    print_budgets(call(Target(server, key), run), as_json)


@budgets_app.command("set")
def set_all(
    document: Annotated[str | None, typer.Option(metavar="USD", help="Budget per document.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="USD", help="Monthly budget per owner.")] = None,
    month: Annotated[str | None, typer.Option(metavar="USD", help="Monthly budget for all owners together.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set the budgets of this installation, in US dollars (administrators only).

    `usual` restores the default from the settings.
    """
    given = {"document": document, "owner": owner, "month": month}
    changes = {name: read_dollars(typed) for name, typed in given.items() if typed is not None}
    if not changes:
        raise BadInput("Use at least one of --document, --owner and --month.")

    async def run(client: Client) -> BudgetsInForce:
        return await client.set_budgets(changes)

    print_budgets(call(Target(server, key), run), as_json)


@budgets_app.command("raise")
def raise_one(
    document: Annotated[str, ID],
    dollars: Annotated[str, typer.Argument(metavar="USD", help="Amount in US dollars, or `usual` for the default.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set the budget of one document. Its paused jobs resume if the new budget allows it."""
    most = read_dollars(dollars)

    async def run(client: Client) -> DocumentBudget:
        (found,) = await find_ids(client, [document])
        return await client.set_document_budget(found, most)

    print_budgets(call(Target(server, key), run), as_json)


def print_budgets(found: BudgetsInForce | DocumentBudget, as_json: bool) -> None:
    from octavo.records.account import DocumentBudget

    if as_json:
        return print_json(found)
    facts = document_facts(found) if isinstance(found, DocumentBudget) else budget_facts(found)
    return print_on(open_console(), make_facts(facts))


def budget_facts(found: BudgetsInForce) -> dict[str, str | None]:
    everybody = found.everybody_usd
    return {
        "Document": describe(found.document),
        "Owner": f"{describe(found.owner)} per month, {usd(found.spent_usd)} spent",
        "All owners": f"{describe(found.month)} per month, {usd(everybody or 0)} spent" if found.month else None,
    }


def document_facts(found: DocumentBudget) -> dict[str, str | None]:
    waits = f"{count_of(found.paused, 'job')} for about {usd(found.needed_usd)}"
    refused = f"; stopped by {EXCEEDED[found.over]}" if found.over else ""
    return {
        "Budget": f"{usd(found.usd)}, default {usd(found.usual_usd)}" if found.is_set else usd(found.usd),
        "Spent": usd(found.spent_usd),
        "Maximum": usd(found.most_usd),
        "Waiting": f"{waits}{refused}" if found.paused else None,
    }


def describe(budget: Budget) -> str:
    return f"{usd(budget.usd)} (default {usd(budget.usual_usd)})" if budget.is_set else usd(budget.usd)


def read_dollars(typed: str) -> float | None:
    """Parse an amount in US dollars. Returns None for `usual`, which restores the default.

    The server checks the maximum.
    """
    if typed.strip().lower() == USUAL:
        return None
    if not _AMOUNT.fullmatch(typed.strip()):
        raise BadInput(f"{typed!r} is not an amount. Use 5, 2.50 or {USUAL}.")
    return float(typed)


# Estimates ------------------------------------------------------------------------------------------------------------

# Nothing is added, changed or paid. Local files are read on this machine, as with `octavo extract`. The server provides
# the prices and the names of the models.
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


# Models ---------------------------------------------------------------------------------------------------------------


models_app = typer.Typer(help="Show, set up and test model providers.", no_args_is_help=True)
DEFAULT = "default"


class Provider(StrEnum):
    GEMINI = "gemini"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MISTRAL = "mistral"
    AZURE = "azure"
    VERTEX = "vertex"
    BEDROCK = "bedrock"
    COMPATIBLE = "compatible"


Name = Annotated[Provider, typer.Argument(help="Provider. compatible: Ollama, vLLM and similar servers.")]


@models_app.command("show")
def show_models(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Show the providers, the model of each task, and this month's cost."""

    async def run(client: Client) -> ModelsInForce:
        return await client.read_models()

    print_models(call(Target(server, key), run), as_json)


@models_app.command("set")
def set_up(  # noqa: PLR0917 - options of the command
    provider: Name,
    api_key: Annotated[
        str | None,
        typer.Option(help="API key of the provider. Use - to be prompted for it. It is stored encrypted."),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Base URL, such as http://127.0.0.1:11434/v1.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    context: Annotated[int | None, typer.Option(help="Context size in tokens. Only for `compatible`.")] = None,
    price: Annotated[
        str | None,
        typer.Option(help="US dollars per million input and output tokens, such as 0.15/0.60, or 0/0 if it is free."),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set up a provider or change it (administrators only). `default` restores the default URL or model."""
    typed = {"key": read_password(api_key, "API key: "), "url": url, "model": model, "context": context, "price": price}
    changes = {name: None if value == DEFAULT else value for name, value in typed.items() if value is not None}

    async def run(client: Client) -> ModelsInForce:
        return await client.set_provider(provider.value, changes)

    print_models(call(Target(server, key), run), as_json)


@models_app.command()
def rm(provider: Name, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Stop using a provider and delete its API key (administrators only)."""

    async def run(client: Client) -> ModelsInForce:
        await client.remove_provider(provider.value)
        return await client.read_models()

    print_models(call(Target(server, key), run), as_json)


@models_app.command()
def choose(
    order: Annotated[str | None, typer.Option(help="Providers in order of preference, such as gemini,local.")] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Model for a task, such as answer=gemini:gemini-2.5-pro, or answer=default. Tasks: describe, read, "
            "connect, answer, analyse, convert. Can be repeated."
        ),
    ] = None,
    embedding: Annotated[
        str | None, typer.Option(help="Model for search by meaning, such as local. All documents are indexed again.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Choose the order of the providers and the model for each task (administrators only)."""
    changes: dict[str, Any] = {"tasks": dict(map(read_task, task))} if task else {}
    if order:
        changes["order"] = [one.strip() for one in order.split(",")]
    if embedding:
        changes["embedding"] = embedding
    if not changes:
        raise BadInput("Use at least one of --order, --task and --embedding.")

    async def run(client: Client) -> ModelsInForce:
        return await client.choose_models(changes)

    print_models(call(Target(server, key), run), as_json)


@models_app.command("test")
def call_model(provider: Name, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Call the model of a provider once, and show the time and the cost (administrators only)."""

    async def run(client: Client) -> ModelTest:
        return await client.test_provider(provider.value)

    made = call(Target(server, key), run)
    if as_json:
        return print_json(made)
    return typer.echo(f"{made.model} answered in {made.seconds:.1f} s. Cost: {made.cost_usd:.6f} USD.")


@models_app.command()
def servers(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Look for model servers such as Ollama on the machine that runs Octavo (administrators only)."""

    async def run(client: Client) -> Page[ModelServer]:
        return await client.find_model_servers()

    found = call(Target(server, key), run).items
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No model server was found on the machine that runs Octavo.")
    console = open_console()
    rows = [[one.name, one.url, ", ".join(one.models)] for one in found]
    return print_on(console, make_table(console, ["SERVER", "URL", "MODELS"], rows, flexible=(2,)))


def read_task(typed: str) -> tuple[str, str | None]:
    name, given, model = typed.partition("=")
    if not given or not model:
        raise BadInput(f"{typed!r} is not a task with a model. Example: answer=local.")
    return name, None if model == DEFAULT else model


def print_models(found: ModelsInForce, as_json: bool) -> None:
    if as_json:
        return print_json(found)
    console = open_console()
    fixed = {f"{name.capitalize()} set by": variable for name, variable in found.fixed_by.items()}
    facts = {"Order": ", ".join(found.order), "Embedding": found.embedding, "Problem": found.problem}
    costs = {"Cost": f"{found.spent_usd:.2f} USD this month", "No price known": ", ".join(found.unpriced) or None}
    print_on(console, make_facts({**facts, **costs, **fixed}))
    typer.echo()
    head = ["PROVIDER", "STATE", "MODEL", "PRICE", "KEY", "URL"]
    print_on(console, make_table(console, head, [provider_row(one) for one in found.providers], flexible=(5,)))
    typer.echo()
    rows = [[one.name, ", ".join(one.models)] for one in found.tasks]
    return print_on(console, make_table(console, ["TASK", "MODELS"], rows))


def provider_row(one: ModelProvider) -> list[str]:
    key = f"…{one.key_end}" if one.key_end else one.fixed_by.get("key") or one.key
    return [one.name, "in use" if one.in_use else "not in use", one.model or "", one.price or "", key, one.url or ""]
