"""`octavo models`: the providers of models, and which model does which task."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from octavo.cli.options import AsJson, Key, Server, read_password
from octavo.cli.output import make_facts, make_table, open_console, print_items, print_json, print_on
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.pagination import Page
    from octavo.records.account import ModelProvider, ModelServer, ModelsInForce, ModelTest

app = typer.Typer(help="Show, set up and test the providers of models.", no_args_is_help=True)
DEFAULT = "default"


class Provider(StrEnum):
    GEMINI = "gemini"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    COMPATIBLE = "compatible"


Name = Annotated[Provider, typer.Argument(help="Provider. compatible: Ollama, vLLM and similar servers.")]


@app.command()
def show(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Show the providers, the model of each task, and the cost of this month."""

    async def run(client: Client) -> ModelsInForce:
        return await client.read_models()

    print_models(call(Target(server, key), run), as_json)


@app.command("set")
def set_up(  # noqa: PLR0917 - options of the command
    provider: Name,
    api_key: Annotated[
        str | None,
        typer.Option(help="API key of the provider. With -, you are prompted for it. It is stored encrypted."),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Base URL, such as http://127.0.0.1:11434/v1.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    context: Annotated[int | None, typer.Option(help="Context size in tokens, only for compatible.")] = None,
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


@app.command()
def rm(provider: Name, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Stop using a provider and delete its API key (administrators only)."""

    async def run(client: Client) -> ModelsInForce:
        await client.remove_provider(provider.value)
        return await client.read_models()

    print_models(call(Target(server, key), run), as_json)


@app.command()
def choose(
    order: Annotated[str | None, typer.Option(help="Providers in order, such as gemini,local.")] = None,
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
    """Choose the order of the providers, and which model does which task (administrators only)."""
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


@app.command("test")
def call_model(provider: Name, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Call the model of a provider once, and show the time and the cost (administrators only)."""

    async def run(client: Client) -> ModelTest:
        return await client.test_provider(provider.value)

    made = call(Target(server, key), run)
    if as_json:
        return print_json(made)
    return typer.echo(f"{made.model} answered in {made.seconds:.1f} s. Cost: {made.cost_usd:.6f} USD.")


@app.command()
def servers(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Look for model servers such as Ollama on the machine on which Octavo runs (administrators only)."""

    async def run(client: Client) -> Page[ModelServer]:
        return await client.find_model_servers()

    found = call(Target(server, key), run).items
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No model server answers on that machine.")
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
