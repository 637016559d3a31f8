"""The API for sources of documents, custom fields, and rules."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from octavo.core.pagination import Page
from octavo.intake import sources
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.library import fields, rules
from octavo.library.fields import MOST_CHOICES, MOST_FIELDS, MOST_VALUE
from octavo.records.automation import (
    AfterAdding,
    AmountRange,
    FailedFile,
    FieldType,
    FieldView,
    RuleRun,
    RuleThen,
    RuleTrial,
    RuleView,
    RuleWhen,
    SourceKind,
    SourceOptions,
    SourceView,
    Subfolders,
    WhenChanged,
)
from octavo.web.context.callers import AdminCaller, ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import WHOLE, Cursor, Limit, problems

router = APIRouter(prefix="/api/v1")
Plain = r"^[^\x00-\x1f\x7f]*$"
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=Plain)]
Value = Annotated[str, Field(min_length=1, max_length=MOST_VALUE, pattern=Plain)]
Seconds = Annotated[int, Field(ge=sources.LEAST_SECONDS, le=sources.MOST_SECONDS), WHOLE]
MOST_AMOUNT = 10**15
Amount = Annotated[float, Field(ge=-MOST_AMOUNT, le=MOST_AMOUNT, strict=True)]
Choices = Annotated[list[Label], Field(max_length=MOST_CHOICES)]


# Sources ------------------------------------------------------------------------------------------------------------


class OptionsRequest(BaseModel):
    """What a watched folder does with sub-folders, with files after they were added, and with changed files."""

    model_config = ConfigDict(extra="forbid")

    subfolders: Subfolders = "plain"
    after: AfterAdding = "keep"
    changed: WhenChanged = "version"

    def given(self) -> dict[str, Any]:
        return self.model_dump(include=self.model_fields_set)


class SourceRequest(BaseModel):
    """A folder on the server to watch."""

    model_config = ConfigDict(extra="forbid")

    kind: SourceKind
    path: Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^/[^\x00-\x1f\x7f]*$")]
    name: Label | None = None
    options: OptionsRequest = OptionsRequest()
    every_seconds: Seconds = sources.DEFAULT_SECONDS


class SourceEdit(BaseModel):
    """Changes to a source. Fields that are not sent stay unchanged."""

    model_config = ConfigDict(extra="forbid")

    name: Label | None = None
    options: OptionsRequest | None = None
    every_seconds: Seconds | None = None
    paused: StrictBool | None = None


@router.get("/sources", tags=["sources"], responses=problems(401))
async def list_sources(services: ServicesOf, caller: ReadCaller) -> Page[SourceView]:
    """List your sources of documents, oldest first."""
    async with services.database.connection() as connection:
        return Page(await sources.list_sources(connection, caller.owner_id), None)


@router.post("/sources", tags=["sources"], status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_source(
    services: ServicesOf, caller: AdminCaller, wanted: SourceRequest, idempotency: IdempotencyOf
) -> SourceView:
    """Watch a folder on the server. Requires an administrator, because it reads files of the server."""
    async with services.database.transaction() as connection:
        added = await sources.add_folder(
            connection,
            services.settings,
            caller.owner_id,
            wanted.path,
            name=wanted.name,
            options=SourceOptions(**wanted.options.model_dump()),
            every_seconds=wanted.every_seconds,
        )
        return await idempotency.keep(connection, added)


@router.get("/sources/{source}", tags=["sources"], responses=problems(401, 404, 422))
async def show_source(services: ServicesOf, caller: ReadCaller, source: UUID) -> SourceView:
    """Return one source."""
    async with services.database.connection() as connection:
        return await sources.show_source(connection, caller.owner_id, source)


@router.patch("/sources/{source}", tags=["sources"], responses=problems(400, 401, 403, 404, 409, 422))
async def edit_source(services: ServicesOf, caller: AdminCaller, source: UUID, wanted: SourceEdit) -> SourceView:
    """Change the name, the options or the interval of a source, or pause it. Requires an administrator."""
    async with services.database.transaction() as connection:
        return await sources.edit_source(
            connection,
            caller.owner_id,
            source,
            name=wanted.name,
            options=wanted.options.given() if wanted.options else None,
            every_seconds=wanted.every_seconds,
            paused=wanted.paused,
        )


@router.delete("/sources/{source}", tags=["sources"], status_code=204, responses=problems(401, 403, 404, 422))
async def delete_source(services: ServicesOf, caller: AdminCaller, source: UUID) -> None:
    """Stop watching a source. Its documents and its files stay. Requires an administrator."""
    async with services.database.transaction() as connection:
        await sources.delete_source(connection, caller.owner_id, source)


@router.get("/sources/{source}/failed", tags=["sources"], responses=problems(401, 404, 422))
async def list_failed_files(services: ServicesOf, caller: ReadCaller, source: UUID) -> Page[FailedFile]:
    """List the files of a source that could not be added, newest first, and the reasons."""
    async with services.database.connection() as connection:
        return Page(await sources.list_failed(connection, caller.owner_id, source), None)


@router.post("/sources/{source}/run", tags=["sources"], responses=problems(401, 403, 404, 422))
async def run_source(services: ServicesOf, caller: WriteCaller, source: UUID) -> SourceView:
    """Look at a source now. Files that could not be added are tried again."""
    async with services.database.transaction() as connection:
        return await sources.run_source(connection, caller.owner_id, source)


@router.post("/sources/{source}/pause", tags=["sources"], responses=problems(401, 403, 404, 422))
async def pause_source(services: ServicesOf, caller: WriteCaller, source: UUID) -> SourceView:
    """Pause a source. Files that arrive meanwhile are added when it is resumed."""
    async with services.database.transaction() as connection:
        return await sources.edit_source(connection, caller.owner_id, source, paused=True)


@router.post("/sources/{source}/resume", tags=["sources"], responses=problems(401, 403, 404, 422))
async def resume_source(services: ServicesOf, caller: WriteCaller, source: UUID) -> SourceView:
    """Resume a paused source."""
    async with services.database.transaction() as connection:
        return await sources.edit_source(connection, caller.owner_id, source, paused=False)


# Fields -------------------------------------------------------------------------------------------------------------


class FieldRequest(BaseModel):
    """A custom field. `choices` are required for the type `choice`."""

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


class ThenRequest(BaseModel):
    """The actions of a rule; at least one is required. `tags` are added to the tags of the document."""

    model_config = ConfigDict(extra="forbid")

    tags: Annotated[list[Label], Field(max_length=20)] | None = None
    collection: Label | None = None
    fields: Annotated[dict[Label, Value], Field(max_length=MOST_FIELDS)] | None = None
    title: Value | None = None

    def as_then(self) -> RuleThen:
        return RuleThen(self.tags, self.collection, self.fields, self.title)


class RuleRequest(BaseModel):
    """A rule. It runs on new documents only if it is enabled."""

    model_config = ConfigDict(extra="forbid")

    name: Label
    when: WhenRequest
    then: ThenRequest
    enabled: StrictBool = False


class RuleEdit(BaseModel):
    """Changes to a rule. Fields that are not sent stay unchanged. `position` 1 is the rule that runs first."""

    model_config = ConfigDict(extra="forbid")

    name: Label | None = None
    when: WhenRequest | None = None
    then: ThenRequest | None = None
    enabled: StrictBool | None = None
    position: Annotated[int, Field(ge=1, le=rules.MOST_RULES), WHOLE] | None = None


class UndoRequest(BaseModel):
    """The run to undo; without it, the last run that is not undone."""

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
    """Add a rule after the others. Try it before you enable it."""
    when, then = wanted.when.as_when(), wanted.then.as_then()
    async with services.database.transaction() as connection:
        added = await rules.add_rule(connection, caller.owner_id, wanted.name, when, then, enabled=wanted.enabled)
        return await idempotency.keep(connection, added)


@router.get("/rules/{rule}", tags=["rules"], responses=problems(401, 404, 422))
async def show_rule(services: ServicesOf, caller: ReadCaller, rule: UUID) -> RuleView:
    """Return one rule."""
    async with services.database.connection() as connection:
        return await rules.show_rule(connection, caller.owner_id, rule)


@router.patch("/rules/{rule}", tags=["rules"], responses=problems(400, 401, 403, 404, 409, 422))
async def edit_rule(services: ServicesOf, caller: WriteCaller, rule: UUID, wanted: RuleEdit) -> RuleView:
    """Change, move, enable or disable a rule. Documents that it changed before stay as they are."""
    async with services.database.transaction() as connection:
        return await rules.edit_rule(
            connection,
            caller.owner_id,
            rule,
            name=wanted.name,
            when=wanted.when.as_when() if wanted.when else None,
            then=wanted.then.as_then() if wanted.then else None,
            enabled=wanted.enabled,
            position=wanted.position,
        )


@router.delete("/rules/{rule}", tags=["rules"], status_code=204, responses=problems(401, 403, 404, 422))
async def delete_rule(services: ServicesOf, caller: WriteCaller, rule: UUID) -> None:
    """Delete a rule and its log. Documents that it changed stay as they are."""
    async with services.database.transaction() as connection:
        await rules.delete_rule(connection, caller.owner_id, rule)


@router.post("/rules/{rule}/try", tags=["rules"], responses=problems(401, 404, 422))
async def try_rule(services: ServicesOf, caller: ReadCaller, rule: UUID) -> RuleTrial:
    """Return the documents that a rule would change, and what it would change. Nothing is changed."""
    async with services.database.connection() as connection:
        return await rules.try_rule(connection, caller.owner_id, rule)


@router.post("/rules/{rule}/apply", tags=["rules"], responses=problems(400, 401, 403, 404, 422))
async def apply_rule(services: ServicesOf, caller: WriteCaller, rule: UUID, idempotency: IdempotencyOf) -> RuleRun:
    """Apply a rule to all documents that match now. This can be undone for a week."""
    return await rules.apply_rule(services.database, caller.owner_id, rule, on_done=idempotency.keep)


@router.post("/rules/{rule}/undo", tags=["rules"], responses=problems(400, 401, 403, 404, 422))
async def undo_rule(
    services: ServicesOf,
    caller: WriteCaller,
    rule: UUID,
    idempotency: IdempotencyOf,
    wanted: UndoRequest | None = None,
) -> RuleRun:
    """Undo the last run of a rule, or the given one: restore the values that the documents had before."""
    run = wanted.run_id if wanted else None
    return await rules.undo_rule(services.database, caller.owner_id, rule, run, on_done=idempotency.keep)


@router.get("/rules/{rule}/runs", tags=["rules"], responses=problems(401, 404, 422))
async def list_runs(
    services: ServicesOf, caller: ReadCaller, rule: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[RuleRun]:
    """List the runs of a rule, newest first."""
    async with services.database.connection() as connection:
        return await rules.list_runs(connection, caller.owner_id, rule, cursor=cursor, limit=limit)
