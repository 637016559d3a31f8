"""Keys by which programs act for you: made, shown once, revoked."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response

from octavo.core.errors import NotAllowed, NotFound
from octavo.owners import Scope, keys
from octavo.web.api.keys import KeyWanted
from octavo.web.pages import back_to
from octavo.web.pages.confirm import Question, ask
from octavo.web.pages.forms import read_form
from octavo.web.pages.frame import Frame
from octavo.web.pages.settings import SettingsFrame, show
from octavo.web.parts import Known, Parts, PartsOf

router = APIRouter(include_in_schema=False, prefix="/settings/keys")
Field = Annotated[str, Form(max_length=2000)]
SCOPES: dict[Scope, str] = {
    "read": "Read only",
    "write": "Read and write",
    "admin": "Everything you may",
}
LASTS = {"": "Until it is revoked", "7": "A week", "30": "30 days", "90": "90 days", "365": "A year"}
WRONG = {
    "name": "Give it a name of at most 100 characters.",
    "scope": "There is no such scope.",
    "expires_in_days": "Choose one of these.",
}


@router.get("")
async def list_keys(request: Request, parts: PartsOf, frame: SettingsFrame, said: str = "") -> Response:
    return await _show(request, parts, frame, said=said)


async def _show(request: Request, parts: Parts, frame: Frame, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    if frame.caller.is_anonymous:
        raise NotAllowed("Keys are for people with an account.")
    async with parts.database.connection() as connection:
        found = await keys.list_keys(connection, frame.caller)
    scopes = {scope: words for scope, words in SCOPES.items() if frame.caller.may_grant(scope)}
    more = {"keys": found, "scopes": scopes, "words": SCOPES, "lasts": LASTS}
    return show(request, "keys", frame, status, **more, **values)


@router.post("")
async def make_key(
    request: Request, parts: PartsOf, frame: SettingsFrame, name: Field = "", scope: Field = "write", days: Field = ""
) -> Response:
    """Answers the page itself with the key on it, which exists nowhere else."""
    given = {"name": name.strip(), "scope": scope, "expires_in_days": days or None}
    wanted, wrong = read_form(KeyWanted, given, WRONG)
    if wanted is None:
        chosen = {"name": name, "scope": scope, "days": days}
        return await _show(request, parts, frame, 422, wrong=wrong, chosen=chosen)
    if not frame.caller.may_grant(wanted.scope):
        raise NotAllowed
    async with parts.database.transaction() as connection:
        made = await keys.make_key(
            connection, frame.caller, name=wanted.name, scope=wanted.scope, days=wanted.expires_in_days
        )
    return await _show(request, parts, frame, 201, made=made)


@router.get("/{key}/revoke")
async def ask_to_revoke(request: Request, parts: PartsOf, frame: SettingsFrame, key: UUID) -> Response:
    async with parts.database.connection() as connection:
        found = {one.id: one for one in await keys.list_keys(connection, frame.caller)}
    if key not in found:
        raise NotFound
    question = Question(
        title=f"Revoke “{found[key].name}”?",
        text=f"Programs that use the key {found[key].start}… are refused from now on. This cannot be undone.",
        action=f"/settings/keys/{key}/revoke",
        verb="Revoke",
        keep="/settings/keys",
    )
    return ask(request, question, frame)


@router.post("/{key}/revoke")
async def revoke_key(parts: PartsOf, caller: Known, key: UUID) -> Response:
    async with parts.database.transaction() as connection:
        await keys.revoke_key(connection, caller, key)
    parts.live.doubt(caller.owner_id)
    return back_to("/settings/keys?said=revoked")
