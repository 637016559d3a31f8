"""Checks the addresses and options of new sources, without connecting to them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from octavo.core.settings import Settings
from octavo.fetch import BadUrl, parse_url, refuse_private
from octavo.fetch.urls import is_allowed
from octavo.intake.errors import BadSource
from octavo.intake.links import canonical_url
from octavo.intake.sources.extension_sources import check_address
from octavo.intake.sources.folders import check_folder
from octavo.records.automation import SourceAccess, SourceKind, SourceOptions

MAIL_PORTS = {"imaps": 993, "imap": 143}
DEFAULT_REGION = "us-east-1"
# The seconds between two checks: the default and the minimum.
INTERVALS: dict[SourceKind, tuple[int, int]] = {
    "folder": (10, 2),
    "imap": (60, 10),
    "s3": (300, 10),
    "webdav": (300, 10),
    "rss": (900, 60),
    "lmtp": (86_400, 86_400),  # emails are delivered, so there is nothing to check
    "extension": (300, 10),
}
_FILES = frozenset({"subfolders", "changed"})
OPTIONS: dict[SourceKind, frozenset[str]] = {
    "folder": _FILES | {"after"},
    "imap": frozenset({"after", "move_to", "sender", "subject", "attachments"}),
    "s3": _FILES,
    "webdav": _FILES,
    "rss": frozenset(),
    "lmtp": frozenset(),
    "extension": _FILES,
}
_ACCESS: dict[SourceKind, frozenset[str]] = {
    "folder": frozenset(),
    "imap": frozenset({"user", "token_url", "client_id", "authorize_url", "scope"}),
    "s3": frozenset({"user", "endpoint", "region"}),
    "webdav": frozenset({"user"}),
    "rss": frozenset(),
    "lmtp": frozenset(),
    "extension": frozenset({"user"}),
}
# The part of a mail address before the @.
_LOCAL_PART = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source to add, as a user described it. `options` contains only the options that were set.

    `awaits_consent` is true if the password, an OAuth refresh token, is not known until the user has connected the
    account.
    """

    kind: SourceKind
    path: str
    name: str | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    access: SourceAccess = field(default_factory=SourceAccess)
    password: str | None = None
    client_secret: str | None = None
    every_seconds: int | None = None
    awaits_consent: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The checked address of a source, its default name, and the settings for connecting to it."""

    address: str
    name: str
    access: SourceAccess = field(default_factory=SourceAccess)


async def check_plan(settings: Settings, plan: SourcePlan) -> Place:
    """Check a source before it is added. Raises `BadSource` or another subclass of `BadInput`."""
    _refuse_others("option", set(plan.options), OPTIONS[plan.kind], plan.kind)
    given = {name for name, value in asdict(plan.access).items() if value}
    _refuse_others("value", given, _ACCESS[plan.kind], plan.kind)
    if (plan.password or plan.client_secret) and not plan.access.user:
        raise BadSource("Enter the user name for this password.")
    check_options(plan.kind, plan.options)
    check_interval(plan.kind, plan.every_seconds)
    return await _PLACES[plan.kind](settings, plan)


def check_options(kind: SourceKind, options: dict[str, Any]) -> SourceOptions:
    """Return the options of a source. Raises `BadSource` if one of them does not apply to its kind."""
    _refuse_others("option", set(options), OPTIONS[kind], kind)
    made = SourceOptions(**options)
    if kind == "folder" and made.after == "seen":
        raise BadSource("after: for a folder, use keep or move.")
    if kind == "imap" and made.after == "move" and not made.move_to:
        raise BadSource("move_to: enter the mailbox to which emails are moved.")
    return made


def check_move(address: str, options: SourceOptions) -> None:
    """Raise `BadSource` if added emails would be moved to the watched mailbox, where they would be found again."""
    here, there = unquote(urlsplit(address).path.removeprefix("/")), options.move_to or ""
    inbox = "inbox"  # the only mailbox name that is not case-sensitive
    if options.after == "move" and (there == here or there.lower() == here.lower() == inbox):
        raise BadSource("move_to: choose a mailbox other than the watched one.")


def check_interval(kind: SourceKind, seconds: int | None) -> int:
    usual, least = INTERVALS[kind]
    if seconds is not None and seconds < least:
        raise BadSource(f"every_seconds: must be at least {least} for this kind of source.")
    return seconds or usual


def _refuse_others(what: str, given: set[str], known: frozenset[str], kind: SourceKind) -> None:
    if others := sorted(given - known):
        raise BadSource(f"{others[0]}: this {what} does not apply to the kind {kind}.")


async def _folder(settings: Settings, plan: SourcePlan) -> Place:
    folder = await asyncio.to_thread(check_folder, settings, plan.path)
    return Place(str(folder), folder.name or "/")


async def _mailbox(settings: Settings, plan: SourcePlan) -> Place:
    """Check the address of a mailbox, such as `imaps://mail.example.org/INBOX`."""
    access = plan.access
    if not access.user or not (plan.password or plan.awaits_consent):
        raise BadSource("Enter the user name and password of the mailbox.")
    if bool(access.token_url) != bool(access.client_id):
        raise BadSource("OAuth needs both token_url and client_id.")
    if (plan.awaits_consent or access.scope) and not (access.authorize_url and access.token_url):
        raise BadSource("To connect an account, enter authorize_url, token_url and client_id.")
    scheme, _, rest = plan.path.partition("://")
    if scheme not in MAIL_PORTS or not rest:
        raise BadSource("Use an address such as imaps://mail.example.org/INBOX.")
    try:
        target = parse_url(f"https://{rest}")
    except BadUrl as error:
        raise BadSource(error.line) from None
    port = urlsplit(target.url).port or MAIL_PORTS[scheme]
    allow = frozenset(settings.fetch_allow)
    refuse_private(replace(target, port=port), allow)
    if scheme == "imap" and not is_allowed(allow, target.host, port):
        raise BadSource("Passwords are sent only over TLS. Use imaps://, or allow the server with OCTAVO_FETCH_ALLOW.")
    for url in filter(None, (access.token_url, access.authorize_url)):
        _check_server(settings, url, has_secret=True)
    name = unquote(urlsplit(target.url).path.strip("/")) or "INBOX"
    host = f"[{target.host}]" if ":" in target.host else target.host
    address = f"{scheme}://{quote(access.user, safe='')}@{host}:{port}/{quote(name)}"
    check_move(address, check_options(plan.kind, plan.options))
    return Place(address, f"{access.user} {name}"[:200], access)


async def _bucket(settings: Settings, plan: SourcePlan) -> Place:
    """Check the address of a prefix in an S3 bucket, such as `s3://bucket/scans/`."""
    scheme, _, rest = plan.path.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme != "s3" or not 3 <= len(bucket) <= 63 or not set(bucket) <= _BUCKET_CHARACTERS:  # noqa: PLR2004
        raise BadSource("Use an address such as s3://bucket/prefix.")
    if not plan.access.user or not plan.password:
        raise BadSource("Enter the access key as the user name, and the secret key as the password.")
    endpoint = plan.access.endpoint
    if endpoint:
        endpoint = _check_server(settings, endpoint, has_secret=True).rstrip("/")
    access = replace(plan.access, endpoint=endpoint, region=plan.access.region or DEFAULT_REGION)
    return Place(f"s3://{bucket}/{prefix.strip('/')}", (prefix.strip("/").rpartition("/")[2] or bucket)[:200], access)


async def _dav_folder(settings: Settings, plan: SourcePlan) -> Place:
    """Check the URL of a folder on a WebDAV server."""
    url = _check_server(settings, plan.path, has_secret=bool(plan.password))
    url = url if url.endswith("/") else f"{url}/"
    last = unquote(urlsplit(url).path.strip("/").rpartition("/")[2])
    return Place(url, (last or urlsplit(url).hostname or url)[:200], plan.access)


async def _feed(settings: Settings, plan: SourcePlan) -> Place:
    url = _check_server(settings, plan.path, has_secret=False)
    return Place(url, (urlsplit(url).hostname or url)[:200])


async def _mail_address(settings: Settings, plan: SourcePlan) -> Place:
    """Check the local part of an email address that receives documents, such as `scans` in `scans@example.org`."""
    del settings
    local = plan.path.partition("@")[0].lower()
    if not _LOCAL_PART.fullmatch(local):
        raise BadSource("Use letters, digits, dots and hyphens for the part before the @, such as scans.")
    return Place(local, local)


def _check_server(settings: Settings, url: str, *, has_secret: bool) -> str:
    """Check a URL and return it in canonical form.

    A secret may be sent without TLS only to servers that the operator allows.
    """
    canonical = canonical_url(url)
    target, allow = parse_url(canonical), frozenset(settings.fetch_allow)
    refuse_private(target, allow)
    if has_secret and target.scheme != "https" and not is_allowed(allow, target.host, target.port):
        raise BadSource("Passwords are sent only over TLS. Use https://, or allow the server with OCTAVO_FETCH_ALLOW.")
    return canonical


async def _extension(_settings: Settings, plan: SourcePlan) -> Place:
    address = check_address(plan.path)
    return Place(address, address[:200], plan.access)


_BUCKET_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-")
_PLACES: dict[SourceKind, Callable[[Settings, SourcePlan], Coroutine[Any, Any, Place]]] = {
    "folder": _folder,
    "imap": _mailbox,
    "s3": _bucket,
    "webdav": _dav_folder,
    "rss": _feed,
    "lmtp": _mail_address,
    "extension": _extension,
}
