"""Pages of the documentation site that are made from the code: the commands and the HTTP API.

They are made when the site is built, so they are never out of date and are not files of the repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from octavo.cli.app import app
from octavo.core.settings import Settings
from octavo.web.app import create_app
from octavo.web.rooms.system.reference import Answer, Body, Field, Operation, Reference, Type, make_reference
from tools.make_man_page import commands, has_default, value_of

COMMANDS, API = "docs/reference/commands.md", "docs/reference/http-api.md"
COMMANDS_HEAD = """# Commands

All commands of `octavo` with their arguments and options. This page is made from the code. [Everyday
commands](../how-to/commands.md) shows how to use them.
"""
API_HEAD = """# HTTP API

All routes with their parameters, bodies and answers, made from the OpenAPI description. Your server has the same
reference with examples at `/api/docs`, and the description at `/api/openapi.json`. [Use the API](../how-to/api.md)
explains keys, errors and lists. See also [all error codes](errors.md) and [what stays
compatible](compatibility.md).
"""


def made_pages() -> dict[str, str]:
    """Return the Markdown of each made page by its path."""
    return {COMMANDS: commands_page(), API: api_page()}


# Commands -----------------------------------------------------------------------------------------------------------


def commands_page() -> str:
    root = typer.main.get_command(app)
    return "\n".join([COMMANDS_HEAD, *(describe_command(path, one) for path, one in commands(root))])


def describe_command(path: str, command: Any) -> str:  # noqa: ANN401 - the library's own kind
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden and one.help]
    used = " ".join(
        [path, *(one.metavar or one.name.upper() for one in arguments), *(["[options]"] if options else [])]
    )
    rows = [(f"`{one.metavar or one.name.upper()}`", getattr(one, "help", None) or "") for one in arguments]
    rows += [(option_names(one), option_text(one)) for one in options]
    return "\n".join([f"## {path}\n", f"    {used}\n", f"{command.help or ''}\n", *table(("Option", "Meaning"), rows)])


def option_names(option: Any) -> str:  # noqa: ANN401 - the library's own kind
    value = "" if option.is_flag else f" {option.metavar or value_of(option)}"
    return f"`{', '.join(option.opts)}{value}`"


def option_text(option: Any) -> str:  # noqa: ANN401 - the library's own kind
    default = f" Default: `{option.default}`." if has_default(option) else ""
    return f"{option.help or ''}{default}"


# The API -----------------------------------------------------------------------------------------------------------


def api_page() -> str:
    reference = make_reference(create_app(Settings(data_dir=Path("/nowhere"))).openapi())
    return "\n".join([API_HEAD, *describe_reference(reference)])


def describe_reference(reference: Reference) -> Iterator[str]:
    for group in reference.groups:
        yield f"## {group.name.replace('_', ' ').capitalize()}\n\n{group.text}\n"
        for one in group.operations:
            yield from describe_operation(one, f"{one.method} `{one.path}`")
    yield "## Events for webhooks\n"
    for one in reference.events:
        yield from describe_operation(one, f"`{one.path}`")
    yield "## Types\n"
    for one in reference.types:
        yield from describe_type(one)


def describe_operation(one: Operation, title: str) -> Iterator[str]:
    yield f"### {title}\n\n{one.text}\n"
    yield from fields_table(one.parameters, ("Parameter", "In", "Type", "Meaning"))
    for body in one.bodies:
        yield f"Body: {body_name(body)}\n"
    answers = [answer for answer in one.answers if not answer.is_problem]
    yield from table(
        ("Status", "Meaning", "Body"), [(f"`{answer.status}`", answer.text, bodies(answer)) for answer in answers]
    )
    if errors := [f"`{answer.status}` {answer.text}" for answer in one.answers if answer.is_problem]:
        yield f"Errors: {' · '.join(errors)}\n"


def bodies(answer: Answer) -> str:
    return ", ".join(map(body_name, answer.bodies))


def body_name(body: Body) -> str:
    named = f"{body.type} as " if body.type else ""
    return f"{named}`{body.media_type}`"


def describe_type(one: Type) -> Iterator[str]:
    yield f"### {one.name}\n\n{one.text}\n"
    if one.choices:
        yield "One of " + ", ".join(f"`{choice}`" for choice in one.choices) + ".\n"
    yield from fields_table(one.fields, ("Field", "Type", "Meaning"))


def fields_table(fields: Iterable[Field], head: tuple[str, ...]) -> Iterator[str]:
    rows = [(f"`{one.name}`", *([one.place] if "In" in head else []), required(one), one.text) for one in fields]
    return table(head, rows)


def required(field: Field) -> str:
    return f"{field.type}, required" if field.required else field.type


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a Markdown table, or nothing if it has no rows."""
    lines = [f"| {' | '.join(cell(one) for one in row)} |" for row in rows]
    if lines:
        yield "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines, ""])


def cell(text: str) -> str:
    """Return a text for a cell: one line, in which a bar does not end the cell."""
    return " ".join(text.split()).replace("|", "\\|")
