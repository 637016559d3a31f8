"""Settings pages for the account, members, API keys and appearance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request, Response

from octavo.core.errors import AlreadyMember, LastOwner, NotAllowed, NotFound, WeakPassword, WrongCredentials
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.database import Connection
from octavo.owners import Caller, Scope, callers, members
from octavo.owners.account_links import list_invitations
from octavo.owners.accounts import LEAST_CHARACTERS, list_users, read_visitors, set_language
from octavo.owners.callers import OwnerSeesAll
from octavo.owners.identities import list_identities
from octavo.owners.members import Member
from octavo.owners.sessions import list_sessions, read_second_factor
from octavo.web.context.callers import AdminCaller, KnownCaller, OptionalCaller, PersonId, session_secret
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.languages import LANGUAGE_COOKIE, LANGUAGES, language_cookie
from octavo.web.http.limits import TooFast
from octavo.web.rooms.account import accounts
from octavo.web.rooms.account.api import MemberEdit, NewKeyRequest, NewMemberRequest, PasswordChange
from octavo.web.shell.forms import Back, Question, ask, local_path, read_form
from octavo.web.shell.frame import THEME_COOKIE, THEMES, Frame, back_to
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False, prefix="/settings/account")
Field = Annotated[str, Form(max_length=2000)]
Sees = Annotated[Literal["all", "granted"], Form()]
WRONG = Texts(
    {
        "password": "This password is too long.",
        "new_password": "This password is too long.",
        "email": "Enter a valid email address.",
        "role": "Choose a role.",
    }
)


@router.get("")
async def account(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    return await show_account(request, services, frame, said=said)


async def show_account(
    request: Request,
    services: Services,
    frame: Frame,
    status: int = 200,
    **values: Any,  # noqa: ANN401
) -> Response:
    caller, settings = frame.caller, services.settings
    person = caller.user_id if caller.via == "session" else None
    async with services.database.connection() as connection:
        more: dict[str, Any] = {
            "me": await accounts.describe(connection, caller),
            "people": await _list_people(connection, caller),
            "identities": await list_identities(connection, person) if person else [],
            "factor": await read_second_factor(connection, person) if person else None,
            "invitations": await list_invitations(connection, caller) if caller.may_manage else [],
            "sessions": []
            if caller.is_anonymous or caller.via == "key"
            else await list_sessions(connection, caller, session_secret(request) or ""),
        }
    more |= {"provider": settings.oidc_label if settings.oidc_issuer else None, "browser_name": browser_name}
    more |= {"open": settings.sign_up, "least": LEAST_CHARACTERS}
    return show(request, "account", frame, status, **more, **values)


async def _list_people(connection: Connection, caller: Caller) -> list[Member]:
    hidden = caller.is_anonymous or caller.limited
    return [] if hidden else await members.list_members(connection, caller.owner_id)


BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl", "python")
NAMES = {"Edg": "Edge", "OPR": "Opera", "python": "Python"}
SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux")


def browser_name(agent: str | None) -> str:
    """Return a short name for a User-Agent header, such as "Firefox on Linux"."""
    browser = next((one for one in BROWSERS if one in (agent or "")), None)
    system = next((one for one in SYSTEMS if one in (agent or "")), None)
    name = NAMES.get(browser, browser) if browser else _("Unknown browser")
    return _("%(name)s on %(system)s", name=name, system=system) if system else name


@router.post("/password")
async def change_password(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    person: PersonId,
    password: Field = "",
    new_password: Field = "",
) -> Response:
    given = {"password": password, "new_password": new_password}
    wanted, wrong = read_form(PasswordChange, given, WRONG)
    status = 422
    if wanted:
        try:
            await accounts.change_password(request, services, person, wanted.password, wanted.new_password)
            return back_to("/settings/account?said=password")
        except WrongCredentials as error:
            wrong, status = {"password": _("Wrong password.")}, error.status
        except WeakPassword as error:
            wrong, status = {"new_password": error.line}, error.status
        except TooFast as error:
            wrong, status = {"password": _("Too many wrong passwords. %(detail)s", detail=error.detail)}, error.status
    return await show_account(request, services, frame, status, wrong=wrong)


@router.post("/owner")
async def act_for(
    request: Request, services: ServicesOf, caller: OptionalCaller, person: PersonId, owner_id: Annotated[UUID, Form()]
) -> Response:
    await accounts.act_for(request, services, caller, person, owner_id)
    return back_to("/settings/account?said=owner")


# Members ----------------------------------------------------------------------------------------------------------


@router.post("/members")
async def add_member(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    email: Field = "",
    role: Field = "member",
    sees: Sees = "all",
) -> Response:
    given = {"email": email, "role": role, "limited": sees == "granted"}
    wanted, wrong = read_form(NewMemberRequest, given, WRONG)
    status = 422
    if wanted:
        try:
            async with services.database.transaction() as connection:
                await members.add_member(connection, frame.caller, wanted.email, wanted.role, limited=wanted.limited)
            return back_to("/settings/account?said=added#members")
        except (NotFound, AlreadyMember, OwnerSeesAll) as error:
            wrong, status = {"email": error.detail or error.title}, error.status
    return await show_account(request, services, frame, status, wrong=wrong, email=email)


@router.post("/members/{user}/role")
async def change_role(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    user: UUID,
    role: Field = "",
    sees: Annotated[Literal["all", "granted"] | None, Form()] = None,
) -> Response:
    """Change the role of a member, and which documents the member sees. An owner always sees all of them."""
    wanted, wrong = read_form(MemberEdit, {"role": role}, WRONG)
    status = 422
    if wanted and wanted.role:
        try:
            async with services.database.transaction() as connection:
                await members.change_role(connection, frame.caller, user, wanted.role)
                if sees is not None:
                    await members.limit_member(connection, frame.caller, user, limited=sees == "granted")
            services.live.recheck(frame.caller.owner_id)
            return back_to("/settings/account?said=role#members")
        except (LastOwner, OwnerSeesAll) as error:
            wrong, status = {"role": error.title}, error.status
    return await show_account(request, services, frame, status, wrong=wrong)


@router.get("/members/{user}/remove")
async def ask_to_remove(request: Request, services: ServicesOf, frame: SettingsFrame, user: UUID) -> Response:
    async with services.database.connection() as connection:
        people = await members.list_members(connection, frame.caller.owner_id)
    email = next((one.email for one in people if one.user_id == user), None)
    if email is None or not frame.caller.may_manage:
        raise NotFound
    question = Question(
        title=_("Remove %(email)s?", email=email),
        text=_("The member's sessions and API keys for this owner stop working immediately. The account is kept."),
        action=f"/settings/account/members/{user}/remove",
        verb=_("Remove"),
        keep="/settings/account#members",
    )
    return ask(request, question, frame)


@router.post("/members/{user}/remove")
async def remove_member(
    request: Request, services: ServicesOf, caller: KnownCaller, frame: SettingsFrame, user: UUID
) -> Response:
    try:
        async with services.database.transaction() as connection:
            await members.remove_member(connection, caller, user)
    except LastOwner as error:
        return await show_account(request, services, frame, error.status, wrong={"role": error.title})
    services.live.recheck(caller.owner_id)
    return back_to("/settings/account?said=removed#members")


keys_router = APIRouter(include_in_schema=False, prefix="/settings/keys")
SCOPES: Mapping[Scope, str] = Texts(
    {
        "read": "Read only",
        "write": "Read and write",
        "admin": "Full access",
    }
)
LASTS = Texts({"": "Never", "7": "In 7 days", "30": "In 30 days", "90": "In 90 days", "365": "In a year"})
KEY_WRONG = Texts(
    {
        "name": "Enter a name of at most 100 characters.",
        "scope": "Choose a scope.",
        "expires_in_days": "Choose when the key expires.",
    }
)


@keys_router.get("")
async def list_keys(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    return await _show_keys(request, services, frame, said=said)


async def _show_keys(request: Request, services: Services, frame: Frame, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    if frame.caller.is_anonymous:
        raise NotAllowed(_("Create an account to use API keys."))
    async with services.database.connection() as connection:
        found = await callers.list_keys(connection, frame.caller)
    scopes = {scope: words for scope, words in SCOPES.items() if frame.caller.may_grant(scope)}
    more = {"keys": found, "scopes": scopes, "words": SCOPES, "lasts": LASTS}
    return show(request, "keys", frame, status, **more, **values)


@keys_router.post("")
async def make_key(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    name: Field = "",
    scope: Field = "write",
    days: Field = "",
) -> Response:
    """Create an API key. The page is rendered without a redirect, because the key is shown only once."""
    given = {"name": name.strip(), "scope": scope, "expires_in_days": days or None}
    wanted, wrong = read_form(NewKeyRequest, given, KEY_WRONG)
    if wanted is None:
        chosen = {"name": name, "scope": scope, "days": days}
        return await _show_keys(request, services, frame, 422, wrong=wrong, chosen=chosen)
    if not frame.caller.may_grant(wanted.scope):
        raise NotAllowed
    async with services.database.transaction() as connection:
        made = await callers.make_key(
            connection, frame.caller, name=wanted.name, scope=wanted.scope, days=wanted.expires_in_days
        )
    return await _show_keys(request, services, frame, 201, made=made)


@keys_router.get("/{key}/revoke")
async def ask_to_revoke(request: Request, services: ServicesOf, frame: SettingsFrame, key: UUID) -> Response:
    async with services.database.connection() as connection:
        found = {one.id: one for one in await callers.list_keys(connection, frame.caller)}
    if key not in found:
        raise NotFound
    question = Question(
        title=_("Revoke “%(name)s”?", name=found[key].name),
        text=_(
            "Programs that use this key will lose access. This cannot be undone. Key: %(start)s…",
            start=found[key].start,
        ),
        action=f"/settings/keys/{key}/revoke",
        verb=_("Revoke"),
        keep="/settings/keys",
    )
    return ask(request, question, frame)


@keys_router.post("/{key}/revoke")
async def revoke_key(services: ServicesOf, caller: KnownCaller, key: UUID) -> Response:
    async with services.database.transaction() as connection:
        await callers.revoke_key(connection, caller, key)
    services.live.recheck(caller.owner_id)
    return back_to("/settings/keys?said=revoked")


appearance_router = APIRouter(include_in_schema=False, prefix="/settings/appearance")
KEYS_COOKIE = "octavo_keys"
KEYS_OFF = "off"
YEAR_SECONDS = 365 * 24 * 3600
CHOICES = Texts({"system": "System", "light": "Light", "dark": "Dark"})


@appearance_router.get("")
async def appearance(request: Request, frame: SettingsFrame, said: str = "") -> Response:
    theme = request.cookies.get(THEME_COOKIE)
    chosen = theme if theme in THEMES else "system"
    keys = request.cookies.get(KEYS_COOKIE) != KEYS_OFF
    offered = {"": _("Same as the browser"), **LANGUAGES}
    language = frame.caller.language or language_cookie(request.headers) or ""
    return show(
        request,
        "appearance",
        frame,
        said=said,
        chosen=chosen,
        keys=keys,
        choices=CHOICES,
        offered=offered,
        language=language,
    )


@appearance_router.post("")
async def keep(
    request: Request,
    services: ServicesOf,
    caller: OptionalCaller,
    theme: Annotated[Literal["system", "light", "dark"], Form()] = "system",
    keys: Annotated[str, Form(max_length=10)] = "",
    language: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """Save the appearance settings in cookies. The language is also saved in the person's account."""
    answer = back_to("/settings/appearance?said=appearance")
    await _keep_language(request, services, caller, answer, language)
    _keep(request, answer, THEME_COOKIE, theme if theme in THEMES else None)
    _keep(request, answer, KEYS_COOKIE, None if keys else KEYS_OFF)
    return answer


language_router = APIRouter(include_in_schema=False)


@language_router.post("/language")
async def choose_language(
    request: Request,
    services: ServicesOf,
    caller: OptionalCaller,
    language: Annotated[str, Form(max_length=20)] = "",
    back: Back = "/",
) -> Response:
    """Change the language of the pages. Handles the language form of the sign-in and sign-up pages."""
    answer = back_to(local_path(back))
    await _keep_language(request, services, caller, answer, language)
    return answer


async def _keep_language(
    request: Request, services: Services, caller: Caller | None, answer: Response, language: str
) -> None:
    """Save the language in the person's account, and in a cookie for the pages shown before sign-in."""
    known = language if language in LANGUAGES else None
    _keep(request, answer, LANGUAGE_COOKIE, known)
    if caller and caller.language != known:
        async with services.database.transaction() as connection:
            await set_language(connection, caller, known)


def _keep(request: Request, answer: Response, name: str, value: str | None) -> None:
    """Store a preference in a cookie that scripts can read. None deletes the cookie, which restores the default."""
    secure = request.url.scheme == "https"
    if value is None:
        answer.delete_cookie(name, samesite="lax", secure=secure)
    else:
        answer.set_cookie(name, value, max_age=YEAR_SECONDS, samesite="lax", secure=secure)


users_router = APIRouter(include_in_schema=False, prefix="/settings/users")


@users_router.get("")
async def users(
    request: Request,
    services: ServicesOf,
    caller: AdminCaller,
    frame: SettingsFrame,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> Response:
    """List all accounts with their storage use, for administrators."""
    del caller
    async with services.database.connection() as connection:
        page = await list_users(connection, cursor=cursor)
        visitors = await read_visitors(connection)
    more = f"/settings/users?{urlencode({'cursor': page.next_cursor})}" if page.next_cursor else None
    quota = services.settings.stored_bytes
    return show(request, "users", frame, users=page.items, visitors=visitors, more=more, quota=quota)
