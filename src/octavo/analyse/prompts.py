"""The prompt library of an account: its own prompts in all versions, and the built-in prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from octavo.analyse.errors import BuiltInPrompt, TooManyPrompts, UnknownPrompt
from octavo.core.errors import NotFound
from octavo.core.types import new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.records.analyses import Prompt, PromptVersion

QUERIES = load_queries("prompts")
MOST_PROMPTS = 500
# Used instead of titles to select all active prompts.
ALL = "all"
DEFAULT_ORDER = 100


@dataclass(frozen=True, slots=True)
class PromptFields:
    """The fields of a new or changed prompt. In a change, None keeps the current value."""

    title: str | None = None
    content: str | None = None
    system: str | None = None
    execution_order: int | None = None
    active: bool | None = None


async def list_prompts(connection: Connection, owner: UUID) -> list[Prompt]:
    """List prompts in the order in which they run."""
    values = {"owner": owner, "id": None, "most": 2 * MOST_PROMPTS}
    return [Prompt(**row) for row in await fetch_rows(connection, QUERIES.prompts, values)]


async def show_prompt(connection: Connection, owner: UUID, prompt: UUID) -> Prompt:
    rows = await fetch_rows(connection, QUERIES.prompts, {"owner": owner, "id": prompt, "most": 1})
    if not rows:
        raise NotFound
    return Prompt(**rows[0])


async def find_prompts(connection: Connection, owner: UUID, names: Sequence[str]) -> list[UUID] | None:
    """Find prompts by title or id. If `names` contains only `all`, returns None, which selects all active prompts."""
    if list(names) == [ALL]:
        return None
    prompts = await list_prompts(connection, owner)
    known = {one.title.casefold(): one.id for one in prompts} | {str(one.id): one.id for one in prompts}
    if missing := [name for name in names if name.casefold() not in known]:
        raise UnknownPrompt(f"There is no prompt {missing[0][:80]!r}.")
    return [known[name.casefold()] for name in names]


async def list_versions(connection: Connection, owner: UUID, prompt: UUID) -> list[PromptVersion]:
    """List the versions of a prompt, newest first."""
    rows = await fetch_rows(connection, QUERIES.versions, {"owner": owner, "id": prompt})
    if not rows:
        raise NotFound
    return [PromptVersion(**row) for row in rows]


async def add_prompt(connection: Connection, owner: UUID, fields: PromptFields) -> Prompt:
    row = await (await connection.execute(QUERIES.count_prompts, {"owner": owner})).fetchone()
    if row and row[0] >= MOST_PROMPTS:
        raise TooManyPrompts
    prompt, order = new_id(), fields.execution_order
    values = {
        "id": prompt,
        "owner": owner,
        "title": fields.title,
        "content": fields.content,
        "system": fields.system or "",
        "execution_order": DEFAULT_ORDER if order is None else order,
        "active": fields.active is not False,
    }
    await connection.execute(QUERIES.add_prompt, values)
    return await show_prompt(connection, owner, prompt)


async def change_prompt(connection: Connection, owner: UUID, prompt: UUID, fields: PromptFields) -> Prompt:
    """Change a prompt. Changing its text creates a new version; existing analyses keep the version they ran with."""
    await _check_own(connection, owner, prompt)
    await connection.execute(QUERIES.change_prompt, asdict(fields) | {"id": prompt, "owner": owner})
    return await show_prompt(connection, owner, prompt)


async def delete_prompt(connection: Connection, owner: UUID, prompt: UUID) -> None:
    await _check_own(connection, owner, prompt)
    await connection.execute(QUERIES.delete_prompt, {"id": prompt, "owner": owner})


async def _check_own(connection: Connection, owner: UUID, prompt: UUID) -> None:
    if (await show_prompt(connection, owner, prompt)).built_in:
        raise BuiltInPrompt
