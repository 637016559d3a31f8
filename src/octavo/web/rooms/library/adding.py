"""Forms that add links, texts, files, sample documents, and replacements for failed files. They work without scripts.

Also reads documents that the API receives as JSON (a link, a video or text), and unlocks password-protected PDFs in the
sandbox. The password is used once and not stored.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar
from uuid import UUID

from fastapi import APIRouter, Form, Header, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError

from octavo.core.errors import BadInput, Empty, TooLarge
from octavo.core.formatting import format_number
from octavo.core.texts import gettext as _
from octavo.core.types import Extraction, new_id
from octavo.extract.pdf.pdf_file import unlock_in_sandbox
from octavo.intake import Intake, IntakeLimits, NewUpload, Outcome, clean_filename
from octavo.intake.links import NewSource, link_source, paste_source, video_source
from octavo.intake.upload_rows import Policy, with_details
from octavo.intake.uploads import OnCreated, ignore_created
from octavo.library import changes
from octavo.library.changes import Edit, retry_document
from octavo.library.documents import show_document
from octavo.library.files import find_locked, keep_unlocked
from octavo.owners import Caller
from octavo.records.documents import Retried
from octavo.storage import Stored, copy_to_file
from octavo.web.context.callers import EditCaller, WriteCaller
from octavo.web.context.intake import (
    IntakeOf,
    LimitsOf,
    as_member,
    as_seen,
    check_extraction,
    check_link,
    early_limited,
)
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import ConcurrencyLimit
from octavo.web.http.multipart import FIELD_BYTES, FormReader
from octavo.web.http.multipart import Form as Sent
from octavo.web.http.parameters import ExtractionField
from octavo.web.http.problems import describe_validation_errors
from octavo.web.shell.forms import LIBRARY, NoFileSelected, local_path, wants_json
from octavo.web.shell.frame import LibraryFrame, back_to, render

router = APIRouter(include_in_schema=False)
SAMPLES = Path(__file__).with_name("samples")
ContentType = Annotated[str, Header()]
Password = Annotated[SecretStr, Form(min_length=1, max_length=500)]
MOST_CHARACTERS = 1_000_000
# Up to four bytes for each character of the text, and the other fields.
BOX_BYTES = 4 * MOST_CHARACTERS + FIELD_BYTES
PLAIN = r"^[^\x00-\x1f\x7f]*$"
# Longer texts must be added as files.
PASTE_BYTES = 16 << 20
# JSON may escape a two-byte character as six bytes.
_JSON_FACTOR = 3
_ADDRESS_BYTES = 64 << 10
Line = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Origin = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00-\x1f\x7f]*$")]
_ANY_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_LINK = re.compile(r"https?://\S+", re.IGNORECASE)


class SameFile(BadInput):
    """This is the same file. Choose a different one."""

    code = "SAME_FILE"
    status = 409


class AddOptions(BaseModel):
    """The form options for files, links and text. Empty fields are ignored, so that forms can send all of them."""

    title: Annotated[str, Field(max_length=500, pattern=PLAIN)] = ""
    source: Annotated[str, Field(max_length=2000, pattern=PLAIN)] = ""
    duplicates: Policy = "reuse"
    extraction: Extraction = Extraction.PLAIN
    collection: Annotated[str, Field(max_length=200, pattern=PLAIN)] = ""

    def apply(self, upload: NewUpload) -> NewUpload:
        extraction = None if self.extraction is Extraction.PLAIN else self.extraction
        details = {"title": self.title.strip(), "source": self.source.strip(), "collection": self.collection.strip()}
        given = with_details(upload, **details, extraction=extraction)
        return replace(given, duplicates=self.duplicates)


class AddForm(AddOptions):
    text: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""
    back: str = LIBRARY

    def as_source(self, allow: frozenset[str]) -> NewSource:
        """Convert the entered link or text to the source of a new document."""
        written = self.text.strip()
        if not written:
            raise Empty(_("Paste a link or text first."))
        title, source = self.title.strip() or None, self.source.strip() or None
        if _LINK.fullmatch(written):
            made = link_source(written, allow=allow, title=title)
        else:
            made = paste_source(self.text, title=title, attribution=source)
        return replace(made, upload=self.apply(made.upload))


def read_box(fields: Mapping[str, str]) -> AddForm:
    try:
        return AddForm.model_validate({name: value for name, value in fields.items() if name in AddForm.model_fields})
    except ValidationError as error:
        raise BadInput(describe_validation_errors(error.errors())) from None


def added(request: Request, outcomes: list[Outcome], back: str = LIBRARY) -> Response:
    """Return the response after documents were added: JSON for scripts, a redirect for forms."""
    if wants_json(request):
        return JSONResponse(jsonable_encoder([asdict(one) for one in outcomes]), 202)
    return back_to(local_path(back, LIBRARY))


@router.post("/actions/add")
async def add(
    request: Request,
    services: ServicesOf,
    caller: EditCaller,
    intake: IntakeOf,
    limits: LimitsOf,
    form: Annotated[AddForm, Form()],
) -> Response:
    """Add a web page, a video or a text."""
    outcome = await _take_text(services, caller, intake, limits, form)
    return added(request, [outcome], form.back)


async def _take_text(
    services: Services, caller: Caller, intake: Intake, limits: IntakeLimits, form: AddForm
) -> Outcome:
    check_extraction(services.settings, caller, form.extraction)
    source = form.as_source(frozenset(services.settings.fetch_allow))
    await check_link(services, source.upload)
    async with services.limits.transfers.one(caller.owner_id, limits.concurrent):
        upload = await as_member(services, caller, source.upload)
        return as_seen(caller, await intake.take(caller.owner_id, upload, source.body, limits))


@router.post("/actions/upload")
async def upload(
    request: Request,
    services: ServicesOf,
    caller: EditCaller,
    intake: IntakeOf,
    limits: LimitsOf,
    content_type: ContentType = "",
) -> Response:
    """Add the selected file, and the link or text that was entered with it."""
    form = await FormReader(content_type, request.stream(), field_bytes=BOX_BYTES).read()
    box = read_box(form.fields)
    if not form.filename and not box.text.strip():
        raise NoFileSelected
    outcomes: list[Outcome] = []
    if form.filename:
        check_extraction(services.settings, caller, box.extraction)
        async with services.limits.transfers.one(caller.owner_id, limits.concurrent):
            body = early_limited(request, limits, form.file)
            named = await as_member(services, caller, box.apply(as_upload(form)))
            outcomes.append(as_seen(caller, await intake.take(caller.owner_id, named, body, limits)))
    if box.text.strip():
        outcomes.append(await _take_text(services, caller, intake, limits, box))
    return added(request, outcomes, box.back)


@router.post("/actions/samples")
async def add_samples(request: Request, caller: WriteCaller, intake: IntakeOf, limits: LimitsOf) -> Response:
    """Add three short, related sample texts for trying out Octavo."""
    files = sorted(path for path in SAMPLES.iterdir() if path.suffix in {".md", ".txt"} and path.stem != "LICENSE")
    outcomes = [
        await intake.take(caller.owner_id, NewUpload(path.name, "text/plain"), path.read_bytes(), limits)
        for path in files
    ]
    return added(request, outcomes)


# Replacing a file that cannot be read ------------------------------------------------------------------------------


@router.get("/documents/{document}/replace")
async def choose_replacement(request: Request, services: ServicesOf, frame: LibraryFrame, document: UUID) -> Response:
    async with services.database.connection() as connection:
        found = await show_document(connection, frame.caller.owner_id, document)
    return render(request, "replace.html", frame, document=found)


@router.post("/actions/documents/{document}/replace")
async def replace_file(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    intake: IntakeOf,
    limits: LimitsOf,
    document: UUID,
    content_type: ContentType = "",
) -> Response:
    """Replace a document with a new file. The old document is moved to the trash.

    Its tags and collection are copied to the new document, unless a document with the new file's content already
    exists.
    """
    owner = caller.owner_id
    async with services.database.connection() as connection:
        old = await show_document(connection, owner, document)
    async with services.limits.transfers.one(owner, limits.concurrent):
        form = await read_file(request, content_type)
        body = early_limited(request, limits, form.file)
        outcome = await intake.take(owner, as_upload(form), body, limits)
    if old.id in {outcome.document_id, outcome.duplicate_of}:
        raise SameFile
    async with services.database.transaction() as connection:
        if outcome.duplicate_of is None and (old.tags or old.collection):
            edit = Edit(tags=old.tags, collection=old.collection)
            await changes.edit_documents(connection, owner, [outcome.document_id], edit)
        await changes.trash_documents(connection, owner, [old.id])
    return added(request, [outcome])


@router.post("/actions/documents/{document}/unlock")
async def unlock(services: ServicesOf, caller: WriteCaller, document: UUID, password: Password) -> Response:
    """Process a password-protected document again with its password. The password is not stored."""
    await services.shared(FileUnlocker).retry(caller.owner_id, document, password.get_secret_value())
    return back_to(LIBRARY)


async def read_file(request: Request, content_type: str) -> Sent:
    form = await FormReader(content_type, request.stream()).read()
    if not form.filename:
        raise NoFileSelected
    return form


def as_upload(form: Sent, version_of: UUID | None = None) -> NewUpload:
    return NewUpload(clean_filename(form.filename), form.content_type, version_of=version_of)


MOST_WAITING = 20
BUSY_SECONDS = 5.0


class FileUnlocker:
    """Stores unlocked copies of password-protected files, so that they can be processed.

    Each web process unlocks one file at a time.
    """

    def __init__(self, services: Services) -> None:
        self._database = services.database
        self._bucket = services.bucket
        self._sandbox = services.sandbox
        self._limit = ConcurrencyLimit(1, MOST_WAITING, BUSY_SECONDS)

    async def retry(
        self,
        owner: UUID,
        document: UUID,
        password: str,
        from_stage: str | None = None,
        extraction: Extraction = Extraction.PLAIN,
        *,
        on_retried: OnCreated = ignore_created,
    ) -> Retried:
        """Process a document again from its unlocked file. A wrong password raises `Encrypted` and changes nothing."""
        opened = await self._unlock(owner, document, password)
        async with self._database.transaction() as connection:
            unused = await keep_unlocked(connection, owner, document, opened) if opened else []
            retried = await retry_document(connection, owner, document, from_stage, extraction)
            await on_retried(connection, retried)
        await self._bucket.delete(unused)
        return retried

    async def _unlock(self, owner: UUID, document: UUID, password: str) -> Stored | None:
        """Store an unlocked copy of the file and return it. The caller records the copy in the database.

        Returns None if the file needs no password.
        """
        async with self._database.connection() as connection:
            key = await find_locked(connection, owner, document)
        async with self._limit.take():
            with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
                locked, opened = Path(folder, "locked"), Path(folder, "opened")
                await copy_to_file(self._bucket, key, locked)
                if not await unlock_in_sandbox(self._sandbox, locked, password, opened):
                    return None
                return await self._bucket.put(f"unlocked/{document}/{new_id()}.pdf", opened)


# Documents sent as JSON ---------------------------------------------------------------------------------------------


class JsonSource(BaseModel):
    """A document sent as JSON. `source` says where the document comes from, in words or as a URL."""

    model_config = ConfigDict(extra="forbid", strict=True)
    key: ClassVar[str]

    title: Line | None = None
    source: Origin | None = None
    duplicates: Policy = "reuse"
    extraction: ExtractionField = Extraction.PLAIN
    version_of: Annotated[UUID, Field(strict=False)] | None = None
    collection: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] | None = None

    def as_source(self, allow: frozenset[str]) -> NewSource:
        raise NotImplementedError


class LinkSource(JsonSource):
    """A web page, or the transcript of a video if `url` is the URL of a YouTube video."""

    key = "url"
    url: str = Field(min_length=1)

    def as_source(self, allow: frozenset[str]) -> NewSource:
        return link_source(self.url, allow=allow, title=self.title, duplicates=self.duplicates)


class VideoSource(JsonSource):
    """The transcript of a YouTube video."""

    key = "youtube_url"
    youtube_url: str = Field(min_length=1)

    def as_source(self, allow: frozenset[str]) -> NewSource:
        del allow
        return video_source(self.youtube_url, title=self.title, duplicates=self.duplicates)


class TextSource(JsonSource):
    """Pasted text."""

    key = "text"
    text: str

    def as_source(self, allow: frozenset[str]) -> NewSource:
        del allow
        return paste_source(self.text, title=self.title, attribution=self.source, duplicates=self.duplicates)


_KINDS: dict[str, type[JsonSource]] = {kind.key: kind for kind in (LinkSource, VideoSource, TextSource)}
# Refers to the types in the OpenAPI description.
SOURCES = tuple(_KINDS.values())
SCHEMA: dict[str, Any] = {"oneOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in SOURCES]}


async def read_json_source(body: AsyncIterable[bytes], upload_bytes: int, allow: frozenset[str]) -> NewSource:
    """Read a source from a JSON body. Stops reading as soon as the body is longer than any valid source."""
    limit = min(upload_bytes, PASTE_BYTES)
    read = bytearray()
    async for chunk in body:
        read += chunk
        if len(read) > _JSON_FACTOR * limit + _ADDRESS_BYTES:
            raise _too_long(limit)
    source = await asyncio.to_thread(lambda: _read_source(_parse(bytes(read)), allow))
    if len(source.body) > limit:
        raise _too_long(limit)
    return source


def _read_source(given: JsonSource, allow: frozenset[str]) -> NewSource:
    source = given.as_source(allow)
    extraction = None if given.extraction is Extraction.PLAIN else given.extraction
    upload = with_details(source.upload, source=given.source, extraction=extraction, collection=given.collection)
    return replace(source, upload=replace(upload, version_of=given.version_of))


def _parse(body: bytes) -> JsonSource:
    try:
        fields = _ANY_OBJECT.validate_json(body)
        present = [name for name in _KINDS if fields.get(name) is not None]
        if len(present) != 1:
            raise BadInput(_("Send exactly one of `url`, `youtube_url` and `text`."))
        return _KINDS[present[0]].model_validate(fields)
    except ValidationError as error:
        raise BadInput(describe_validation_errors(error.errors())) from None


def _too_long(limit: int) -> TooLarge:
    return TooLarge(
        _("Pasted text is limited to %(limit)s bytes. Add longer text as a file.", limit=format_number(limit))
    )
