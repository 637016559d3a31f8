"""Mailboxes on IMAP servers. Each email is added as a file, and its attachments become documents, too.

An email is identified by the UIDVALIDITY of its mailbox and its UID. The server never uses the same pair for another
email. The position of a source is the last UID that was found. It is saved in the same transaction as the rows of the
emails, so each email is added exactly once, even if a connection is lost or a process is killed.

Also implements OAuth 2 for mail servers. An access token is requested with a refresh token (RFC 6749, section 6). A
refresh token is requested with the authorisation code that a provider sends after a person has connected their account
(section 4.1, with PKCE).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlencode, urlsplit

from octavo.core.errors import BadInput, NetworkFailed, OctavoError, TooLarge
from octavo.core.formatting import format_bytes
from octavo.core.types import pkce_challenge
from octavo.fetch import AddressRefused, FetchLimits, GuardedClient
from octavo.intake.errors import BadSource, ConsentRefused, MailGone, SourceRefused
from octavo.intake.sources.imap import (
    PART_BYTES,
    Credentials,
    Mailbox,
    MailSummary,
    ServerAddress,
    named_errors,
    read_headers,
)
from octavo.intake.sources.reading import Connections, Look, ReadFile, SeenFile, Source, SourceSecret
from octavo.intake.upload_rows import NewUpload
from octavo.records.automation import SourceAccess

LIMITS = FetchLimits(bytes=64 << 10, seconds=20.0)
# A token is not used in the last seconds before it expires.
MARGIN_SECONDS = 60.0
DEFAULT_SECONDS = 300.0
_OK, _REFUSED = 200, frozenset({400, 401, 403})
_TOKENS: dict[TokenRequest, tuple[str, float]] = {}
MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The parameters of a request to the token server."""

    url: str
    client_id: str
    client_secret: str | None
    refresh_token: str


async def access_token(
    fetch: GuardedClient, request: TokenRequest, on_rotation: Callable[[str], Awaitable[None]]
) -> str:
    """Return an access token. If the server replaces the refresh token, `on_rotation` is called with the new one."""
    token, until = _TOKENS.get(request, ("", 0.0))
    if time.monotonic() < until:
        return token
    answer = await _ask(fetch, request)
    token = answer.get("access_token")
    if not isinstance(token, str) or not token.isprintable():
        raise BadSource("The token server returned no access token.")
    if len(_TOKENS) >= MOST_KEPT:
        _TOKENS.clear()
    _TOKENS[request] = (token, time.monotonic() + _lifetime(answer) - MARGIN_SECONDS)
    replaced = answer.get("refresh_token")
    if isinstance(replaced, str) and replaced and replaced != request.refresh_token:
        await on_rotation(replaced)
    return token


def forget_token(request: TokenRequest) -> None:
    """Drop an access token that the mail server refused, so that the next call requests a new one."""
    _TOKENS.pop(request, None)


async def _ask(fetch: GuardedClient, request: TokenRequest) -> dict[str, Any]:
    values = {"grant_type": "refresh_token", "refresh_token": request.refresh_token, "client_id": request.client_id}
    refusal = SourceRefused(
        "The token server refused the refresh token. Connect the account again, or enter a new refresh token."
    )
    return await _post(fetch, request.url, values, request.client_secret, refusal)


async def _post(
    fetch: GuardedClient, url: str, values: dict[str, str], client_secret: str | None, refusal: OctavoError
) -> dict[str, Any]:
    values |= {"client_secret": client_secret} if client_secret else {}
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    answer = await fetch.post(url, urlencode(values).encode(), headers, LIMITS)
    if answer.status in _REFUSED:
        raise refusal
    try:
        said: object = json.loads(answer.body) if answer.status == _OK else None
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise BadSource(f"The token server returned status {answer.status}.")
    return cast("dict[str, Any]", said)


def consent_url(access: SourceAccess, state: str, verifier: str, redirect: str) -> str:
    """Return the URL at which a person allows access to their mailbox."""
    query = {"response_type": "code", "client_id": access.client_id or "", "redirect_uri": redirect, "state": state}
    query |= {"code_challenge": pkce_challenge(verifier), "code_challenge_method": "S256"}
    query |= {"scope": access.scope} if access.scope else {}
    # Google returns a refresh token only with these two. Other providers ignore what they do not know.
    query |= {"access_type": "offline", "prompt": "consent", "login_hint": access.user or ""}
    address = access.authorize_url or ""
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"


async def exchange_code(
    fetch: GuardedClient, access: SourceAccess, client_secret: str | None, code: str, verifier: str, redirect: str
) -> str:
    """Request a refresh token with the authorisation code from the provider's redirect."""
    values = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": redirect}
    values |= {"client_id": access.client_id or ""}
    refusal = ConsentRefused("The provider rejected the code. It may have been used before, or it has expired.")
    answer = await _post(fetch, access.token_url or "", values, client_secret, refusal)
    token = answer.get("refresh_token")
    if not isinstance(token, str) or not token or not token.isprintable():
        raise ConsentRefused("The provider returned no refresh token. Allow offline access in the provider's settings.")
    return token


def _lifetime(answer: dict[str, Any]) -> float:
    given = answer.get("expires_in")
    return float(given) if isinstance(given, int | float) and 0 < given < 1e6 else DEFAULT_SECONDS  # noqa: PLR2004


MOST_MAILS = 5000
# Pauses before each attempt to reopen a lost connection. If the last attempt fails, the job fails and is retried.
RETRY_PAUSES = (0.1, 0.5, 2.0)
_THREADS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="octavo-mail")
T = TypeVar("T")


class MailboxReader:
    """Reads one mailbox. Connects when it is first used, and reconnects if the connection is lost."""

    settle_seconds = 0.0
    makes_versions = False

    def __init__(self, source: Source, connections: Connections) -> None:
        self._source = source
        self._options = source.options
        self._connections = connections
        self._opened: Mailbox | None = None

    async def look(self) -> Look:
        def find(mailbox: Mailbox) -> Look:
            known = self._source.position or {}
            after = known.get("uid", 0) if known.get("uidvalidity") == mailbox.validity else 0
            uids, end = mailbox.search(after, MOST_MAILS)
            files = [SeenFile(f"{mailbox.validity}/{one.uid}", one.bytes) for one in self._wanted(mailbox, uids)]
            return Look(files, complete=False, position={"uidvalidity": mailbox.validity, "uid": end})

        return await self._call(find)

    def _wanted(self, mailbox: Mailbox, uids: Sequence[int]) -> list[MailSummary]:
        options = self._options
        needs_headers = bool(options.sender or options.subject)
        found = mailbox.summaries(uids, headers=needs_headers, structure=options.attachments)
        return [one for one in found if self._matches(one)]

    def _matches(self, mail: MailSummary) -> bool:
        options = self._options
        return (
            (options.sender or "").casefold() in mail.sender.casefold()
            and (options.subject or "").casefold() in mail.subject.casefold()
            and (mail.has_attachments or not options.attachments)
        )

    async def read(self, file: SeenFile) -> ReadFile:
        limit = self._connections.settings.upload_bytes
        if file.bytes > limit:
            raise TooLarge(f"The limit is {format_bytes(limit)}.")
        first = await self._part(file, 0)
        _, subject = read_headers(first)
        name = f"{subject[:150]}.eml" if subject else f"Mail {file.name}.eml"
        return ReadFile(NewUpload(name.replace("/", " "), "message/rfc822"), self._rest(file, first))

    async def _rest(self, file: SeenFile, first: bytes) -> AsyncGenerator[bytes]:
        yield first
        offset, part = len(first), first
        # A server may send less than the part that was requested, and report a wrong size for the email.
        while part and (len(part) >= PART_BYTES or offset < file.bytes):
            try:
                part = await self._part(file, offset)
            except BadInput as error:  # some servers refuse to read beyond the end
                if len(part) >= PART_BYTES or isinstance(error, BadSource | SourceRefused):
                    raise
                return
            offset += len(part)
            yield part

    async def _part(self, file: SeenFile, offset: int) -> bytes:
        validity, uid = map(int, file.path.split("/"))

        def read(mailbox: Mailbox) -> bytes:
            if mailbox.validity != validity:
                raise MailGone("The server has renumbered its emails. This email will be added under its new number.")
            return mailbox.read_part(uid, offset)

        return await self._call(read)

    def parents(self, file: SeenFile) -> tuple[str, ...]:
        del file
        return ()

    async def finish(self, files: Sequence[SeenFile]) -> Sequence[SeenFile]:
        def mark(mailbox: Mailbox) -> None:
            here = [int(one.name) for one in files if one.path.startswith(f"{mailbox.validity}/")]
            if here and self._options.after == "move":
                mailbox.move(here, self._options.move_to or "Octavo")
            elif here:
                mailbox.mark_seen(here)

        await self._call(mark)
        return files

    async def aclose(self) -> None:
        opened, self._opened = self._opened, None
        if opened:
            await self._in_thread(opened.close)

    async def _call(self, call: Callable[[Mailbox], T]) -> T:
        """Call a function with the mailbox. If the connection is lost, reconnect and call the function again."""
        for pause in RETRY_PAUSES:
            with suppress(NetworkFailed):
                return await self._once(call)
            await asyncio.sleep(pause)
        return await self._once(call)

    async def _once(self, call: Callable[[Mailbox], T]) -> T:
        def run(mailbox: Mailbox) -> T:
            with named_errors():
                return call(mailbox)

        try:
            return await self._in_thread(partial(run, await self._open()))
        except NetworkFailed:
            await self.aclose()
            raise

    async def _open(self) -> Mailbox:
        if self._opened is None:
            parts = urlsplit(self._source.address)
            host, port = parts.hostname or "", parts.port or 0
            try:
                addresses = await self._connections.fetch.addresses(host, port)
            except AddressRefused as error:
                raise BadSource(error.line) from None
            tls = self._connections.fetch.ssl_context if parts.scheme == "imaps" else None
            place = ServerAddress(host, port, addresses, tls)
            name = unquote(parts.path.removeprefix("/"))
            self._opened = await self._signed_in(place, name)
        return self._opened

    async def _signed_in(self, place: ServerAddress, name: str) -> Mailbox:
        secret, access = self._connections.open_secret(self._source), self._source.access
        user, writable = access.user or "", self._options.after != "keep"
        if not access.token_url:
            credentials = Credentials(user, secret.password)
            return await self._in_thread(partial(Mailbox, place, credentials, name, writable=writable))
        request = TokenRequest(access.token_url, access.client_id or "", secret.client_secret, secret.password)
        token = await access_token(self._connections.fetch, request, partial(self._rotate, secret))
        try:
            credentials = Credentials(user, token=token)
            return await self._in_thread(partial(Mailbox, place, credentials, name, writable=writable))
        except SourceRefused:
            forget_token(request)
            raise

    async def _rotate(self, secret: SourceSecret, password: str) -> None:
        await self._connections.replace_password(self._source, secret, password)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(_THREADS, call)
