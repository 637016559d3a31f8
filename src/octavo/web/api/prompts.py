"""The library of prompts: yours, and those that came with the installation."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from octavo.analyse import prompts
from octavo.analyse.prompts import Prompt, PromptVersion, PromptWords
from octavo.core.pages import Page
from octavo.web.api import WHOLE, problems
from octavo.web.parts import PartsOf, Reading, Writing

router = APIRouter(prefix="/api/v1/prompts", tags=["analyses"])

Title = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Content = Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]*$")]
System = Annotated[str, Field(max_length=20_000, pattern=r"^[^\x00]*$")]
Order = Annotated[int, Field(ge=0, le=1_000_000), WHOLE]


class NewPrompt(BaseModel):
    """`system` says how to answer; those with a lower `execution_order` are asked first."""

    model_config = ConfigDict(extra="forbid")

    title: Title
    content: Content
    system: System = ""
    execution_order: Order = prompts.DEFAULT_ORDER
    active: StrictBool = True


class PromptChange(BaseModel):
    """What is not given stays as it is."""

    model_config = ConfigDict(extra="forbid")

    title: Title | None = None
    content: Content | None = None
    system: System | None = None
    execution_order: Order | None = None
    active: StrictBool | None = None


@router.get("", responses=problems(401))
async def list_prompts(parts: PartsOf, caller: Reading) -> Page[Prompt]:
    """In the order in which they are asked. Those that are `built_in` are everybody's."""
    async with parts.database.connection() as connection:
        return Page(await prompts.list_prompts(connection, caller.owner_id), None)


@router.post("", status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_prompt(parts: PartsOf, caller: Writing, wanted: NewPrompt) -> Prompt:
    async with parts.database.transaction() as connection:
        return await prompts.add_prompt(connection, caller.owner_id, PromptWords(**wanted.model_dump()))


@router.get("/{prompt}", responses=problems(401, 404, 422))
async def show_prompt(parts: PartsOf, caller: Reading, prompt: UUID) -> Prompt:
    async with parts.database.connection() as connection:
        return await prompts.show_prompt(connection, caller.owner_id, prompt)


@router.get("/{prompt}/versions", responses=problems(401, 404, 422))
async def list_versions(parts: PartsOf, caller: Reading, prompt: UUID) -> Page[PromptVersion]:
    """All that it ever said, newest first."""
    async with parts.database.connection() as connection:
        return Page(await prompts.list_versions(connection, caller.owner_id, prompt), None)


@router.patch("/{prompt}", responses=problems(400, 401, 403, 404, 409, 422))
async def change_prompt(parts: PartsOf, caller: Writing, prompt: UUID, wanted: PromptChange) -> Prompt:
    """New words are a new version; analyses keep those that they ran with."""
    async with parts.database.transaction() as connection:
        words = PromptWords(**wanted.model_dump())
        return await prompts.change_prompt(connection, caller.owner_id, prompt, words)


@router.delete("/{prompt}", status_code=204, responses=problems(401, 403, 404, 409, 422))
async def delete_prompt(parts: PartsOf, caller: Writing, prompt: UUID) -> None:
    """Answers to it stay where they are."""
    async with parts.database.transaction() as connection:
        await prompts.delete_prompt(connection, caller.owner_id, prompt)
