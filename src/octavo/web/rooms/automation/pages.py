"""The settings pages for custom fields and rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response

from octavo.core.errors import BadInput
from octavo.core.formatting import count_of, format_money
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.database import Connection, Row
from octavo.intake.sources import definitions as sources
from octavo.library import fields, rules
from octavo.library.collections import list_collections
from octavo.records.automation import FieldType, RuleRetention, RuleThen, RuleView, RuleWhen
from octavo.web.context.callers import WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.automation.api import FieldRequest, RuleRequest, check_actions
from octavo.web.shell.forms import Question, ask, read_form
from octavo.web.shell.frame import Frame, back_to
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False, prefix="/settings")
WRONG = 422
RUNS = 20
RuleAction = Literal["apply", "undo", "enable", "disable", "up", "delete"]
Text = Annotated[str, Form(max_length=4000)]
TYPES: Mapping[FieldType, str] = Texts(
    {
        "text": "Text",
        "number": "Number",
        "date": "Date",
        "money": "Money",
        "choice": "Choice",
        "link": "Link",
        "person": "Person",
    }
)
FIELD_WRONG = Texts(
    {"name": "Enter a name of at most 200 characters.", "choices": "Enter choices of at most 200 characters."}
)
RULE_WRONG = Texts(
    {
        "name": "Enter a name of at most 200 characters.",
        "then": "Check the actions. A retention period is a number of days.",
    }
)
# The labels of the values that a rule changes. All other names are names of custom fields.
VALUE_NAMES = Texts(
    {
        "tags": "Tags",
        "collection": "Collection",
        "title": "Title",
        "expires_on": "To the trash on",
        "deliver": "Send to",
    }
)


async def _save(services: Services, act: Callable[[Connection], Awaitable[object]]) -> str | None:
    """Make a change in one transaction. Returns an error message if the change was refused."""
    try:
        async with services.database.transaction() as connection:
            await act(connection)
    except BadInput as error:
        return error.line
    return None


# Fields -------------------------------------------------------------------------------------------------------------


@router.get("/fields")
async def fields_page(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    return await _show_fields(request, services, frame, said=said)


async def _show_fields(
    request: Request,
    services: Services,
    frame: Frame,
    status: int = 200,
    **values: Any,  # noqa: ANN401
) -> Response:
    async with services.database.connection() as connection:
        found = await fields.list_fields(connection, frame.caller.owner_id)
    return show(request, "fields", frame, status, fields=found, types=TYPES, **values)


@router.post("/fields")
async def add_field(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: SettingsFrame,
    name: Text = "",
    type: Text = "text",  # noqa: A002 - the name of the form field
    choices: Text = "",
) -> Response:
    given = {"name": name.strip(), "type": type, "choices": _split(choices) if type == "choice" else []}
    wanted, wrong = read_form(FieldRequest, given, FIELD_WRONG)
    if wanted is not None:

        async def act(connection: Connection) -> object:
            return await fields.add_field(connection, caller.owner_id, wanted.name, wanted.type, wanted.choices)

        if not (refused := await _save(services, act)):
            return back_to("/settings/fields?said=field")
        wrong = {"choices" if type == "choice" and not wanted.choices else "name": refused}
    chosen = {"name": name, "type": type, "choices": choices}
    return await _show_fields(request, services, frame, WRONG, wrong=wrong, chosen=chosen)


@router.get("/fields/{field}/delete")
async def ask_to_delete_field(
    request: Request, services: ServicesOf, caller: WriteCaller, frame: SettingsFrame, field: UUID
) -> Response:
    async with services.database.connection() as connection:
        found = await fields.show_field(connection, caller.owner_id, field)
    question = Question(
        title=_("Delete the field “%(name)s”?", name=found.name),
        text=_(
            "Its values on %(documents)s documents are deleted too. This cannot be undone.", documents=found.documents
        ),
        action=f"/settings/fields/{field}/delete",
        verb=_("Delete"),
        keep="/settings/fields",
    )
    return ask(request, question, frame)


@router.post("/fields/{field}/delete")
async def delete_field(services: ServicesOf, caller: WriteCaller, field: UUID) -> Response:
    async with services.database.transaction() as connection:
        await fields.delete_field(connection, caller.owner_id, field)
    return back_to("/settings/fields?said=field_deleted")


def _split(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


# Rules --------------------------------------------------------------------------------------------------------------


@router.get("/rules")
async def rules_page(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    return await _show_rules(request, services, frame, said=said)


async def _show_rules(
    request: Request,
    services: Services,
    frame: Frame,
    status: int = 200,
    **values: Any,  # noqa: ANN401
) -> Response:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        values |= {"rules": await rules.list_rules(connection, owner), "rule": None}
        recipients = await rules.list_recipients(connection, owner)
        values |= {"recipients": recipients, "describe": rule_describer(recipients)}
        values |= {"fields": await fields.list_fields(connection, owner)}
        values |= {"collections": await list_collections(connection, owner)}
        values |= {"sources": await sources.list_sources(connection, owner)}
    return show(request, "rules", frame, status, **values)


def rule_describer(recipients: Sequence[Row]) -> Callable[[RuleView], tuple[str, str]]:
    """Return a function that describes the conditions and the actions of a rule in two short texts."""
    names = {one["id"]: rules.recipient_label(one) for one in recipients}

    def describe(rule: RuleView) -> tuple[str, str]:
        return _describe_when(rule.when), _describe_then(rule.then, names)

    return describe


def _describe_when(when: RuleWhen) -> str:
    parts = [_("text contains “%(text)s”", text=when.text)] if when.text else []
    parts += [_("kind is “%(kind)s”", kind=when.kind)] if when.kind else []
    parts += [_("sender contains “%(sender)s”", sender=when.sender)] if when.sender else []
    parts += [_("source is “%(source)s”", source=when.source)] if when.source else []
    parts += [_("tag is “%(tag)s”", tag=when.tag)] if when.tag else []
    parts += [
        _("%(name)s is “%(value)s”", name=name, value=value) if value else _("%(name)s has a value", name=name)
        for name, value in (when.field or {}).items()
    ]
    if amount := when.amount:
        parts += [_("amount from %(min)s", min=format_money(amount.min, None))] if amount.min is not None else []
        parts += [_("amount up to %(max)s", max=format_money(amount.max, None))] if amount.max is not None else []
        parts += [_("currency is %(currency)s", currency=amount.currency)] if amount.currency else []
    return _(" and ").join(parts)


def _describe_then(then: RuleThen, recipients: Mapping[UUID, str]) -> str:
    parts = [_("add the tag “%(tag)s”", tag=tag) for tag in then.tags or ()]
    parts += [_("move to “%(collection)s”", collection=then.collection)] if then.collection else []
    parts += [_("set the title to “%(title)s”", title=then.title)] if then.title else []
    parts += [_("set %(name)s to “%(value)s”", name=name, value=value) for name, value in (then.fields or {}).items()]
    parts += [_("analyse with %(others)s", others=", ".join(then.analyse))] if then.analyse else []
    parts += [_("convert with %(convert)s", convert=then.convert)] if then.convert else []
    parts += [
        _("send to %(recipient)s", recipient=recipients.get(one) or _("a deleted recipient"))
        for one in then.deliver or ()
    ]
    parts += [_describe_retention(then.retention)] if then.retention else []
    return ", ".join(parts)


def _describe_retention(kept: RuleRetention) -> str:
    days = count_of(kept.days, "day")
    if kept.after == "date":
        return _("move to the trash %(days)s after its date", days=days)
    return _("move to the trash %(days)s after it was added", days=days)


@router.post("/rules")
async def add_rule(request: Request, services: ServicesOf, caller: WriteCaller, frame: SettingsFrame) -> Response:
    """Add a rule from the submitted form, ignoring empty fields. The rule is not enabled yet."""
    form = await request.form()
    chosen = {name: value.strip() for name, value in form.items() if isinstance(value, str) and value.strip()}
    wanted, wrong = read_form(RuleRequest, read_rule(chosen), RULE_WRONG)
    if wanted is not None:
        made: list[RuleView] = []

        async def act(connection: Connection) -> None:
            when, then = wanted.when.as_when(), wanted.then.as_then()
            await check_actions(connection, caller.owner_id, then)
            made.append(await rules.add_rule(connection, caller.owner_id, wanted.name, when, then, enabled=False))

        if not (refused := await _save(services, act)):
            return back_to(f"/settings/rules/{made[0].id}?said=rule")
        wrong = {"form": refused}
    return await _show_rules(request, services, frame, WRONG, wrong=wrong, chosen=chosen)


def read_rule(chosen: dict[str, str]) -> dict[str, Any]:
    """Convert the fields of the form to the format of the API."""
    named = ("text", "kind", "sender", "tag", "source")
    when: dict[str, Any] = {name: chosen[name] for name in named if name in chosen}
    amounts = {name: _number(chosen[f"amount_{name}"]) for name in ("min", "max") if f"amount_{name}" in chosen}
    when |= {"amount": amounts} if amounts else {}
    given = {name.removeprefix("then_"): value for name, value in chosen.items() if name.startswith("then_")}
    then: dict[str, Any] = {name: given[name] for name in ("collection", "title", "convert") if name in given}
    then |= {name: _split(given[name]) for name in ("tags", "analyse") if name in given}
    then |= {"fields": {given["field"]: given.get("value", "")}} if "field" in given else {}
    then |= {"deliver": [given["deliver"]]} if "deliver" in given else {}
    if days := given.get("days"):
        then["retention"] = {"days": int(days) if days.isascii() and days.isdecimal() else days}
        then["retention"] |= {"after": given["after"]} if "after" in given else {}
    return {"name": chosen.get("name", ""), "when": when, "then": then}


def _number(text: str) -> float | str:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text


@router.get("/rules/{rule}")
async def rule_page(
    request: Request, services: ServicesOf, frame: SettingsFrame, rule: UUID, said: str = ""
) -> Response:
    """Show one rule with the changes that it would make now, and the log of its runs."""
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        found = await rules.show_rule(connection, owner, rule)
        trial = await rules.try_rule(connection, owner, rule)
        runs = await rules.list_runs(connection, owner, rule, limit=RUNS)
        describe = rule_describer(await rules.list_recipients(connection, owner))
    more: dict[str, Any] = {"rule": found, "trial": trial, "runs": runs.items, "describe": describe}
    more |= {"value_names": VALUE_NAMES}
    return show(request, "rules", frame, said=said, **more)


@router.post("/rules/{rule}/{action}")
async def act_on_rule(
    services: ServicesOf,
    caller: WriteCaller,
    rule: UUID,
    action: RuleAction,
    run: Annotated[UUID | None, Form()] = None,
) -> Response:
    """Apply, undo, enable, disable, move or delete a rule."""
    owner = caller.owner_id
    if action == "apply":
        await rules.apply_rule(services.database, owner, rule)
    elif action == "undo":
        await rules.undo_rule(services.database, owner, rule, run)
    else:
        await _change_rule(services, owner, rule, action)
    place = "/settings/rules" if action in {"delete", "up"} else f"/settings/rules/{rule}"
    return back_to(f"{place}?said=rule_{action}")


async def _change_rule(services: Services, owner: UUID, rule: UUID, action: RuleAction) -> None:
    async with services.database.transaction() as connection:
        if action in {"enable", "disable"}:
            await rules.edit_rule(connection, owner, rule, enabled=action == "enable")
        elif action == "up":
            order = [one.id for one in await rules.list_rules(connection, owner)]
            place = max(order.index(rule), 1) if rule in order else 1
            await rules.edit_rule(connection, owner, rule, position=place)
        else:
            await rules.delete_rule(connection, owner, rule)
