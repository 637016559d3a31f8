"""The API for custom fields and rules."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from octavo.analyse.prompts import find_prompts
from octavo.core.http import Page
from octavo.database import Connection
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.library import fields, rules
from octavo.library.fields import MOST_CHOICES, MOST_FIELDS, MOST_VALUE
from octavo.records.automation import (
    AmountRange,
    FieldType,
    FieldView,
    RetentionStart,
    RuleRetention,
    RuleRun,
    RuleThen,
    RuleTrial,
    RuleView,
    RuleWhen,
)
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import WHOLE, Cursor, IfMatch, Limit, check_match, etag_of, lock_edit, problems

router = APIRouter(prefix="/api/v1")
Plain = r"^[^\x00-\x1f\x7f]*$"
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=Plain)]
Value = Annotated[str, Field(min_length=1, max_length=MOST_VALUE, pattern=Plain)]
MOST_AMOUNT = 10**15
Amount = Annotated[float, Field(ge=-MOST_AMOUNT, le=MOST_AMOUNT, strict=True)]
MOST_DAYS = 100_000
MOST_RECIPIENTS = 5
Choices = Annotated[list[Label], Field(max_length=MOST_CHOICES)]


# Fields -------------------------------------------------------------------------------------------------------------


class FieldRequest(BaseModel):
    """A custom field. `choices` is required if the type is `choice`."""

    model_config = ConfigDict(extra="forbid")

    name: Label
    type: FieldType
    choices: Choices = []


class FieldEdit(BaseModel):
    """Changes to a custom field. Its type cannot be changed."""

    model_config = ConfigDict(extra="forbid")

    name: Label | None = None
    choices: Choices | None = None


@router.get("/fields", tags=["fields"], responses=problems(401))
async def list_fields(services: ServicesOf, caller: ReadCaller) -> Page[FieldView]:
    """List your custom fields by name."""
    async with services.database.connection() as connection:
        return Page(await fields.list_fields(connection, caller.owner_id), None)


@router.post("/fields", tags=["fields"], status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_field(
    services: ServicesOf, caller: WriteCaller, wanted: FieldRequest, idempotency: IdempotencyOf
) -> FieldView:
    """Add a custom field. Set its value with `PATCH /documents/{id}`."""
    async with services.database.transaction() as connection:
        added = await fields.add_field(connection, caller.owner_id, wanted.name, wanted.type, wanted.choices)
        return await idempotency.keep(connection, added)


@router.patch("/fields/{field}", tags=["fields"], responses=problems(400, 401, 403, 404, 409, 422))
async def edit_field(services: ServicesOf, caller: WriteCaller, field: UUID, wanted: FieldEdit) -> FieldView:
    """Rename a custom field, or replace its choices."""
    async with services.database.transaction() as connection:
        return await fields.edit_field(connection, caller.owner_id, field, name=wanted.name, choices=wanted.choices)


@router.delete("/fields/{field}", tags=["fields"], status_code=204, responses=problems(401, 403, 404, 422))
async def delete_field(services: ServicesOf, caller: WriteCaller, field: UUID) -> None:
    """Delete a custom field and its values on all documents."""
    async with services.database.transaction() as connection:
        await fields.delete_field(connection, caller.owner_id, field)


# Rules --------------------------------------------------------------------------------------------------------------


class AmountCondition(BaseModel):
    """A range of amounts. Without a currency, amounts in all currencies match."""

    model_config = ConfigDict(extra="forbid")

    min: Amount | None = None
    max: Amount | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Za-z]{3}$")] | None = None


class WhenRequest(BaseModel):
    """The conditions of a rule. A document must match all of them; at least one is required."""

    model_config = ConfigDict(extra="forbid")

    text: Value | None = None
    kind: Label | None = None
    sender: Label | None = None
    source: Label | None = None
    tag: Label | None = None
    field: Annotated[dict[Label, Value | None], Field(max_length=MOST_FIELDS)] | None = None
    amount: AmountCondition | None = None

    def as_when(self) -> RuleWhen:
        amount = AmountRange(**self.amount.model_dump()) if self.amount and self.amount.model_fields_set else None
        return RuleWhen(self.text, self.kind, self.sender, self.source, self.tag, self.field, amount)


class RetentionRequest(BaseModel):
    """A document is moved to the trash `days` days after it was added.

    If `after` is `date`, the days are counted from the date of the document instead.
    """

    model_config = ConfigDict(extra="forbid")

    days: Annotated[int, Field(ge=1, le=MOST_DAYS), WHOLE]
    after: RetentionStart = "added"


class ThenRequest(BaseModel):
    """The actions of a rule; at least one is required. `tags` are added to the tags of the document.

    `deliver` contains ids of recipients. A rule sends a document to a recipient only once, and this cannot be undone.
    """

    model_config = ConfigDict(extra="forbid")

    tags: Annotated[list[Label], Field(max_length=20)] | None = None
    collection: Label | None = None
    fields: Annotated[dict[Label, Value], Field(max_length=MOST_FIELDS)] | None = None
    title: Value | None = None
    analyse: Annotated[list[Label], Field(max_length=20)] | None = None
    convert: Label | None = None
    deliver: Annotated[list[UUID], Field(max_length=MOST_RECIPIENTS)] | None = None
    retention: RetentionRequest | None = None

    def as_then(self) -> RuleThen:
        given: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        given["retention"] = RuleRetention(**self.retention.model_dump()) if self.retention else None
        return RuleThen(**given)


async def check_actions(connection: Connection, owner: UUID, then: RuleThen) -> None:
    """Raise an error if a prompt, the mapping or a recipient of a rule does not exist."""
    if then.analyse:
        await find_prompts(connection, owner, then.analyse)
    if then.convert:
        from octavo.convert.mappings.stored_mappings import find_mapping

        await find_mapping(connection, owner, then.convert)
    await rules.check_recipients(connection, owner, then.deliver or ())


class RuleRequest(BaseModel):
    """A rule. It runs on new documents only if it is enabled."""

    model_config = ConfigDict(extra="forbid")

    name: Label
    when: WhenRequest
    then: ThenRequest
    enabled: StrictBool = False


class RuleEdit(BaseModel):
    """Changes to a rule. Fields that are not sent stay unchanged. The rule with `position` 1 runs first."""

    model_config = ConfigDict(extra="forbid")

    name: Label | None = None
    when: WhenRequest | None = None
    then: ThenRequest | None = None
    enabled: StrictBool | None = None
    position: Annotated[int, Field(ge=1, le=rules.MOST_RULES), WHOLE] | None = None


class UndoRequest(BaseModel):
    """The run to undo. The default is the latest run that changed something and has not been undone."""

    model_config = ConfigDict(extra="forbid")

    run_id: UUID | None = None


@router.get("/rules", tags=["rules"], responses=problems(401))
async def list_rules(services: ServicesOf, caller: ReadCaller) -> Page[RuleView]:
    """List your rules in the order in which they run."""
    async with services.database.connection() as connection:
        return Page(await rules.list_rules(connection, caller.owner_id), None)


@router.post("/rules", tags=["rules"], status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_rule(
    services: ServicesOf, caller: WriteCaller, wanted: RuleRequest, idempotency: IdempotencyOf
) -> RuleView:
    """Add a rule that runs after all others. Try it before you enable it."""
    when, then = wanted.when.as_when(), wanted.then.as_then()
    async with services.database.transaction() as connection:
        await check_actions(connection, caller.owner_id, then)
        added = await rules.add_rule(connection, caller.owner_id, wanted.name, when, then, enabled=wanted.enabled)
        return await idempotency.keep(connection, added)


@router.get("/rules/{rule}", tags=["rules"], responses=problems(401, 404, 422))
async def show_rule(services: ServicesOf, caller: ReadCaller, rule: UUID, response: Response) -> RuleView:
    """Return one rule."""
    async with services.database.connection() as connection:
        found = await rules.show_rule(connection, caller.owner_id, rule)
    response.headers["etag"] = rule_etag(found)
    return found


def rule_etag(found: RuleView) -> str:
    return etag_of(found.name, found.position, found.when, found.then, found.enabled)


@router.patch("/rules/{rule}", tags=["rules"], responses=problems(400, 401, 403, 404, 409, 422))
async def edit_rule(
    services: ServicesOf,
    caller: WriteCaller,
    rule: UUID,
    wanted: RuleEdit,
    response: Response,
    if_match: IfMatch = None,
) -> RuleView:
    """Change, move, enable or disable a rule. The changes that it has already made to documents are kept."""
    async with services.database.transaction() as connection:
        if if_match is not None:
            await lock_edit(connection, if_match, rule)
            check_match(if_match, rule_etag(await rules.show_rule(connection, caller.owner_id, rule)))
        if wanted.then:
            await check_actions(connection, caller.owner_id, wanted.then.as_then())
        edited = await rules.edit_rule(
            connection,
            caller.owner_id,
            rule,
            name=wanted.name,
            when=wanted.when.as_when() if wanted.when else None,
            then=wanted.then.as_then() if wanted.then else None,
            enabled=wanted.enabled,
            position=wanted.position,
        )
    response.headers["etag"] = rule_etag(edited)
    return edited


@router.delete("/rules/{rule}", tags=["rules"], status_code=204, responses=problems(401, 403, 404, 422))
async def delete_rule(services: ServicesOf, caller: WriteCaller, rule: UUID) -> None:
    """Delete a rule and its log. The changes that it made to documents are kept."""
    async with services.database.transaction() as connection:
        await rules.delete_rule(connection, caller.owner_id, rule)


@router.post("/rules/{rule}/try", tags=["rules"], responses=problems(401, 404, 422))
async def try_rule(services: ServicesOf, caller: ReadCaller, rule: UUID) -> RuleTrial:
    """Return the documents that a rule would change or send, and the changes. Nothing is changed or sent."""
    async with services.database.connection() as connection:
        return await rules.try_rule(connection, caller.owner_id, rule)


@router.post("/rules/{rule}/apply", tags=["rules"], responses=problems(400, 401, 403, 404, 422))
async def apply_rule(services: ServicesOf, caller: WriteCaller, rule: UUID, idempotency: IdempotencyOf) -> RuleRun:
    """Apply a rule to all documents that match now. Changes can be undone for a week, but sent messages cannot."""
    return await rules.apply_rule(services.database, caller.owner_id, rule, on_done=idempotency.keep)


@router.post("/rules/{rule}/undo", tags=["rules"], responses=problems(400, 401, 403, 404, 422))
async def undo_rule(
    services: ServicesOf,
    caller: WriteCaller,
    rule: UUID,
    idempotency: IdempotencyOf,
    wanted: UndoRequest | None = None,
) -> RuleRun:
    """Undo a run of a rule: restore the earlier values of the documents. Sent messages cannot be undone.

    If `run_id` is null, the latest run is undone, ignoring runs that changed nothing or were already undone.
    """
    run = wanted.run_id if wanted else None
    return await rules.undo_rule(services.database, caller.owner_id, rule, run, on_done=idempotency.keep)


@router.get("/rules/{rule}/runs", tags=["rules"], responses=problems(401, 404, 422))
async def list_runs(
    services: ServicesOf, caller: ReadCaller, rule: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[RuleRun]:
    """List the runs of a rule, newest first."""
    async with services.database.connection() as connection:
        return await rules.list_runs(connection, caller.owner_id, rule, cursor=cursor, limit=limit)
