"""Adds, changes, pauses and deletes the sources of an owner."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from octavo.core.errors import NotFound
from octavo.core.settings import Settings
from octavo.core.types import hash_token, new_id, new_token
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.intake.errors import BadSource, ConsentRefused
from octavo.intake.sources.places import OPTIONS, SourcePlan, check_interval, check_move, check_options, check_plan
from octavo.intake.sources.reading import SourceSecret, open_secret, seal_secret
from octavo.library.collections import clean_label
from octavo.library.errors import NameTaken
from octavo.owners.audit import record
from octavo.records.automation import FailedFile, SourceAccess, SourceCounts, SourceOptions, SourceState, SourceView

QUERIES = load_queries("sources")
LEAST_SECONDS, MOST_SECONDS = 2, 86_400
MOST_FAILED = 100
# How long a person has to give consent at the provider.
CONSENT_SECONDS = 600


async def list_sources(connection: Connection, owner: UUID) -> list[SourceView]:
    """List the sources of an owner, oldest first."""
    return [_as_view(row) for row in await fetch_rows(connection, QUERIES.list_sources, {"owner": owner})]


async def show_source(connection: Connection, owner: UUID, source: UUID) -> SourceView:
    for one in await list_sources(connection, owner):
        if one.id == source:
            return one
    raise NotFound


async def add_source(connection: Connection, settings: Settings, owner: UUID, plan: SourcePlan) -> SourceView:
    """Add a source. Only for administrators, because a source can read files and servers that others cannot access."""
    place = await check_plan(settings, plan)
    options, made = check_options(plan.kind, plan.options), new_id()
    secret = SourceSecret(plan.password, plan.client_secret) if plan.password else None
    values: Row = {"id": made, "owner": owner, "kind": plan.kind, "address": place.address}
    values |= {"name": clean_label(plan.name or place.name, "source"), "options": Jsonb(asdict(options))}
    access = asdict(place.access)
    consent = {name: access.pop(name) for name in ("authorize_url", "scope")}
    values |= {"every": check_interval(plan.kind, plan.every_seconds), "access": Jsonb(access)}
    values |= {"consent": Jsonb(consent) if consent["authorize_url"] else None}
    values |= {"secret": seal_secret(settings, secret) if secret else None}
    await _save(connection, QUERIES.insert_source, values)
    await record(connection, owner, "source.add", made, source=plan.kind)
    return await show_source(connection, owner, made)


async def edit_source(
    connection: Connection,
    settings: Settings,
    owner: UUID,
    source: UUID,
    *,
    name: str | None = None,
    options: dict[str, Any] | None = None,
    every_seconds: int | None = None,
    password: str | None = None,
    client_secret: str | None = None,
) -> SourceView:
    """Change a source. If it is renamed, rules that refer to it are updated.

    Its address and user name cannot be changed, so that its password is never sent to another server.
    """
    found = await show_source(connection, owner, source)
    if options:
        _check_edit(found, options)
    check_interval(found.kind, every_seconds)
    secret = await _changed_secret(connection, settings, found, password, client_secret)
    values: Row = {"id": source, "owner": owner, "name": clean_label(name, "source") if name else None}
    values |= {"options": Jsonb(options) if options else None, "every": every_seconds}
    values |= {"secret": seal_secret(settings, secret) if secret else None}
    await _save(connection, QUERIES.edit_source, values)
    edited = await show_source(connection, owner, source)
    if edited.name != found.name:
        await connection.execute(QUERIES.rename_in_rules, {"owner": owner, "old": found.name, "new": edited.name})
    await record(connection, owner, "source.edit", source)
    return edited


async def _changed_secret(
    connection: Connection, settings: Settings, found: SourceView, password: str | None, client_secret: str | None
) -> SourceSecret | None:
    """Return the new secrets of a source. Returns None if neither the password nor the client secret changes.

    If only one of them is passed, the other one keeps its stored value.
    """
    if password is None and client_secret is None:
        return None
    if not found.access.user:
        raise BadSource("This source has no user name, so it needs no password.")
    if password and (client_secret or not found.access.token_url):
        return SourceSecret(password, client_secret)
    (row,) = await fetch_rows(connection, QUERIES.secret_of, {"source": found.id})
    old = open_secret(settings, row["secret"])
    return SourceSecret(password or old.password, client_secret or old.client_secret)


def _check_edit(found: SourceView, options: dict[str, Any]) -> None:
    kept = {name: value for name, value in asdict(found.options).items() if name in OPTIONS[found.kind]}
    changed = check_options(found.kind, kept | options)
    if found.kind == "imap":
        check_move(found.path, changed)


# Connecting an account ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Consent:
    """An OAuth sign-in that has been started. `state` is sent in the URL, and `browser` is stored in a cookie."""

    state: str
    browser: str
    verifier: str


@dataclass(frozen=True, slots=True)
class ReturnedConsent:
    """An OAuth sign-in that the provider has redirected back to Octavo.

    `content` describes the source to add. `source_id` is set if the source already exists.
    """

    verifier: str
    content: str
    source_id: UUID | None


async def begin_consent(
    connection: Connection, settings: Settings, owner: UUID, content: str, source: UUID | None = None
) -> Consent:
    """Start an OAuth sign-in and store it, so that only the same browser can complete it. `content` is encrypted."""
    begun = Consent(new_token(), new_token(), new_token())
    sealed = seal_secret(settings, SourceSecret(begun.verifier, content))
    values: Row = {"state_hash": hash_token(begun.state), "browser_hash": hash_token(begun.browser), "owner": owner}
    values |= {"source": source, "content": sealed, "seconds": CONSENT_SECONDS}
    await connection.execute(QUERIES.insert_consent, values)
    return begun


async def take_consent(
    connection: Connection, settings: Settings, owner: UUID, state: str, browser: str
) -> ReturnedConsent:
    """Return the OAuth sign-in with this state, and delete it, so that it can be used only once.

    Raises `ConsentRefused` if it has expired, or was started in another browser or for another account.
    """
    values = {"state_hash": hash_token(state), "browser_hash": hash_token(browser), "owner": owner}
    rows = await fetch_rows(connection, QUERIES.take_consent, values)
    if not rows:
        raise ConsentRefused(
            "The sign-in was not started in this browser, is already complete or took too long. Start again."
        )
    opened = open_secret(settings, rows[0]["content"])
    return ReturnedConsent(opened.password, opened.client_secret or "", rows[0]["source_id"])


async def client_secret_of(connection: Connection, settings: Settings, source: UUID) -> str | None:
    """Return the OAuth client secret of a source. Returns None if it has none."""
    (row,) = await fetch_rows(connection, QUERIES.secret_of, {"source": source})
    return open_secret(settings, row["secret"]).client_secret


async def pause_source(connection: Connection, owner: UUID, source: UUID, *, paused: bool) -> SourceView:
    """Pause or resume a source."""
    await show_source(connection, owner, source)
    await connection.execute(QUERIES.pause_source, {"id": source, "owner": owner, "paused": paused})
    await record(connection, owner, "source.pause" if paused else "source.resume", source)
    return await show_source(connection, owner, source)


async def run_source(connection: Connection, owner: UUID, source: UUID) -> SourceView:
    """Check a source as soon as possible. Files that could not be added are retried."""
    await show_source(connection, owner, source)
    await connection.execute(QUERIES.run_source, {"id": source, "owner": owner})
    return await show_source(connection, owner, source)


async def delete_source(connection: Connection, owner: UUID, source: UUID) -> None:
    """Stop watching a source. The documents that it added, and the files at the source, are kept."""
    if not await fetch_rows(connection, QUERIES.delete_source, {"id": source, "owner": owner}):
        raise NotFound
    await record(connection, owner, "source.delete", source)


async def list_failed(connection: Connection, owner: UUID, source: UUID) -> list[FailedFile]:
    """List the files that could not be added, newest first."""
    await show_source(connection, owner, source)
    values = {"owner": owner, "source": source, "most": MOST_FAILED}
    return [FailedFile(**row) for row in await fetch_rows(connection, QUERIES.failed_files, values)]


async def _save(connection: Connection, query: bytes, values: Row) -> None:
    try:
        async with connection.transaction():
            await connection.execute(query, values)
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name in {"sources_address", "sources_mail_address"}:
            raise BadSource("This source is already watched.") from None
        raise NameTaken(values["name"]) from None


def _as_view(row: Row) -> SourceView:
    consent: dict[str, str | None] = row["consent"] or {}
    return SourceView(
        id=row["id"],
        kind=row["kind"],
        name=row["name"],
        path=row["address"],
        state=_state(row),
        options=SourceOptions(**row["options"]),
        access=SourceAccess(**row["access"], **consent),
        every_seconds=row["every_seconds"],
        last_run=row["last_run_at"],
        next_run=None if row["paused"] else row["next_run_at"],
        error=row["error"],
        counts=SourceCounts(row["added"], row["known"], row["waiting"], row["failed"]),
        job_id=row["job_id"],
        created_at=row["created_at"],
    )


def _state(row: Row) -> SourceState:
    if row["paused"]:
        return "paused"
    if row["error"]:
        return "failing"
    return "adding" if row["busy"] else "watching"
