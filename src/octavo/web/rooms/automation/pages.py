"""The settings pages for custom fields and rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response

from octavo.core.errors import BadInput
from octavo.core.formatting import count_of, format_money, read_decimal, write_decimal
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.database import Connection, Row
from octavo.intake.sources import definitions as sources
from octavo.library import fields, rules
from octavo.library.collections import list_collections
from octavo.records.automation import FieldType, RuleRetention, RuleThen, RuleView, RuleWhen
from octavo.web.context.callers import WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.automation.api import FieldEdit, FieldRequest, RuleRequest, check_actions
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
        "then": "Check the actions. Enter the retention period as a number of days.",
    }
)
# The labels of the values that a rule changes. All other names are names of custom fields.
VALUE_NAMES = Texts(
    {
        "tags": "Tags",
        "collection": "Collection",
        "title": "Title",
        "expires_on": "Moves to the trash on",
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


@router.get("/fields/{field}/edit")
async def field_page(
    request: Request, services: ServicesOf, caller: WriteCaller, frame: SettingsFrame, field: UUID
) -> Response:
    """Show the form that renames a field, or replaces its choices."""
    async with services.database.connection() as connection:
        found = await fields.show_field(connection, caller.owner_id, field)
    chosen = {"name": found.name, "choices": ", ".join(found.choices)}
    return await _show_fields(request, services, frame, edited=found, chosen=chosen)


@router.post("/fields/{field}/edit")
async def edit_field(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: SettingsFrame,
    field: UUID,
    name: Text = "",
    choices: Text = "",
) -> Response:
    async with services.database.connection() as connection:
        found = await fields.show_field(connection, caller.owner_id, field)
    given: dict[str, Any] = {"name": name.strip()}
    given |= {"choices": _split(choices)} if found.type == "choice" else {}
    wanted, wrong = read_form(FieldEdit, given, FIELD_WRONG)
    if wanted is not None:

        async def act(connection: Connection) -> object:
            owner, choices = caller.owner_id, wanted.choices
            return await fields.edit_field(connection, owner, field, name=wanted.name, choices=choices)

        if not (refused := await _save(services, act)):
            return back_to("/settings/fields?said=field_edit")
        wrong = {"choices" if found.type == "choice" and found.name == wanted.name else "name": refused}
    chosen = {"name": name, "choices": choices}
    return await _show_fields(request, services, frame, WRONG, wrong=wrong, chosen=chosen, edited=found)


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


@dataclass(frozen=True, slots=True)
class RuleForm:
    """The submitted or stored values of the form for a rule.

    `values` are the inputs that are not empty. `when_fields` and `then_fields` are the custom fields of the conditions
    and of the actions: the name and the value from each row of the form.
    """

    values: Mapping[str, str]
    when_fields: Sequence[tuple[str, str]] = ()
    then_fields: Sequence[tuple[str, str]] = ()
    recipients: Sequence[str] = ()

    @classmethod
    async def of_request(cls, request: Request) -> RuleForm:
        form = await request.form()
        given = [(name, value.strip()) for name, value in form.multi_items() if isinstance(value, str)]

        def all_of(wanted: str) -> list[str]:
            return [value for name, value in given if name == wanted]

        def rows(side: str) -> list[tuple[str, str]]:
            pairs = zip(all_of(f"{side}_field"), all_of(f"{side}_value"), strict=False)
            return [(name, value) for name, value in pairs if name]

        values = {name: value for name, value in given if value}
        return cls(values, rows("when"), rows("then"), [one for one in all_of("then_deliver") if one])

    @classmethod
    def of_rule(cls, rule: RuleView) -> RuleForm:
        when, then, amount = rule.when, rule.then, rule.when.amount
        given: dict[str, Any] = {name: getattr(when, name) for name in CONDITIONS} | {"name": rule.name}
        if amount:
            given |= {"amount_min": amount.min, "amount_max": amount.max, "currency": amount.currency}
        given |= {f"then_{name}": getattr(then, name) for name in ACTIONS}
        given |= {f"then_{name}": ", ".join(getattr(then, name) or ()) for name in LISTED}
        if kept := then.retention:
            given |= {"then_days": kept.days, "then_after": kept.after}
        values = {name: _as_text(value) for name, value in given.items() if value not in {None, ""}}
        when_fields = [(name, value or "") for name, value in (when.field or {}).items()]
        return cls(values, when_fields, [*(then.fields or {}).items()], [str(one) for one in then.deliver or ()])

    def as_request(self) -> dict[str, Any]:
        """Convert the form to the format of the API."""
        given = self.values
        when: dict[str, Any] = {name: given[name] for name in CONDITIONS if name in given}
        amounts: dict[str, Any] = {
            name: _number(given[f"amount_{name}"]) for name in ("min", "max") if f"amount_{name}" in given
        }
        amounts |= {"currency": given["currency"]} if "currency" in given else {}
        when |= {"amount": amounts} if amounts else {}
        when |= {"field": {name: value or None for name, value in self.when_fields}} if self.when_fields else {}
        then: dict[str, Any] = {name: given[f"then_{name}"] for name in ACTIONS if f"then_{name}" in given}
        then |= {name: _split(given[f"then_{name}"]) for name in LISTED if f"then_{name}" in given}
        then |= {"fields": dict(self.then_fields)} if self.then_fields else {}
        then |= {"deliver": list(self.recipients)} if self.recipients else {}
        if days := given.get("then_days"):
            then["retention"] = {"days": int(days) if days.isascii() and days.isdecimal() else days}
            then["retention"] |= {"after": given["then_after"]} if "then_after" in given else {}
        return {"name": given.get("name", ""), "when": when, "then": then}


# The inputs of the form whose names and values are those of the API, and the ones with values separated by commas.
CONDITIONS = ("text", "kind", "sender", "tag", "source")
ACTIONS = ("collection", "title", "convert")
LISTED = ("tags", "analyse")


def _as_text(value: object) -> str:
    return write_decimal(value) if isinstance(value, float) else str(value)


@router.post("/rules")
async def add_rule(request: Request, services: ServicesOf, caller: WriteCaller, frame: SettingsFrame) -> Response:
    """Add a rule from the submitted form, ignoring empty fields. The rule is not enabled yet."""
    return await _save_rule(request, services, caller.owner_id, frame, None)


@router.get("/rules/{rule}/edit")
async def edit_rule_page(
    request: Request, services: ServicesOf, caller: WriteCaller, frame: SettingsFrame, rule: UUID
) -> Response:
    async with services.database.connection() as connection:
        found = await rules.show_rule(connection, caller.owner_id, rule)
    return await _show_rules(request, services, frame, edited=found, chosen=RuleForm.of_rule(found))


@router.post("/rules/{rule}/edit")
async def edit_rule(
    request: Request, services: ServicesOf, caller: WriteCaller, frame: SettingsFrame, rule: UUID
) -> Response:
    """Replace the name, the conditions and the actions of a rule with those from the form."""
    async with services.database.connection() as connection:
        found = await rules.show_rule(connection, caller.owner_id, rule)
    return await _save_rule(request, services, caller.owner_id, frame, found)


async def _save_rule(
    request: Request, services: Services, owner: UUID, frame: Frame, edited: RuleView | None
) -> Response:
    chosen = await RuleForm.of_request(request)
    wanted, wrong = read_form(RuleRequest, chosen.as_request(), RULE_WRONG)
    if wanted is not None:
        saved: list[RuleView] = []

        async def act(connection: Connection) -> None:
            when, then = wanted.when.as_when(), wanted.then.as_then()
            await check_actions(connection, owner, then)
            if edited:
                kept = await rules.edit_rule(connection, owner, edited.id, name=wanted.name, when=when, then=then)
            else:
                kept = await rules.add_rule(connection, owner, wanted.name, when, then, enabled=False)
            saved.append(kept)

        if not (refused := await _save(services, act)):
            return back_to(f"/settings/rules/{saved[0].id}?said={'rule_edit' if edited else 'rule'}")
        wrong = {"form": refused}
    return await _show_rules(request, services, frame, WRONG, wrong=wrong, chosen=chosen, edited=edited)


def _number(text: str) -> float | str:
    number = read_decimal(text)
    return text if number is None else float(number)


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
