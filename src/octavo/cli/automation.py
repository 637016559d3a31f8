"""`octavo sources`, `octavo fields` and `octavo rules`: documents that arrive and sort themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Key, Server, find_among
from octavo.cli.output import clean, local_time, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of
from octavo.core.settings import load_settings

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.client.automation import SourceAction
    from octavo.records.automation import FieldView, RuleRun, RuleTrial, RuleView, SourceView

sources_app = typer.Typer(help="Watch folders and add their files.", no_args_is_help=True)
add_app = typer.Typer(help="Add a source.", no_args_is_help=True)
sources_app.add_typer(add_app, name="add")
fields_app = typer.Typer(help="Define custom fields of documents.", no_args_is_help=True)
rules_app = typer.Typer(help="Tag and file documents by rules.", no_args_is_help=True)
SourceId = Annotated[str, typer.Argument(metavar="SOURCE", help="Id of the source (or part of it), or its full name.")]
FieldId = Annotated[str, typer.Argument(metavar="FIELD", help="Id of the field (or part of it), or its full name.")]
RuleId = Annotated[str, typer.Argument(metavar="RULE", help="Id of the rule (or part of it), or its full name.")]


class Subfolders(StrEnum):
    IGNORE = "ignore"
    PLAIN = "plain"
    COLLECTIONS = "collections"
    TAGS = "tags"


class After(StrEnum):
    KEEP = "keep"
    MOVE = "move"


class Changed(StrEnum):
    VERSION = "version"
    NEW = "new"


# Sources ------------------------------------------------------------------------------------------------------------


@add_app.command("folder")
def add_folder(  # noqa: PLR0917 - each is an option of the command
    path: Annotated[str, typer.Argument(metavar="PATH", help="Folder on the server.")],
    name: Annotated[str | None, typer.Option(help="Name of the source. Default: the name of the folder.")] = None,
    subfolders: Annotated[
        Subfolders, typer.Option(help="What sub-folders become: nothing, plain documents, collections or tags.")
    ] = Subfolders.PLAIN,
    after: Annotated[
        After, typer.Option(help="Keep added files where they are, or move them to the sub-folder `added`.")
    ] = After.KEEP,
    changed: Annotated[
        Changed, typer.Option(help="A changed file becomes a new version of its document, or a new document.")
    ] = Changed.VERSION,
    every: Annotated[int, typer.Option(min=2, max=86400, help="Seconds between two looks at the folder.")] = 10,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Watch a folder on the server, and add its files as documents. Files and documents are never deleted."""
    options = {"subfolders": subfolders.value, "after": after.value, "changed": changed.value}
    more: dict[str, Any] = {"options": options, "every_seconds": every} | ({"name": name} if name else {})

    async def run(client: Client) -> SourceView:
        return await client.automation.add_folder(_absolute(path, server), **more)

    made = call(Target(server, key), run)
    if as_json:
        return print_json(made)
    return typer.echo(f"Watching {clean(made.path)} every {count_of(made.every_seconds, 'second')}.")


def _absolute(path: str, server: str | None) -> str:
    """Return the path on the server. A relative path works only if the server is this machine."""
    if server is None and load_settings().server is None:
        return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - the server resolves links
    return path


@sources_app.command("ls")
def list_sources(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List sources with their state and the number of their files."""

    async def run(client: Client) -> list[SourceView]:
        return await client.automation.list_sources()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No sources yet. Add one with `octavo sources add folder PATH`.")
    console = open_console()
    head = ["ID", "NAME", "STATE", "ADDED", "WAITING", "FAILED", "LAST RUN", "PATH"]
    rows = [_source_row(one, whole_id=not console.is_terminal) for one in found]
    print_on(console, make_table(console, head, rows))
    for one in found:
        if one.error:
            typer.echo(f"{clean(one.name)}: {clean(one.error)}", err=True)
    return None


def _source_row(one: SourceView, *, whole_id: bool) -> list[str]:
    counts = one.counts
    return [
        *(_shown_id(one.id, whole=whole_id), clean(one.name), one.state, str(counts.added + counts.known)),
        *(str(counts.waiting), str(counts.failed), local_time(one.last_run) if one.last_run else "never"),
        clean(one.path),
    ]


@sources_app.command("run")
def run_source(source: SourceId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Look at a source now. Files that could not be added are tried again."""
    _act_on_source(source, "run", Target(server, key), as_json=as_json)


@sources_app.command("pause")
def pause_source(source: SourceId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Pause a source. Files that arrive meanwhile are added when it is resumed."""
    _act_on_source(source, "pause", Target(server, key), as_json=as_json)


@sources_app.command("resume")
def resume_source(source: SourceId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Resume a paused source."""
    _act_on_source(source, "resume", Target(server, key), as_json=as_json)


def _act_on_source(source: str, action: SourceAction, target: Target, *, as_json: bool) -> None:
    async def run(client: Client) -> SourceView:
        known = {one.id: one.name for one in await client.automation.list_sources()}
        return await client.automation.act_on_source(find(source, known, "source"), action)

    changed = call(target, run)
    return print_json(changed) if as_json else typer.echo(f"{clean(changed.name)}: {changed.state}.")


@sources_app.command("rm")
def remove_source(source: SourceId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Stop watching a source. Its documents and its files stay."""

    async def run(client: Client) -> UUID:
        known = {one.id: one.name for one in await client.automation.list_sources()}
        wanted = find(source, known, "source")
        await client.automation.delete_source(wanted)
        return wanted

    removed = call(Target(server, key), run)
    return print_json({"id": str(removed)}) if as_json else typer.echo("Removed. Its documents and files stay.")


# Fields -------------------------------------------------------------------------------------------------------------


@fields_app.command("add")
def add_field(
    name: Annotated[str, typer.Argument(help="Name of the field, such as Project.")],
    type_: Annotated[str, typer.Option("--type", help="text, number, date, money, choice, link or person.")] = "text",
    choice: Annotated[
        list[str] | None, typer.Option(help="An allowed value of the type choice. Can be repeated.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Add a custom field."""

    async def run(client: Client) -> FieldView:
        return await client.automation.add_field(name, type_, choice)

    made = call(Target(server, key), run)
    return print_json(made) if as_json else typer.echo(f"Added the field {clean(made.name)} ({made.type}).")


@fields_app.command("ls")
def list_fields(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List custom fields."""

    async def run(client: Client) -> list[FieldView]:
        return await client.automation.list_fields()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No fields yet. Add one with `octavo fields add NAME`.")
    console = open_console()
    whole = not console.is_terminal
    rows = [
        [_shown_id(one.id, whole=whole), clean(one.name), one.type, str(one.documents), clean(", ".join(one.choices))]
        for one in found
    ]
    return print_on(console, make_table(console, ["ID", "NAME", "TYPE", "DOCUMENTS", "CHOICES"], rows))


@fields_app.command("rm")
def remove_field(field: FieldId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Delete a custom field and its values on all documents."""

    async def run(client: Client) -> UUID:
        known = {one.id: one.name for one in await client.automation.list_fields()}
        wanted = find(field, known, "field")
        await client.automation.delete_field(wanted)
        return wanted

    removed = call(Target(server, key), run)
    return print_json({"id": str(removed)}) if as_json else typer.echo("Deleted.")


# Rules --------------------------------------------------------------------------------------------------------------


@rules_app.command("add")
def add_rule(
    name: Annotated[str, typer.Argument(help="Name of the rule.")],
    when: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUE",
            help="Condition: text, kind, sender, source, tag, amount_min, amount_max, currency, or field:NAME. Can be "
            "repeated; all must match.",
        ),
    ],
    then: Annotated[
        list[str],
        typer.Option(metavar="NAME=VALUE", help="Action: tag, collection, title, or field:NAME. Can be repeated."),
    ],
    enabled: Annotated[bool, typer.Option("--enabled", help="Run it on each new document from now on.")] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Add a rule. Try it with `octavo rules try` before you enable it."""
    conditions, actions = read_when(when), read_then(then)

    async def run(client: Client) -> RuleView:
        return await client.automation.add_rule(name, conditions, actions, enabled=enabled)

    made = call(Target(server, key), run)
    if as_json:
        return print_json(made)
    return typer.echo(f"Added the rule {clean(made.name)}. Try it with `octavo rules try {made.id}`.")


def read_when(given: Sequence[str]) -> dict[str, Any]:
    """Read conditions such as `kind=invoice` in the form of the API."""
    names = {"text", "kind", "sender", "source", "tag"}
    made: dict[str, Any] = {}
    for name, value in map(_pair, given):
        if name in names:
            made[name] = value
        elif name.startswith("field:"):
            made.setdefault("field", {})[name.removeprefix("field:")] = value
        elif name in {"amount_min", "amount_max", "currency"}:
            made.setdefault("amount", {})[name.removeprefix("amount_")] = _amount(name, value)
        else:
            raise BadInput(f"--when {name}: unknown condition. Use one of {', '.join(sorted(names))}, field:NAME.")
    return made


def _amount(name: str, value: str) -> str | float:
    try:
        return value if name == "currency" else float(value)
    except ValueError:
        raise BadInput(f"--when {name}: must be a number.") from None


def read_then(given: Sequence[str]) -> dict[str, Any]:
    """Read actions such as `tag=paid` in the form of the API."""
    made: dict[str, Any] = {}
    for name, value in map(_pair, given):
        if name == "tag":
            made.setdefault("tags", []).append(value)
        elif name in {"collection", "title"}:
            made[name] = value
        elif name.startswith("field:"):
            made.setdefault("fields", {})[name.removeprefix("field:")] = value
        else:
            raise BadInput(f"--then {name}: unknown action. Use tag, collection, title or field:NAME.")
    return made


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name.strip() or not value.strip():
        raise BadInput(f"{text}: use NAME=VALUE, for example tag=paid.")
    return name.strip(), value.strip()


@rules_app.command("ls")
def list_rules(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List rules in the order in which they run."""

    async def run(client: Client) -> list[RuleView]:
        return await client.automation.list_rules()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No rules yet. Add one with `octavo rules add NAME --when … --then …`.")
    console = open_console()
    whole = not console.is_terminal
    rows = [
        [_shown_id(one.id, whole=whole), str(one.position), clean(one.name), "enabled" if one.enabled else "disabled"]
        for one in found
    ]
    return print_on(console, make_table(console, ["ID", "ORDER", "NAME", "STATE"], rows))


@rules_app.command("try")
def try_rule(rule: RuleId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Show what a rule would change. Nothing is changed."""

    async def run(client: Client) -> RuleTrial:
        return await client.automation.try_rule(await _find_rule(client, rule))

    trial = call(Target(server, key), run)
    if as_json:
        return print_json(trial)
    for one in trial.items:
        changes = "; ".join(f"{change.name}: {change.before or '-'} → {change.after}" for change in one.changes)
        typer.echo(f"{one.document_id}  {clean(one.title)}  {clean(changes)}")
        for conflict in one.conflicts:
            typer.echo(f"    Conflict: {clean(conflict)}")
    return typer.echo(f"The rule would change {count_of(trial.total, 'document')}.")


@rules_app.command("apply")
def apply_rule(rule: RuleId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Apply a rule to all documents that match now. This can be undone for a week."""

    async def run(client: Client) -> RuleRun:
        return await client.automation.apply_rule(await _find_rule(client, rule))

    made = call(Target(server, key), run)
    return print_json(made) if as_json else typer.echo(f"Changed {count_of(made.documents, 'document')}.")


@rules_app.command("undo")
def undo_rule(rule: RuleId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Undo the last run of a rule."""

    async def run(client: Client) -> RuleRun:
        return await client.automation.undo_rule(await _find_rule(client, rule))

    undone = call(Target(server, key), run)
    return print_json(undone) if as_json else typer.echo(f"Restored {count_of(undone.documents, 'document')}.")


@rules_app.command("enable")
def enable_rule(rule: RuleId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Run a rule on each new document from now on."""
    _switch(rule, Target(server, key), enabled=True, as_json=as_json)


@rules_app.command("disable")
def disable_rule(rule: RuleId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Stop running a rule on new documents."""
    _switch(rule, Target(server, key), enabled=False, as_json=as_json)


def _switch(rule: str, target: Target, *, enabled: bool, as_json: bool) -> None:
    async def run(client: Client) -> RuleView:
        return await client.automation.edit_rule(await _find_rule(client, rule), enabled=enabled)

    edited = call(target, run)
    state = "enabled" if edited.enabled else "disabled"
    return print_json(edited) if as_json else typer.echo(f"{clean(edited.name)}: {state}.")


@rules_app.command("rm")
def remove_rule(rule: RuleId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Delete a rule. Documents that it changed stay as they are."""

    async def run(client: Client) -> UUID:
        wanted = await _find_rule(client, rule)
        await client.automation.delete_rule(wanted)
        return wanted

    removed = call(Target(server, key), run)
    return print_json({"id": str(removed)}) if as_json else typer.echo("Deleted.")


async def _find_rule(client: Client, rule: str) -> UUID:
    return find(rule, {one.id: one.name for one in await client.automation.list_rules()}, "rule")


def find(typed: str, known: Mapping[UUID, str], what: str) -> UUID:
    """Find a record by its name, its id or part of its id."""
    named = [ident for ident, name in known.items() if name.casefold() == typed.strip().casefold()]
    return named[0] if len(named) == 1 else find_among(typed, known, what, f"octavo {what}s ls")


def _shown_id(ident: UUID, *, whole: bool) -> str:
    return str(ident) if whole else short_id(ident)
