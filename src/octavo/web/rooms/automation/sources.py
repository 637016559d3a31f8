"""The API and the settings pages for sources of documents."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

import structlog
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from octavo.core.errors import BadInput, NotFound, OctavoError
from octavo.core.extensions import ExtensionKind, extension_names
from octavo.core.formatting import format_span
from octavo.core.http import Page
from octavo.core.texts import Texts, mark
from octavo.core.texts import gettext as _
from octavo.fetch import GuardedClient
from octavo.intake.errors import ConsentRefused
from octavo.intake.sources import definitions as sources
from octavo.intake.sources.mailboxes import consent_url, exchange_code
from octavo.intake.sources.places import OPTIONS, SourcePlan, check_plan
from octavo.owners import Caller
from octavo.records.automation import (
    AfterAdding,
    FailedFile,
    SourceAccess,
    SourceKind,
    SourceOptions,
    SourceView,
    Subfolders,
    WhenChanged,
)
from octavo.web.context.callers import AdminCaller, ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import WHOLE, IfMatch, check_match, etag_of, lock_edit, problems
from octavo.web.shell.forms import Question, ask, public_address, read_form
from octavo.web.shell.frame import Frame, back_to, render
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(prefix="/api/v1")
log = structlog.get_logger()
PLAIN = r"^[^\x00-\x1f\x7f]*$"
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=PLAIN)]
Secret = Annotated[str, Field(min_length=1, max_length=4000, pattern=PLAIN)]
Address = Annotated[str, Field(min_length=1, max_length=2000, pattern=PLAIN)]
Seconds = Annotated[int, Field(ge=sources.LEAST_SECONDS, le=sources.MOST_SECONDS), WHOLE]


class OptionsRequest(BaseModel):
    """The files that a source adds, and how it handles added files. Some options apply only to some kinds of
    sources.
    """

    model_config = ConfigDict(extra="forbid")

    subfolders: Subfolders = "plain"
    after: AfterAdding = "keep"
    changed: WhenChanged = "version"
    move_to: Label | None = None
    sender: Label | None = None
    subject: Label | None = None
    attachments: StrictBool = False

    def given(self) -> dict[str, Any]:
        return self.model_dump(include=self.model_fields_set)


class SourceRequest(BaseModel):
    """A source to add.

    `path` is a folder on the server, or a URL: `imaps://host/mailbox`, `s3://bucket/prefix`, or `https://…` for WebDAV
    and feeds. For S3, the user is the access key and the password is the secret key. With `token_url` and `client_id`,
    the password is an OAuth refresh token. If `authorize_url` and `scope` are also given, the account can later be
    connected again on the settings page for sources.
    """

    model_config = ConfigDict(extra="forbid")

    kind: SourceKind
    path: Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00-\x1f\x7f]+$")]
    name: Label | None = None
    options: OptionsRequest = OptionsRequest()
    every_seconds: Seconds | None = None
    user: Label | None = None
    password: Secret | None = None
    token_url: Address | None = None
    client_id: Label | None = None
    client_secret: Secret | None = None
    endpoint: Address | None = None
    region: Label | None = None
    authorize_url: Address | None = None
    scope: Address | None = None

    def as_plan(self) -> SourcePlan:
        access = SourceAccess(**{name: getattr(self, name) for name in SourceAccess.__dataclass_fields__})
        options = self.options.given()
        more = (self.password, self.client_secret, self.every_seconds)
        return SourcePlan(self.kind, self.path, self.name, options, access, *more)


class SourceEdit(BaseModel):
    """Changes to a source. Fields that are not sent stay unchanged."""

    model_config = ConfigDict(extra="forbid")

    name: Label | None = None
    options: OptionsRequest | None = None
    every_seconds: Seconds | None = None
    paused: StrictBool | None = None
    password: Secret | None = None
    client_secret: Secret | None = None


@router.get("/sources", tags=["sources"], responses=problems(401))
async def list_sources(services: ServicesOf, caller: ReadCaller) -> Page[SourceView]:
    """List your sources of documents, oldest first."""
    async with services.database.connection() as connection:
        return Page(await sources.list_sources(connection, caller.owner_id), None)


@router.post("/sources", tags=["sources"], status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_source(
    services: ServicesOf, caller: AdminCaller, wanted: SourceRequest, idempotency: IdempotencyOf
) -> SourceView:
    """Add a source of documents: a folder, a mailbox, S3, WebDAV or a feed.

    Requires an administrator, because a source can access files and servers that other users cannot access.
    """
    async with services.database.transaction() as connection:
        added = await sources.add_source(connection, services.settings, caller.owner_id, wanted.as_plan())
        return await idempotency.keep(connection, added)


@router.get("/sources/{source}", tags=["sources"], responses=problems(401, 404, 422))
async def show_source(services: ServicesOf, caller: ReadCaller, source: UUID, response: Response) -> SourceView:
    """Return one source."""
    async with services.database.connection() as connection:
        found = await sources.show_source(connection, caller.owner_id, source)
    response.headers["etag"] = source_etag(found)
    return found


def source_etag(found: SourceView) -> str:
    return etag_of(found.name, found.options, found.every_seconds, found.state == "paused")


@router.patch("/sources/{source}", tags=["sources"], responses=problems(400, 401, 403, 404, 409, 422))
async def edit_source(
    services: ServicesOf,
    caller: AdminCaller,
    source: UUID,
    wanted: SourceEdit,
    response: Response,
    if_match: IfMatch = None,
) -> SourceView:
    """Change the name, the options, the interval or the password of a source, or pause it. Requires an administrator.

    The URL and the user cannot be changed, so that a password is never sent to another server.
    """
    async with services.database.transaction() as connection:
        if if_match is not None:
            await lock_edit(connection, if_match, source)
            check_match(if_match, source_etag(await sources.show_source(connection, caller.owner_id, source)))
        if wanted.paused is not None:
            await sources.pause_source(connection, caller.owner_id, source, paused=wanted.paused)
        edited = await sources.edit_source(
            connection,
            services.settings,
            caller.owner_id,
            source,
            name=wanted.name,
            options=wanted.options.given() if wanted.options else None,
            every_seconds=wanted.every_seconds,
            password=wanted.password,
            client_secret=wanted.client_secret,
        )
    response.headers["etag"] = source_etag(edited)
    return edited


@router.delete("/sources/{source}", tags=["sources"], status_code=204, responses=problems(401, 403, 404, 422))
async def delete_source(services: ServicesOf, caller: AdminCaller, source: UUID) -> None:
    """Delete a source. Its files and the documents made from them are kept. Requires an administrator."""
    async with services.database.transaction() as connection:
        await sources.delete_source(connection, caller.owner_id, source)


@router.get("/sources/{source}/failed", tags=["sources"], responses=problems(401, 404, 422))
async def list_failed_files(services: ServicesOf, caller: ReadCaller, source: UUID) -> Page[FailedFile]:
    """List the files of a source that could not be added, newest first, and the reasons."""
    async with services.database.connection() as connection:
        return Page(await sources.list_failed(connection, caller.owner_id, source), None)


@router.post("/sources/{source}/run", tags=["sources"], responses=problems(401, 403, 404, 422))
async def run_source(services: ServicesOf, caller: WriteCaller, source: UUID) -> SourceView:
    """Check a source for new files now. Files that could not be added are retried."""
    async with services.database.transaction() as connection:
        return await sources.run_source(connection, caller.owner_id, source)


@router.post("/sources/{source}/pause", tags=["sources"], responses=problems(401, 403, 404, 422))
async def pause_source(services: ServicesOf, caller: WriteCaller, source: UUID) -> SourceView:
    """Pause a source. Files that arrive during the pause are added when the source is resumed."""
    async with services.database.transaction() as connection:
        return await sources.pause_source(connection, caller.owner_id, source, paused=True)


@router.post("/sources/{source}/resume", tags=["sources"], responses=problems(401, 403, 404, 422))
async def resume_source(services: ServicesOf, caller: WriteCaller, source: UUID) -> SourceView:
    """Resume a paused source."""
    async with services.database.transaction() as connection:
        return await sources.pause_source(connection, caller.owner_id, source, paused=False)


pages_router = APIRouter(include_in_schema=False, prefix="/settings")
WRONG = 422
SUBFOLDERS = Texts(
    {
        "plain": "Add their files",
        "collections": "Become collections",
        "tags": "Become tags",
        "ignore": "Are ignored",
    }
)
CHANGED = Texts({"version": "Become a new version", "new": "Become a new document"})
AFTER_FILE = Texts({"keep": "Stay where they are", "move": "Are moved to the sub-folder “added”"})
AFTER_MAIL = Texts({"keep": "Stay as they are", "seen": "Are marked as seen", "move": "Are moved to another mailbox"})


@dataclass(frozen=True, slots=True)
class KindWords:
    """The texts for one kind of source: its name and description, and the label, hint and button of its form."""

    name: str
    about: str
    label: str
    hint: str
    verb: str


KINDS: dict[SourceKind, KindWords] = {
    "folder": KindWords(
        mark("Folder"),
        mark("Each file that is put into a folder on the server becomes a document."),
        mark("Folder on the server"),
        mark("The absolute path, such as /srv/scans."),
        mark("Watch folder"),
    ),
    "imap": KindWords(
        mark("Mailbox"),
        mark("Each email becomes a document, and each attachment a document below it."),
        mark("Mailbox"),
        mark("The server and the mailbox, such as imaps://mail.example.org/INBOX."),
        mark("Watch mailbox"),
    ),
    "s3": KindWords(
        "S3",
        mark("Each object under a prefix of a bucket becomes a document."),
        mark("Bucket and prefix"),
        mark("Such as s3://bucket/scans."),
        mark("Watch bucket"),
    ),
    "webdav": KindWords(
        "WebDAV",
        mark("Each file in a folder on a WebDAV server, such as Nextcloud, becomes a document."),
        mark("Address of the folder"),
        mark("Such as https://cloud.example.org/remote.php/dav/files/ann/Scans."),
        mark("Watch folder"),
    ),
    "rss": KindWords(
        mark("Feed"),
        mark("The page of each new entry of an RSS or Atom feed becomes a document."),
        mark("Address of the feed"),
        mark("Such as https://example.org/feed.xml."),
        mark("Watch feed"),
    ),
    "lmtp": KindWords(
        mark("Email address"),
        mark("Each email that your mail server delivers to Octavo becomes a document, with its attachments below it."),
        mark("Name before the @"),
        mark("Such as scans."),
        mark("Add address"),
    ),
    "extension": KindWords(
        mark("Extension"),
        mark("An extension lists and reads the files. Each file becomes a document."),
        mark("Address"),
        mark("It begins with the name of an installed extension, such as notes://server/folder."),
        mark("Watch source"),
    ),
}
_OPTIONS = ("subfolders", "after", "changed", "move_to", "sender", "subject")
_VALUES = (
    *("user", "password", "token_url", "client_id", "client_secret", "endpoint", "region", "name"),
    *("authorize_url", "scope"),
)
_SECRETS = frozenset({"password", "client_secret"})
SOURCE_WRONG = Texts({"path": "Enter the address of the source.", "kind": "Choose a kind."})
EDIT_WRONG = Texts(
    {"name": "Enter a name of at most 200 characters.", "every_seconds": "Enter a number of seconds, at most 86400."}
)


@pages_router.get("/sources")
async def sources_page(
    request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "", kind: str = "folder"
) -> Response:
    return await _show_sources(request, services, frame, said=said, kind=kind if kind in KINDS else "folder")


async def _show_sources(
    request: Request,
    services: Services,
    frame: Frame,
    status: int = 200,
    **values: Any,  # noqa: ANN401
) -> Response:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        found = await sources.list_sources(connection, owner)
        failed = {one.id: await sources.list_failed(connection, owner, one.id) for one in found if one.counts.failed}
    choices = {"subfolders": SUBFOLDERS, "changed": CHANGED, "after_file": AFTER_FILE, "after_mail": AFTER_MAIL}
    offered = [kind for kind in KINDS if kind != "extension" or extension_names(ExtensionKind.SOURCE)]
    values["mail_providers"] = {"": _("Another provider")} | {name: one.name for name, one in MAIL_PROVIDERS.items()}
    known = {"sources": found, "failed": failed, "kinds": KINDS, "offered": offered}
    values["due_in"] = {one.id: next_run_in(one, frame.now) for one in found}
    values["mail_place"] = services.settings.lmtp_listen
    return show(request, "sources", frame, status, **known, **choices, **values)


def next_run_in(source: SourceView, now: datetime) -> str | None:
    """Describe when a source is checked again. Returns None if it is due."""
    return format_span(source.next_run - now) if source.next_run and source.next_run > now else None


@pages_router.get("/sources/{source}/edit")
async def edit_source_page(
    request: Request, services: ServicesOf, caller: AdminCaller, frame: SettingsFrame, source: UUID
) -> Response:
    async with services.database.connection() as connection:
        found = await sources.show_source(connection, caller.owner_id, source)
    options = {name: value for name, value in asdict(found.options).items() if value}
    chosen = {"name": found.name, "every_seconds": found.every_seconds, **options}
    return await _show_sources(request, services, frame, edited=found, kind=found.kind, chosen=chosen)


@pages_router.post("/sources/{source}/edit")
async def change_source(
    request: Request, services: ServicesOf, caller: AdminCaller, frame: SettingsFrame, source: UUID
) -> Response:
    """Change the name, the interval and the options of a source. An empty password field changes nothing."""
    async with services.database.connection() as connection:
        found = await sources.show_source(connection, caller.owner_id, source)
    form = await request.form()
    chosen = {name: value.strip() for name, value in form.items() if isinstance(value, str) and value.strip()}
    wanted, wrong = read_form(SourceEdit, read_edit(found, chosen), EDIT_WRONG)
    if wanted is not None:
        try:
            async with services.database.transaction() as connection:
                await sources.edit_source(
                    connection,
                    services.settings,
                    caller.owner_id,
                    source,
                    name=wanted.name,
                    options=wanted.options.given() if wanted.options else None,
                    every_seconds=wanted.every_seconds,
                    password=wanted.password,
                    client_secret=wanted.client_secret,
                )
        except BadInput as error:
            wrong = {"form": error.line}
        else:
            return back_to("/settings/sources?said=source_edit")
    shown = {name: value for name, value in chosen.items() if name not in _SECRETS}
    more = {"wrong": wrong, "chosen": shown, "kind": found.kind, "edited": found}
    return await _show_sources(request, services, frame, WRONG, **more)


def read_edit(source: SourceView, chosen: dict[str, str]) -> dict[str, Any]:
    """Convert the form to the format of the API. If the field of an option is empty, the option is cleared."""
    cleared = SourceOptions()
    options: dict[str, Any] = {name: chosen.get(name, getattr(cleared, name)) for name in OPTIONS[source.kind]}
    if "attachments" in options:
        options["attachments"] = "attachments" in chosen
    given: dict[str, Any] = {"name": chosen.get("name", "")} | ({"options": options} if options else {})
    if every := chosen.get("every_seconds"):
        given["every_seconds"] = int(every) if every.isascii() and every.isdecimal() else every
    return given | {name: chosen[name] for name in _SECRETS if name in chosen}


@pages_router.post("/sources")
async def save_source(request: Request, services: ServicesOf, caller: AdminCaller, frame: SettingsFrame) -> Response:
    """Add a source from the submitted form, ignoring empty fields."""
    form = await request.form()
    chosen = {name: value.strip() for name, value in form.items() if isinstance(value, str) and value.strip()}
    wanted, wrong = read_form(SourceRequest, read_source(with_provider(chosen)), SOURCE_WRONG)
    if wanted is not None:
        try:
            if "connect" in chosen:
                return await _connect_new(request, services, caller, wanted)
            async with services.database.transaction() as connection:
                await sources.add_source(connection, services.settings, caller.owner_id, wanted.as_plan())
        except BadInput as error:
            wrong = {"path": error.line}
        else:
            return back_to("/settings/sources?said=source")
    kind = chosen.get("kind", "folder")
    shown = {name: value for name, value in chosen.items() if name not in _SECRETS}
    more = {"wrong": wrong, "chosen": shown, "kind": kind if kind in KINDS else "folder"}
    return await _show_sources(request, services, frame, WRONG, **more)


def read_source(chosen: dict[str, str]) -> dict[str, Any]:
    """Convert the fields of the form to the format of the API."""
    options: dict[str, Any] = {name: chosen[name] for name in _OPTIONS if name in chosen}
    options |= {"attachments": True} if "attachments" in chosen else {}
    given = {"kind": chosen.get("kind", "folder"), "path": chosen.get("path", ""), "options": options}
    return given | {name: chosen[name] for name in _VALUES if name in chosen}


# Connecting an account ----------------------------------------------------------------------------------------------

COOKIE = "octavo_consent"
CALLBACK = "/settings/sources/callback"
Text = Annotated[str, Query(max_length=4000)]


@dataclass(frozen=True, slots=True)
class MailProvider:
    """The OAuth URLs and the OAuth scope for connecting accounts at a large mail provider."""

    name: str
    authorize_url: str
    token_url: str
    scope: str


_MICROSOFT = "https://login.microsoftonline.com/common/oauth2/v2.0"
MAIL_PROVIDERS = {
    "google": MailProvider(
        "Google",
        "https://accounts.google.com/o/oauth2/v2/auth",
        "https://oauth2.googleapis.com/token",
        "https://mail.google.com/",
    ),
    "microsoft": MailProvider(
        "Microsoft",
        f"{_MICROSOFT}/authorize",
        f"{_MICROSOFT}/token",
        "https://outlook.office.com/IMAP.AccessAsUser.All offline_access",
    ),
}


def with_provider(chosen: dict[str, str]) -> dict[str, str]:
    """Fill in the URLs and the scope of the chosen mail provider."""
    found = MAIL_PROVIDERS.get(chosen.get("provider", ""))
    known = {"authorize_url": found.authorize_url, "token_url": found.token_url, "scope": found.scope} if found else {}
    return chosen | known


async def _connect_new(request: Request, services: Services, caller: Caller, wanted: SourceRequest) -> Response:
    """Check a new source that has no token yet, and show the link to the consent page of the provider."""
    plan = replace(wanted.as_plan(), awaits_consent=True, password=None)
    await check_plan(services.settings, plan)
    content = wanted.model_dump_json(exclude={"password"}, exclude_unset=True)
    async with services.database.transaction() as connection:
        begun = await sources.begin_consent(connection, services.settings, caller.owner_id, content)
    return _show_consent(request, services, plan.access, begun)


@pages_router.post("/sources/{source}/connect")
async def connect_again(request: Request, services: ServicesOf, caller: AdminCaller, source: UUID) -> Response:
    """Connect the account of a source again, for example because the provider no longer accepts its token."""
    async with services.database.transaction() as connection:
        found = await sources.show_source(connection, caller.owner_id, source)
        if not found.access.authorize_url:
            raise NotFound
        begun = await sources.begin_consent(connection, services.settings, caller.owner_id, "", source)
    return _show_consent(request, services, found.access, begun)


def _show_consent(request: Request, services: Services, access: SourceAccess, begun: sources.Consent) -> Response:
    """Show a link to the consent page of the provider.

    The page has a link and no form, because the content security policy forbids forms that submit to another site.
    """
    redirect = public_address(request, services, CALLBACK)
    url = consent_url(access, begun.state, begun.verifier, redirect)
    shown = {"url": url, "host": urlsplit(url).hostname, "user": access.user, "redirect": redirect, "error": None}
    page = render(request, "source_connect.html", None, 200, **shown)
    page.set_cookie(
        COOKIE,
        begun.browser,
        max_age=sources.CONSENT_SECONDS,
        path=CALLBACK,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return page


@pages_router.get("/sources/callback")
async def come_back(
    request: Request,
    services: ServicesOf,
    caller: AdminCaller,
    state: Text = "",
    code: Text = "",
    error: Text = "",
) -> Response:
    """Store the token of an account after the provider has redirected the browser back with a one-time code."""
    try:
        async with services.database.transaction() as connection:
            browser = request.cookies.get(COOKIE, "")
            returned = await sources.take_consent(connection, services.settings, caller.owner_id, state, browser)
        if error or not code:
            raise ConsentRefused(_("You cancelled the sign-in, or the provider does not allow it."))
        await _connect(request, services, caller.owner_id, returned, code)
    except OctavoError as refusal:
        log.warning("an account was not connected", code=refusal.code, reason=refusal.detail)
        return render(request, "source_connect.html", None, refusal.status, error=refusal)
    answer = back_to("/settings/sources?said=source")
    answer.delete_cookie(COOKIE, path=CALLBACK, samesite="lax", secure=request.url.scheme == "https")
    return answer


async def _connect(
    request: Request, services: Services, owner: UUID, returned: sources.ReturnedConsent, code: str
) -> None:
    """Exchange the code for a token. Then add the source, or replace the token of the existing source."""
    settings, source, redirect = services.settings, returned.source_id, public_address(request, services, CALLBACK)

    async def exchange(access: SourceAccess, secret: str | None) -> str:
        async with GuardedClient(frozenset(settings.fetch_allow)) as fetch:
            return await exchange_code(fetch, access, secret, code, returned.verifier, redirect)

    if source is None:
        plan = SourceRequest.model_validate_json(returned.content).as_plan()
        token = await exchange(plan.access, plan.client_secret)
        async with services.database.transaction() as connection:
            await sources.add_source(connection, settings, owner, replace(plan, password=token))
        return
    async with services.database.connection() as connection:
        found = await sources.show_source(connection, owner, source)
        secret = await sources.client_secret_of(connection, settings, source)
    token = await exchange(found.access, secret)
    async with services.database.transaction() as connection:
        await sources.edit_source(connection, settings, owner, source, password=token, client_secret=secret)
        await sources.run_source(connection, owner, source)


@pages_router.post("/sources/{source}/delete")
async def drop_source(services: ServicesOf, caller: AdminCaller, source: UUID) -> Response:
    async with services.database.transaction() as connection:
        await sources.delete_source(connection, caller.owner_id, source)
    return back_to("/settings/sources?said=source_delete")


@pages_router.post("/sources/{source}/{action}")
async def act_on_source(
    services: ServicesOf, caller: WriteCaller, source: UUID, action: Literal["run", "pause", "resume"]
) -> Response:
    """Run, pause or resume a source."""
    async with services.database.transaction() as connection:
        if action == "run":
            await sources.run_source(connection, caller.owner_id, source)
        else:
            await sources.pause_source(connection, caller.owner_id, source, paused=action == "pause")
    return back_to(f"/settings/sources?said=source_{action}")


@pages_router.get("/sources/{source}/delete")
async def ask_to_delete_source(
    request: Request, services: ServicesOf, caller: AdminCaller, frame: SettingsFrame, source: UUID
) -> Response:
    async with services.database.connection() as connection:
        found = await sources.show_source(connection, caller.owner_id, source)
    question = Question(
        title=_("Stop watching “%(name)s”?", name=found.name),
        text=_("No more documents are added from this source. Its documents and files are kept."),
        action=f"/settings/sources/{source}/delete",
        verb=_("Stop watching"),
        keep="/settings/sources",
    )
    return ask(request, question, frame)
