"""The settings' own list of rooms, which stands beside each of them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from octavo.web.shell.frame import Frame, FrameFor
from octavo.web.shell.templates import back_to, render

router = APIRouter(include_in_schema=False)
SettingsFrame = Annotated[Frame, Depends(FrameFor("settings"))]
# Name, glyph, and whether somebody without an account has it.
ROOMS: dict[str, tuple[str, str, bool]] = {
    "account": ("Account", "person", True),
    "keys": ("Keys", "key", False),
    "mappings": ("Mappings", "list", True),
    "prompts": ("Prompts", "edit", True),
    "weights": ("Connections", "connections", True),
    "budgets": ("Budgets", "coins", True),
    "webhooks": ("Webhooks", "send", False),
    "appearance": ("Appearance", "theme", True),
}
# What was done before the page was loaded; only these can be said, so that no link can make the page say something.
SAID = {
    "password": "Your password is changed. Everywhere else you are signed out.",
    "owner": "You act for another owner now.",
    "added": "They may act for this owner from now on.",
    "role": "The role is changed from their next request on.",
    "removed": "They may not act for this owner any more.",
    "revoked": "The key does not work any more.",
    "paused": "Nothing is sent there any more.",
    "resumed": "It is sent there again from now on.",
    "tested": "A test is on its way. How it went stands in the log below.",
    "deleted": "It is deleted, with its log.",
    "mapping": "It is added. Choose it for your next conversion.",
    "appearance": "This browser remembers it.",
    "prompt": "It is saved. The next analysis asks it so.",
    "retired": "It is retired: asked only where somebody chooses it.",
    "used": "It is in use again.",
    "gone": "It is deleted.",
    "weights": "All lists are in the new order.",
    "budgets": "They hold from now on, and what there is money for goes on.",
}


def show(request: Request, room: str, frame: Frame, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    rooms = {name: row for name, row in ROOMS.items() if row[2] or not frame.caller.is_anonymous}
    values |= {"room": room, "rooms": rooms, "said": SAID.get(values.get("said", ""))}
    return render(request, f"settings_{room}.html", frame, status, **values)


@router.get("/settings")
async def settings() -> Response:
    return back_to("/settings/account")
