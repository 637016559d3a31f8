"""`octavo fields` and `octavo rules`: custom fields of documents, and rules that change documents automatically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Key, Server, find_among
from octavo.cli.output import clean, local_time, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.automation import FieldView, RuleRun, RuleTrial, RuleView

fields_app = typer.Typer(help="Define custom fields of documents.", no_args_is_help=True)
rules_app = typer.Typer(help="Use rules to tag, file, send and expire documents.", no_args_is_help=True)
MOST_RUNS = 500
ACTIONS = "tag, collection, title, field:NAME, analyse, convert, deliver and retention"
FieldId = Annotated[str, typer.Argument(metavar="FIELD", help="Id of the field (or part of it), or its full name.")]
RuleId = Annotated[str, typer.Argument(metavar="RULE", help="Id of the rule (or part of it), or its full name.")]


# Fields -------------------------------------------------------------------------------------------------------------


@fields_app.command("add")
def add_field(
    name: Annotated[str, typer.Argument(help="Name of the field, such as Project.")],
    type_: Annotated[str, typer.Option("--type", help="text, number, date, money, choice, link or person.")] = "text",
    choice: Annotated[
        list[str] | None, typer.Option(help="For --type choice: an allowed value. Can be repeated.")
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
        [shown_id(one.id, whole=whole), clean(one.name), one.type, str(one.documents), clean(", ".join(one.choices))]
        for one in found
    ]
    return print_on(console, make_table(console, ["ID", "NAME", "TYPE", "DOCUMENTS", "CHOICES"], rows))


@fields_app.command("edit")
def edit_field(
    field: FieldId,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    choice: Annotated[
        list[str] | None,
        typer.Option(help="For type choice: an allowed value. Can be repeated. Replaces all existing values."),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Rename a custom field, or replace its choices. Values that are no longer allowed are kept."""
    changes: dict[str, object] = {"name": name} if name is not None else {}
    changes |= {"choices": choice} if choice else {}
    if not changes:
        raise BadInput("Nothing to change. Use --name or --choice.")

    async def run(client: Client) -> FieldView:
        known = {one.id: one.name for one in await client.automation.list_fields()}
        return await client.automation.edit_field(find(field, known, "field"), changes)

    edited = call(Target(server, key), run)
    return print_json(edited) if as_json else typer.echo(f"Changed the field {clean(edited.name)}.")


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
        typer.Option(
            metavar="NAME=VALUE",
            help="Action: tag, collection, title, field:NAME, analyse (a prompt, or all), convert (a mapping), deliver "
            "(the id or address of a recipient), or retention (365: move the document to the trash 365 days "
            "after it was added; 365:date: after its date). Can be repeated.",
        ),
    ],
    enabled: Annotated[bool, typer.Option("--enabled", help="Run the rule on each new document from now on.")] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Add a rule. Try it with `octavo rules try` before you enable it."""
    conditions, actions = read_when(when), read_then(then)

    async def run(client: Client) -> RuleView:
        return await client.automation.add_rule(
            name, conditions, await _with_recipients(client, actions), enabled=enabled
        )

    made = call(Target(server, key), run)
    if as_json:
        return print_json(made)
    return typer.echo(f"Added the rule {clean(made.name)}. Try it with `octavo rules try {made.id}`.")


async def _with_recipients(client: Client, actions: dict[str, Any]) -> dict[str, Any]:
    """Replace the addresses of recipients with their ids."""
    if "deliver" not in actions:
        return actions
    known = {one.id: one.address for one in await client.list_webhooks() if not one.personal}
    return actions | {"deliver": [str(find(one, known, "webhook")) for one in actions["deliver"]]}


@rules_app.command("edit")
def edit_rule(
    rule: RuleId,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    when: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Condition, as for `octavo rules add`. Replaces all conditions."),
    ] = None,
    then: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Action, as for `octavo rules add`. Replaces all actions."),
    ] = None,
    position: Annotated[int | None, typer.Option(min=1, help="Position among the rules; 1 runs first.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Change the name, the conditions, the actions or the position of a rule."""
    changes: dict[str, Any] = {"name": name, "position": position}
    changes |= {"when": read_when(when) if when else None, "then": read_then(then) if then else None}
    given = {one: value for one, value in changes.items() if value is not None}
    if not given:
        raise BadInput("Nothing to change. Use --name, --when, --then or --position.")

    async def run(client: Client) -> RuleView:
        if "then" in given:
            given["then"] = await _with_recipients(client, given["then"])
        return await client.automation.edit_rule(await _find_rule(client, rule), **given)

    edited = call(Target(server, key), run)
    return print_json(edited) if as_json else typer.echo(f"Changed the rule {clean(edited.name)}.")


@rules_app.command("log")
def list_runs(
    rule: RuleId,
    limit: Annotated[int, typer.Option(min=1, max=MOST_RUNS, help="Maximum number of runs.")] = 20,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List the runs of a rule, newest first: what they changed, conflicts, and whether they were undone."""

    async def run(client: Client) -> list[RuleRun]:
        return (await client.automation.list_runs(await _find_rule(client, rule), limit=limit)).items

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No runs yet.")
    for one in found:
        kind = "new document" if one.automatic else "applied"
        undone = ", undone" if one.undone_at else ""
        sent = f", {count_of(one.deliveries, 'message')} sent" if one.deliveries else ""
        typer.echo(f"{local_time(one.created_at)}  {kind}: {count_of(one.documents, 'document')}{sent}{undone}")
        for conflict in one.conflicts:
            typer.echo(f"    {clean(conflict)}")
    return None


def read_when(given: Sequence[str]) -> dict[str, Any]:
    """Convert conditions such as `kind=invoice` to the format of the API."""
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
    """Convert actions such as `tag=paid` to the format of the API."""
    made: dict[str, Any] = {}
    for name, value in map(_pair, given):
        if name == "tag":
            made.setdefault("tags", []).append(value)
        elif name in {"analyse", "deliver"}:
            made.setdefault(name, []).append(value)
        elif name == "retention":
            made["retention"] = _retention(value)
        elif name in {"collection", "title", "convert"}:
            made[name] = value
        elif name.startswith("field:"):
            made.setdefault("fields", {})[name.removeprefix("field:")] = value
        else:
            raise BadInput(f"--then {name}: unknown action. Use one of {ACTIONS}.")
    return made


def _retention(value: str) -> dict[str, Any]:
    days, _, after = value.partition(":")
    if not (days.isascii() and days.isdecimal()) or after not in {"", "added", "date"}:
        raise BadInput("--then retention: use a number of days, such as 365 or 365:date.")
    return {"days": int(days), "after": after or "added"}


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
        [shown_id(one.id, whole=whole), str(one.position), clean(one.name), "enabled" if one.enabled else "disabled"]
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
    for problem in trial.problems:
        typer.echo(clean(problem))
    for one in trial.items:
        changes = "; ".join(f"{change.name}: {change.before or '-'} → {change.after}" for change in one.changes)
        typer.echo(f"{one.document_id}  {clean(one.title)}  {clean(changes)}")
        for conflict in one.conflicts:
            typer.echo(f"    Conflict: {clean(conflict)}")
    return typer.echo(f"The rule would change {count_of(trial.total, 'document')}.")


@rules_app.command("apply")
def apply_rule(rule: RuleId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Apply a rule to all documents that match now. Changes can be undone for a week, but sent messages cannot."""

    async def run(client: Client) -> RuleRun:
        return await client.automation.apply_rule(await _find_rule(client, rule))

    made = call(Target(server, key), run)
    sent = f" Sent {count_of(made.deliveries, 'message')}, which cannot be undone." if made.deliveries else ""
    return print_json(made) if as_json else typer.echo(f"Changed {count_of(made.documents, 'document')}.{sent}")


@rules_app.command("undo")
def undo_rule(rule: RuleId, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Undo the latest run of a rule. Sent messages cannot be undone.

    Runs that changed nothing or were already undone are ignored.
    """

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
    """Delete a rule. The changes that it made to documents are kept."""

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


def shown_id(ident: UUID, *, whole: bool) -> str:
    return str(ident) if whole else short_id(ident)
