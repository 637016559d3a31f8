"""The list of settings pages, which is shown on each of these pages, and the messages shown after a change."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from octavo.core.errors import NotAllowed
from octavo.core.texts import Texts, mark
from octavo.core.texts import gettext as _
from octavo.web.context.callers import SOME_COLLECTIONS
from octavo.web.shell.frame import Frame, FrameFor, back_to, render

router = APIRouter(include_in_schema=False)
SettingsFrame = Annotated[Frame, Depends(FrameFor("settings"))]
# Name, icon, and whether visitors without an account see it.
ROOMS: dict[str, tuple[str, str, bool]] = {
    "account": (mark("Account"), "person", True),
    "access": (mark("Groups and access"), "person", False),
    "keys": (mark("API keys"), "key", False),
    "shares": (mark("Shared links"), "link", False),
    "sources": (mark("Sources"), "download", False),
    "fields": (mark("Fields"), "list", True),
    "rules": (mark("Rules"), "check", True),
    "mappings": (mark("Mappings"), "convert", True),
    "prompts": (mark("Prompts"), "edit", True),
    "weights": (mark("Connections"), "connections", True),
    "models": (mark("Models"), "play", True),
    "budgets": (mark("Budgets"), "coins", True),
    "retention": (mark("Retention"), "clock", True),
    "export": (mark("Export and import"), "box", True),
    "webhooks": (mark("Notifications out"), "send", False),
    "users": (mark("Users and storage"), "box", False),
    "audit": (mark("Audit"), "clock", False),
    "appearance": (mark("Appearance"), "theme", True),
}
FOR_ADMINISTRATORS = frozenset({"users"})
FOR_OWNERS = frozenset({"access", "audit"})
FOR_MEMBERS = frozenset({"shares"})
# Pages about the person. Limited members see only these, because the others are about the whole account.
FOR_LIMITED = frozenset({"account", "second_factor", "keys", "appearance"})
# Messages after a change. The address contains a key of this table, so that links cannot show any other text.
SAID = Texts(
    {
        "password": "Password changed. All your other sessions were signed out.",
        "connected": "Connected. You can now sign in with the provider.",
        "disconnected": "Disconnected. Sign in with your password from now on.",
        "withdrawn": "Invitation withdrawn. Its link no longer works.",
        "session": "The session was signed out.",
        "second_factor_off": "Second factor removed. Your password is enough to sign in.",
        "share_revoked": "Link revoked. It no longer works.",
        "owner": "Switched to another owner.",
        "added": "Member added.",
        "role": "Member changed.",
        "group": "Group created. Add members to it.",
        "group_deleted": "Group deleted. Its grants were withdrawn.",
        "joined": "Added to the group.",
        "left": "Removed from the group.",
        "granted": "Access granted.",
        "grant_withdrawn": "Access withdrawn. This takes effect immediately.",
        "removed": "Member removed.",
        "revoked": "API key revoked.",
        "paused": "Paused. No more events will be sent.",
        "resumed": "Resumed. New events will be sent.",
        "tested": "Test sent. See the result in the log below.",
        "replayed": "Sent again. See the result in the log below.",
        "edited": "Recipient changed.",
        "deleted": "Recipient and delivery log deleted.",
        "mapping": "Mapping added. Choose it for your next conversion.",
        "appearance": "Saved in this browser.",
        "source": "Source added. Its files will be added in a few seconds.",
        "source_edit": "Saved.",
        "source_run": "The source is being checked now.",
        "source_pause": "Paused. No more files will be added.",
        "source_resume": "Resumed. New files will be added.",
        "source_delete": "The source is no longer watched. Its documents and files are kept.",
        "field": "Field added. Set its value when you edit a document.",
        "field_edit": "Field changed.",
        "field_deleted": "Field and its values deleted.",
        "rule": "Rule added. See below what it would change.",
        "rule_edit": "Saved. See below what it would change.",
        "rule_apply": "Applied. You can undo it in the log below.",
        "rule_undo": "Undone. The previous values of the documents were restored.",
        "rule_enable": "Enabled. It runs on each new document.",
        "rule_disable": "Disabled. New documents are not changed.",
        "rule_up": "Moved up.",
        "rule_delete": "Rule deleted. Documents that it changed stay as they are.",
        "prompt": "Prompt saved. The next analysis will use it.",
        "retired": "Prompt retired. It is used only when selected.",
        "used": "Prompt reactivated.",
        "gone": "Prompt deleted.",
        "weights": "Weights saved. All lists use the new order.",
        "retention": "Retention period saved. It takes effect at the next nightly clean-up.",
        "provider": "Saved. New work uses this provider.",
        "no_provider": "Provider removed. Its API key was deleted.",
        "first": "Saved. This provider is tried first.",
        "tasks": "Saved. New work uses these models.",
        "budgets": "Budgets saved. Paused work resumes where the budget allows.",
    }
)


def show(request: Request, room: str, frame: Frame, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    caller = frame.caller
    hidden = frozenset[str]() if caller.is_admin else FOR_ADMINISTRATORS
    hidden |= frozenset[str]() if caller.may_manage else FOR_OWNERS
    hidden |= frozenset[str]() if caller.may_write else FOR_MEMBERS
    if caller.limited:
        if room not in FOR_LIMITED:
            raise NotAllowed(_(SOME_COLLECTIONS))
        hidden |= ROOMS.keys() - FOR_LIMITED
    seen = ROOMS.keys() - hidden
    rooms = {name: row for name, row in ROOMS.items() if name in seen and (row[2] or not caller.is_anonymous)}
    values |= {"room": room, "rooms": rooms, "said": SAID.get(values.get("said", ""))}
    return render(request, f"settings_{room}.html", frame, status, **values)


@router.get("/settings")
async def settings() -> Response:
    return back_to("/settings/account")
