"""Settings pages for prompts: the list of prompts, a form to edit a prompt, and its earlier versions."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response
from pydantic import BaseModel, Field

from octavo.analyse import prompts
from octavo.analyse.errors import BuiltInPrompt
from octavo.analyse.prompts import DEFAULT_ORDER, PromptFields, PromptVersion
from octavo.core.errors import BadInput, NotFound
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.records.analyses import Prompt
from octavo.web.context.callers import WriteCaller
from octavo.web.context.services import ServicesOf
from octavo.web.rooms.analyses.api import NewPrompt
from octavo.web.shell.forms import Question, ask, read_form
from octavo.web.shell.frame import Frame, back_to
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False, prefix="/settings/prompts")
Line = Annotated[str, Field(max_length=2000)]
Text = Annotated[str, Field(max_length=40_000)]
WRONG = Texts(
    {
        "title": "Enter a title of at most 200 characters.",
        "content": "Enter a prompt of at most 20,000 characters.",
        "system": "At most 20,000 characters.",
        "execution_order": "Enter an integer from 0 to 1,000,000.",
    }
)


class PromptForm(BaseModel):
    """The fields of the prompt form as they were submitted, before validation."""

    title: Line = ""
    content: Text = ""
    system: Text = ""
    execution_order: Line = str(DEFAULT_ORDER)


Filled = Annotated[PromptForm, Form()]


@router.get("")
async def list_page(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    async with services.database.connection() as connection:
        found = await prompts.list_prompts(connection, frame.caller.owner_id)
    used = [one for one in found if one.active]
    retired = [one for one in found if not one.active]
    return show(request, "prompts", frame, said=said, used=used, retired=retired)


@router.get("/new")
async def new_page(request: Request, services: ServicesOf, frame: SettingsFrame, like: UUID | None = None) -> Response:
    """Show the form for a new prompt. The form is empty, unless `like` is the id of a prompt to copy."""
    given = PromptForm()
    if like:
        async with services.database.connection() as connection:
            given = _form_of(await prompts.show_prompt(connection, frame.caller.owner_id, like))
    return _form(request, frame, None, given)


@router.post("")
async def add(
    request: Request, services: ServicesOf, frame: SettingsFrame, caller: WriteCaller, given: Filled
) -> Response:
    wanted, wrong = _read(given)
    if wanted is None:
        return _form(request, frame, None, given, 422, wrong=wrong)
    try:
        async with services.database.transaction() as connection:
            made = await prompts.add_prompt(connection, caller.owner_id, wanted)
    except BadInput as error:
        return _form(request, frame, None, given, error.status, wrong={"title": error.line})
    return back_to(f"/settings/prompts/{made.id}?said=prompt")


@router.get("/{prompt}")
async def show_page(
    request: Request, services: ServicesOf, frame: SettingsFrame, prompt: UUID, said: str = ""
) -> Response:
    """Show the form to edit a prompt, and its earlier versions."""
    found, versions = await _load(services, frame, prompt)
    return _form(request, frame, found, _form_of(found), said=said, versions=versions)


@router.post("/{prompt}")
async def change(
    request: Request, services: ServicesOf, frame: SettingsFrame, caller: WriteCaller, prompt: UUID, given: Filled
) -> Response:
    """Save a prompt as a new version. Existing answers keep the version that produced them."""
    wanted, wrong = _read(given)
    if wanted is None:
        found, versions = await _load(services, frame, prompt)
        return _form(request, frame, found, given, 422, wrong=wrong, versions=versions)
    async with services.database.transaction() as connection:
        await prompts.change_prompt(connection, caller.owner_id, prompt, wanted)
    return back_to(f"/settings/prompts/{prompt}?said=prompt")


@router.post("/{prompt}/use")
async def use_version(
    services: ServicesOf, caller: WriteCaller, prompt: UUID, version: Annotated[int, Form(ge=1)]
) -> Response:
    """Restore an earlier version of a prompt by saving it as a new version."""
    async with services.database.transaction() as connection:
        versions = await prompts.list_versions(connection, caller.owner_id, prompt)
        chosen = next((one for one in versions if one.version == version), None)
        if chosen is None:
            raise NotFound
        words = PromptFields(title=chosen.title, content=chosen.content, system=chosen.system)
        await prompts.change_prompt(connection, caller.owner_id, prompt, words)
    return back_to(f"/settings/prompts/{prompt}?said=prompt")


@router.post("/{prompt}/retire")
async def retire(services: ServicesOf, caller: WriteCaller, prompt: UUID) -> Response:
    return await _switch(services, caller, prompt, active=False)


@router.post("/{prompt}/resume")
async def resume(services: ServicesOf, caller: WriteCaller, prompt: UUID) -> Response:
    return await _switch(services, caller, prompt, active=True)


async def _switch(services: ServicesOf, caller: WriteCaller, prompt: UUID, *, active: bool) -> Response:
    async with services.database.transaction() as connection:
        await prompts.change_prompt(connection, caller.owner_id, prompt, PromptFields(active=active))
    return back_to(f"/settings/prompts?said={'used' if active else 'retired'}")


@router.get("/{prompt}/delete")
async def ask_to_delete(request: Request, services: ServicesOf, frame: SettingsFrame, prompt: UUID) -> Response:
    found, versions = await _load(services, frame, prompt)
    if found.built_in:
        raise BuiltInPrompt
    texts = [_("All %(count)s versions will be deleted.", count=len(versions))] if len(versions) > 1 else []
    question = Question(
        title=_("Delete “%(title)s”?", title=found.title),
        text=" ".join([*texts, _("Existing answers are kept.")]),
        action=f"/settings/prompts/{prompt}/delete",
        verb=_("Delete"),
        keep=f"/settings/prompts/{prompt}",
    )
    return ask(request, question, frame)


@router.post("/{prompt}/delete")
async def delete(services: ServicesOf, caller: WriteCaller, prompt: UUID) -> Response:
    async with services.database.transaction() as connection:
        await prompts.delete_prompt(connection, caller.owner_id, prompt)
    return back_to("/settings/prompts?said=gone")


async def _load(services: ServicesOf, frame: Frame, prompt: UUID) -> tuple[Prompt, list[PromptVersion]]:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        found = await prompts.show_prompt(connection, owner, prompt)
        return found, await prompts.list_versions(connection, owner, prompt)


def _form(
    request: Request,
    frame: Frame,
    prompt: Prompt | None,
    given: PromptForm,
    status: int = 200,
    **values: Any,  # noqa: ANN401 - values for the template
) -> Response:
    return show(request, "prompts", frame, status, prompt=prompt, given=given, **values)


def _form_of(prompt: Prompt) -> PromptForm:
    order = str(prompt.execution_order)
    return PromptForm(title=prompt.title, content=prompt.content, system=prompt.system, execution_order=order)


def _read(given: PromptForm) -> tuple[PromptFields | None, dict[str, str]]:
    """Validate the submitted form with the rules of the API.

    Returns the fields, or an error message for each invalid field. Line endings are normalised, so that saving without
    changes creates no new version.
    """
    words: dict[str, Any] = {name: text.replace("\r\n", "\n").strip() for name, text in given.model_dump().items()}
    order = words["execution_order"] or str(DEFAULT_ORDER)
    words["execution_order"] = int(order) if order.isascii() and order.isdecimal() else -1
    wanted, wrong = read_form(NewPrompt, words, WRONG)
    if wanted is None:
        return None, wrong
    return PromptFields(wanted.title, wanted.content, wanted.system, wanted.execution_order), {}
