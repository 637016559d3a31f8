"""Starts the analyses and conversions that rules define for new documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from uuid import UUID

from octavo.analyse.analyses import start_analysis
from octavo.analyse.prompts import find_prompts
from octavo.choreography import Cause
from octavo.convert.mappings.stored_mappings import find_mapping
from octavo.convert.submissions import begin_batch
from octavo.core.errors import BadInput
from octavo.database import Connection
from octavo.records.automation import RuleView


async def start_actions(connection: Connection, owner: UUID, document: UUID, rule: RuleView) -> list[str]:
    """Start the analysis and the conversion that a rule requests for a document.

    Returns an error message for each of them that could not be started, for example because a prompt or a mapping was
    deleted after the rule was saved. Such an error does not stop the processing of the document.
    """
    then, wanted = rule.then, dict[str, Callable[[], Awaitable[object]]]()
    if then.analyse:
        wanted["analyse"] = partial(_analyse, connection, owner, document, then.analyse)
    if then.convert:
        wanted["convert"] = partial(_convert, connection, owner, document, then.convert)
    problems: list[str] = []
    for name, start in wanted.items():
        try:
            async with connection.transaction():
                await start()
        except BadInput as error:
            problems.append(f"{name}: {error.line}")
    return problems


async def _analyse(connection: Connection, owner: UUID, document: UUID, names: list[str]) -> None:
    prompts = await find_prompts(connection, owner, names)
    await start_analysis(connection, owner, document, prompts, cause=Cause.RULE_ANALYSIS)


async def _convert(connection: Connection, owner: UUID, document: UUID, name: str) -> None:
    mapping = await find_mapping(connection, owner, name)
    await begin_batch(connection, owner, mapping, documents=[document], cause=Cause.RULE_CONVERSION)
