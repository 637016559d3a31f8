"""Asks a model for what rules missed of what is required. Without one, or without money, a conversion is what it is."""

from __future__ import annotations

import asyncio
import json

import structlog

from octavo.ai.contract import Caller
from octavo.ai.tasks import EXTRACT_FIELDS, FieldsToFind, FieldToFind
from octavo.convert.contract import Asked, Conversion, Said, sheets_from_json
from octavo.convert.layout import text_in_columns
from octavo.convert.mapping import Mapping
from octavo.convert.suggestions import Suggestion, wanted_fields
from octavo.core.errors import (
    AnswerUnusable,
    BadModelKey,
    ContentBlocked,
    ModelRefused,
    NoModel,
    OverBudget,
    TokenLimit,
)
from octavo.jobs.run import Run
from octavo.pipeline.tools import Tools

log = structlog.get_logger()
# Waiting would not change these, or only somebody else can: the values that rules found are worth more now.
_GO_ON = (AnswerUnusable, BadModelKey, ContentBlocked, ModelRefused, NoModel, OverBudget, TokenLimit)


async def ask_for_missing(run: Run[Tools], words: bytes, conversion: Conversion, mapping: Mapping) -> Asked | None:
    """What a model says; whether the document says it too is found out in the sandbox. None: there is nobody to ask."""
    wanted = [one for one in wanted_fields(conversion, mapping) if one.name in conversion.missing]
    if not wanted:
        return None
    fields = [FieldToFind(one.name, one.type, one.labels) for one in wanted]
    job = run.job
    caller = Caller(job.owner_id, job.document_id, job.id, job.lease_token)
    text = await asyncio.to_thread(_text, words)
    try:
        answer = await run.tools.gateway.ask(EXTRACT_FIELDS, FieldsToFind(fields, text), caller)
    except _GO_ON as error:
        log.info("no model for missing fields", job=str(job.id), code=error.code)
        names = tuple(one.name for one in wanted)
        return None if isinstance(error, NoModel) else Asked(EXTRACT_FIELDS.name, names, error=error.code)
    said = tuple(Said(one.name, one.value, one.quote) for one in answer.output.fields)
    return Asked(EXTRACT_FIELDS.name, tuple(one.name for one in wanted), answer.made_by, said)


def suggested(asked: Asked) -> list[Suggestion]:
    return [Suggestion(one.name, one.value, one.quote) for one in asked.said]


def _text(words: bytes) -> str:
    return text_in_columns(sheets_from_json(json.loads(words)["pages"])).text
