"""The API for accounts: sign-up, sign-in and sign-out, API keys, and the members of an account."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr, StrictBool

from octavo.core.http import Page
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.owners import Role, Scope, callers, members
from octavo.owners.accounts import list_users, set_language, set_language_of
from octavo.owners.members import Member
from octavo.records.account import KeyView, NewKey, UserAccount
from octavo.web.context.callers import AdminCaller, KnownCaller, OptionalCaller, PersonId, ReadCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import WHOLE, Cursor, Email, Limit, problems
from octavo.web.rooms.account import accounts
from octavo.web.rooms.account.accounts import Me

router = APIRouter(prefix="/api/v1", tags=["account"])

# Declares in OpenAPI that these routes also work without signing in.
NO_SIGN_IN = {"security": [dict[str, list[str]]()]}
Password = Annotated[SecretStr, Field(max_length=1000)]


class Credentials(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    email: Email
    password: Password


class SignInRequest(Credentials):
    code: Annotated[str, Field(max_length=100)] | None = None


class PasswordChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    password: Password
    new_password: Password


class OwnerRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    owner_id: UUID


@router.post("/account", status_code=201, responses=problems(400, 401, 403, 409, 422), openapi_extra=NO_SIGN_IN)
async def sign_up(request: Request, services: ServicesOf, caller: OptionalCaller, wanted: Credentials) -> Me:
    """Create an account. Documents that were added anonymously in this browser are moved to it."""
    return await accounts.sign_up(request, services, caller, wanted.email, wanted.password)


@router.post("/session", responses=problems(400, 401, 403, 422), openapi_extra=NO_SIGN_IN)
async def sign_in(request: Request, services: ServicesOf, caller: OptionalCaller, wanted: SignInRequest) -> Me:
    """Sign in. Documents that were added anonymously in this browser are moved to the account.

    If the account has a second factor, `code` is required: a code from the authenticator app, or a recovery code.
    """
    return await accounts.sign_in(request, services, caller, wanted.email, wanted.password, wanted.code)


@router.get("/session", responses=problems(401))
async def session(services: ServicesOf, caller: ReadCaller) -> Me:
    """Return the current user and the account (owner) that they act for."""
    async with services.database.connection() as connection:
        return await accounts.describe(connection, caller)


class LanguageRequest(BaseModel):
    """The language of pages and emails, such as `de`. If it is null, pages use the language of the browser."""

    model_config = ConfigDict(extra="forbid")

    language: Literal["en", "de", "es", "fr", "zh"] | None


@router.patch("/session", responses=problems(401, 403, 422))
async def choose_language(services: ServicesOf, caller: KnownCaller, person: PersonId, wanted: LanguageRequest) -> Me:
    """Choose the language of pages and of the emails that Octavo sends you. The API is always in English."""
    del person
    async with services.database.transaction() as connection:
        await set_language(connection, caller, wanted.language)
        return await accounts.describe(connection, replace(caller, language=wanted.language))


@router.delete("/session", status_code=204, responses=problems(401, 403), openapi_extra=NO_SIGN_IN)
async def sign_out(request: Request, services: ServicesOf, caller: OptionalCaller) -> None:
    """End the session of this browser. An anonymous visitor loses access to their documents."""
    await accounts.sign_out(request, services, caller)


@router.put("/account/password", status_code=204, responses=problems(400, 401, 403, 422))
async def change_password(request: Request, services: ServicesOf, person: PersonId, wanted: PasswordChange) -> None:
    """Change your password and sign out all other sessions."""
    await accounts.change_password(request, services, person, wanted.password, wanted.new_password)


@router.post("/session/owner", responses=problems(400, 401, 403, 404, 422))
async def act_for(
    request: Request, services: ServicesOf, caller: OptionalCaller, person: PersonId, wanted: OwnerRequest
) -> Me:
    """Switch this browser to another account (owner) that you are a member of."""
    return await accounts.act_for(request, services, caller, person, wanted.owner_id)


keys_router = APIRouter(prefix="/api/v1/keys", tags=["account"])


class NewKeyRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")]
    scope: Scope = "write"
    expires_in_days: Annotated[int, Field(ge=1, le=3650), WHOLE] | None = None


@keys_router.get("", responses=problems(401, 403))
async def list_keys(services: ServicesOf, caller: KnownCaller) -> Page[KeyView]:
    """List your API keys, newest first. If you have the role `owner`, the keys of all members are listed."""
    async with services.database.connection() as connection:
        return Page(await callers.list_keys(connection, caller), None)


@keys_router.post("", status_code=201, responses=problems(400, 401, 403, 422))
async def make_key(
    services: ServicesOf, caller: KnownCaller, wanted: NewKeyRequest, idempotency: IdempotencyOf
) -> NewKey:
    """Create an API key. The `key` is returned only once, in this response."""
    async with services.database.transaction() as connection:
        made = await callers.make_key(
            connection, caller, name=wanted.name, scope=wanted.scope, days=wanted.expires_in_days
        )
        return await idempotency.keep(connection, made)


@keys_router.delete("/{key}", status_code=204, responses=problems(401, 403, 404, 422))
async def revoke_key(services: ServicesOf, caller: KnownCaller, key: UUID) -> None:
    """Revoke an API key. It stops working immediately."""
    async with services.database.transaction() as connection:
        await callers.revoke_key(connection, caller, key)
    services.live.recheck(caller.owner_id)


members_router = APIRouter(prefix="/api/v1/members", tags=["account"])


class NewMemberRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    email: Email
    role: Role = "member"
    limited: StrictBool = False


class MemberEdit(BaseModel):
    """Changes to a member. Only the fields that are sent are changed."""

    model_config = ConfigDict(extra="forbid")

    role: Role | None = None
    limited: StrictBool | None = None


@members_router.get("", responses=problems(401))
async def list_members(services: ServicesOf, caller: KnownCaller) -> Page[Member]:
    """List the members of the current account. A limited member sees only themselves."""
    async with services.database.connection() as connection:
        everybody = await members.list_members(connection, caller.owner_id)
    return Page([one for one in everybody if not caller.limited or one.user_id == caller.user_id], None)


@members_router.post("", status_code=201, responses=problems(400, 401, 403, 404, 409, 422))
async def add_member(
    services: ServicesOf, caller: KnownCaller, wanted: NewMemberRequest, idempotency: IdempotencyOf
) -> Member:
    """Add a person as a member. The email address must belong to an existing account."""
    async with services.database.transaction() as connection:
        added = await members.add_member(connection, caller, wanted.email, wanted.role, limited=wanted.limited)
        return await idempotency.keep(connection, added)


@members_router.patch("/{user}", responses=problems(400, 401, 403, 404, 409, 422))
async def edit_member(services: ServicesOf, caller: KnownCaller, user: UUID, wanted: MemberEdit) -> Member:
    """Change the role of a member, or whether they see only granted collections. Takes effect with their next request.

    A member who becomes limited loses the shared links that they created.
    """
    async with services.database.transaction() as connection:
        await members.lock_members(connection, caller)
        if wanted.role is not None:
            await members.change_role(connection, caller, user, wanted.role)
        if wanted.limited is not None:
            await members.limit_member(connection, caller, user, limited=wanted.limited)
        changed = await members.show_member(connection, caller, user)
    services.live.recheck(caller.owner_id)
    return changed


@members_router.delete("/{user}", status_code=204, responses=problems(401, 403, 404, 409, 422))
async def remove_member(services: ServicesOf, caller: KnownCaller, user: UUID) -> None:
    """Remove a member. Their sessions and API keys for this account stop working."""
    async with services.database.transaction() as connection:
        await members.remove_member(connection, caller, user)
    services.live.recheck(caller.owner_id)


users_router = APIRouter(prefix="/api/v1/admin/users", tags=["admin"])


@users_router.get("", responses=problems(401, 403, 422))
async def users(
    services: ServicesOf, caller: AdminCaller, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[UserAccount]:
    """List all accounts with their storage use and this month's model costs, newest first."""
    del caller
    async with services.database.connection() as connection:
        return await list_users(connection, cursor=cursor, limit=limit)


class UserEdit(LanguageRequest):
    """Changes to a person's account. If the language is null, pages use the language of the browser."""

    email: Email


@users_router.patch("", status_code=204, responses=problems(401, 403, 404, 422))
async def edit_user(services: ServicesOf, caller: AdminCaller, wanted: UserEdit) -> None:
    """Set the language of a person's pages and emails."""
    del caller
    async with services.database.transaction() as connection:
        await set_language_of(connection, wanted.email, wanted.language)
