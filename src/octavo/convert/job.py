"""The conversion job, which converts a PDF to validated XML.

It has a single stage, because it is cheap to repeat from the start. If the rules do not find all required fields, the
job asks a model for the missing ones. If no model or budget is available, they stay missing.

If a remote conversion service is configured, the job calls it instead of applying Octavo's own rules. Only the operator
can set the service's URL. The service receives the PDF as the body of a POST request, with the mapping's name in the
`X-Mapping` header. It returns XML that matches the mapping's schema.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.ai.calls import Caller, gate_of_service
from octavo.ai.gateway import Gateway
from octavo.ai.tasks import EXTRACT_FIELDS, FieldsToFind, FieldToFind
from octavo.convert.corrections import Change, Corrected, carry_over, confirm_facts, keep_correction, share_facts
from octavo.convert.errors import GatewayPaused, GatewayStopped, NothingFound
from octavo.convert.in_sandbox import convert_in_sandbox, convert_pdf_in_sandbox
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.stored_mappings import StoredMapping, mapping_of_conversion
from octavo.convert.results import Author, StoredResult, add_revision, save_revision, store_result
from octavo.convert.rules.engine import missing_fields
from octavo.convert.rules.result_xml import SchemaMismatch, read_xml
from octavo.convert.values import Conversion, ModelAnswer, ModelLookup, Suggestion, conversion_to_record
from octavo.core.errors import (
    AnswerUnusable,
    BadModelKey,
    Cancelled,
    ContentBlocked,
    GatewayFailed,
    GatewayRefused,
    GatewayTimedOut,
    ModelRefused,
    NetworkFailed,
    NoModel,
    NotFound,
    OctavoError,
    OverBudget,
    RateLimited,
    TimedOut,
    TokenLimit,
    TooLarge,
)
from octavo.core.http import requested_wait
from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.database import Connection, load_queries
from octavo.extract.ocr.recognition import Recognition
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.facts.layout import text_in_columns
from octavo.facts.words import sheets_from_json
from octavo.fetch import FetchLimits, FetchResponse, GuardedClient
from octavo.fetch.urls import parse_url
from octavo.jobs.job_run import LeaseLost, Run
from octavo.library.errors import SourceGone
from octavo.library.facts import list_facts
from octavo.records.documents import FactView
from octavo.sandbox import Sandbox
from octavo.storage import Bucket, copy_to_file

JOBS = load_queries("jobs")
RESULT_BYTES = 16 << 20
_PROBE_EXTRA_SECONDS = 10
_OK, _REDIRECT, _TOO_MANY, _FAILURE = 200, 300, 429, 500
_MOST_DETAIL = 200


@dataclass(frozen=True, slots=True)
class RemoteService:
    run: Run[Any]
    settings: Settings
    bucket: Bucket

    async def convert(self, key: str, mapping: StoredMapping) -> Conversion:
        """Convert one file. Raises errors with the codes GW_4XX, GW_5XX and GW_TIMEOUT."""
        await self._wait_for_circuit()
        limit = self.settings.conversion_gateway_bytes
        try:
            body = await self.bucket.read(key, limit=limit)
        except TooLarge:
            raise TooLarge(f"The conversion service accepts at most {limit:,} bytes.") from None
        response = await self._post(body, mapping.name)
        try:
            return read_xml(response.body, await mapping.read_in_thread(), "gateway")
        except SchemaMismatch as error:
            raise GatewayFailed(
                f"The response is not valid XML for the mapping {mapping.name}: {error}"[:_MOST_DETAIL]
            ) from None

    @property
    def _address(self) -> str:
        return self.settings.conversion_gateway_url or ""

    async def _wait_for_circuit(self) -> None:
        seconds = self.settings.conversion_gateway_seconds + _PROBE_EXTRA_SECONDS
        values = {"gate": gate_of_service(self._address), "seconds": seconds}
        async with self.run.database.transaction() as connection:
            row = await (await connection.execute(QUERIES.gateway_pause, values)).fetchone()
        if row and row[0] and self.settings.conversion_gateway_policy == "fail":
            raise GatewayStopped
        if row and row[0]:
            error = GatewayPaused()
            error.retry_after_seconds = row[0]
            raise error

    async def _post(self, body: bytes, mapping: str) -> FetchResponse:
        """Send one request to the service, and record it as an event with the URL, the status and the duration."""
        target = parse_url(self._address)
        allow = frozenset({f"{target.host}:{target.port}"})
        headers = {"Content-Type": "application/pdf", "Accept": "application/xml", "X-Mapping": mapping}
        limits = FetchLimits(RESULT_BYTES, self.settings.conversion_gateway_seconds)
        started = time.monotonic()
        try:
            async with aclosing(GuardedClient(allow)) as client:
                response = await client.post(self._address, body, headers, limits)
        except (NetworkFailed, TimedOut, TooLarge) as error:
            await self._report(None, started, well=False)
            raise _as_gateway(error) from None
        await self._report(response.status, started, well=response.status < _FAILURE)
        if problem := _problem(response):
            raise problem
        return response

    async def _report(self, status: int | None, started: float, *, well: bool) -> None:
        """Record the result of a request, but only if this worker still holds the lease of the job.

        A worker that has lost its lease must not write.
        """
        duration = round((time.monotonic() - started) * 1000)
        detail: JSON = {"address": self._address, "status": status, "duration_ms": duration}
        async with self.run.database.transaction() as connection:
            await self._hold_lease(connection)
            await connection.execute(QUERIES.report_gateway_call, {"job": self.run.job.id, "detail": Jsonb(detail)})
            most = self.settings.conversion_gateway_failures
            counted = {"gate": gate_of_service(self._address), "well": well, "most": most}
            await connection.execute(QUERIES.gateway_answered, counted)

    async def _hold_lease(self, connection: Connection) -> None:
        lease = {"job": self.run.job.id, "token": self.run.job.lease_token}
        row = await (await connection.execute(JOBS.hold_lease, lease)).fetchone()
        if row is None or not row[0]:
            raise LeaseLost


def _as_gateway(error: OctavoError) -> OctavoError:
    return GatewayTimedOut() if isinstance(error, TimedOut) else GatewayFailed(error.line)


def _problem(response: FetchResponse) -> OctavoError | None:
    if _OK <= response.status < _REDIRECT:
        return None
    if response.status >= _FAILURE:
        return GatewayFailed(f"It returned status {response.status}.")
    if response.status == _TOO_MANY:
        error = RateLimited("The conversion service is busy.")
        error.retry_after_seconds = requested_wait(response.headers)
        return error
    return GatewayRefused(f"It returned status {response.status}.")


log = structlog.get_logger()
QUERIES = load_queries("conversions")
STAGE = "converted"
# After these errors, the job continues with the values found by rules: a retry would not help, or only after a person
# has fixed the cause.
_CONTINUE_WITHOUT_MODEL = (
    AnswerUnusable,
    BadModelKey,
    ContentBlocked,
    ModelRefused,
    NoModel,
    OverBudget,
    TokenLimit,
)


@dataclass(frozen=True, slots=True)
class ConversionInput:
    """The input of a conversion job.

    `key` is the storage key of the source file. It is None if the file has been deleted. `sha256` is the checksum of
    the file.
    """

    owner_id: UUID
    document_id: UUID | None
    mapping: str
    mapping_sha256: str
    key: str | None
    sha256: str | None


class EarlierCorrections(NamedTuple):
    """Corrections of an earlier conversion, applied to this one.

    `history` lists all earlier changes, and `person` is the name of the last person who made one.
    """

    corrected: Corrected
    history: list[Change]
    person: str | None


@dataclass(frozen=True, slots=True)
class ConversionJob:
    """One attempt to run a conversion job."""

    run: Run[Any]
    settings: Settings
    bucket: Bucket
    sandbox: Sandbox
    recognition: Recognition
    gateway: Gateway

    async def convert(self) -> JSON:
        results: list[tuple[Conversion, EarlierCorrections | None, StoredResult, Mapping]] = []

        async def work() -> JSON:
            """Convert the file. The XML is stored before a database row refers to it."""
            source, mapping = await self._load()
            conversion = await self._convert(source, mapping)
            earlier = await self._earlier_corrections(source, conversion, mapping)
            folder = f"conversions/{self.run.job.id}/{self.run.job.lease_token}"
            final = earlier.corrected.conversion if earlier else conversion
            stored = await store_result(self.bucket, folder, final, mapping)
            results.append((conversion, earlier, stored, await mapping.read_in_thread()))
            return {"values": len(final.values), "missing": list(final.missing)}

        async def save(connection: Connection, output: JSON) -> None:
            del output
            await self._save(connection, *results[-1])

        return await self.run.stage(STAGE, work, save=save)

    async def _save(
        self,
        connection: Connection,
        found: Conversion,
        earlier: EarlierCorrections | None,
        result: StoredResult,
        mapping: Mapping,
    ) -> None:
        """Save the values that were found.

        If the same content was corrected before, save the corrected values as a second revision.
        """
        conversion, days = self.run.job.id, self.settings.conversion_result_days
        await share_facts(connection, conversion, earlier.corrected.conversion if earlier else found, mapping)
        if earlier is None:
            await save_revision(connection, conversion, result, days)
            return
        await add_revision(connection, conversion, conversion_to_record(found), days)
        author = Author("person", person=earlier.person)
        await save_revision(connection, conversion, result, days, author, earlier.corrected.changes)
        await keep_correction(connection, conversion, self.settings.correction_days, earlier.history)

    async def _earlier_corrections(
        self, source: ConversionInput, conversion: Conversion, mapping: StoredMapping
    ) -> EarlierCorrections | None:
        """Apply earlier corrections of the same content to this conversion.

        They come from an earlier conversion with any version of the same mapping, and from facts that a person
        confirmed for the document. Returns None if there are none.
        """
        values = {"owner": source.owner_id, "sha256": source.sha256, "mapping": mapping.name, "id": self.run.job.id}
        async with self.run.database.connection() as connection:
            row = await (await connection.execute(QUERIES.earlier_corrections, values)).fetchone()
            facts = await _facts(connection, source)
        read = await mapping.read_in_thread()
        found, corrected, kept = (json.loads(one) for one in row) if row else (None, None, None)
        history: list[Change] = kept or []
        carried = carry_over(conversion, read, found, corrected) if row else None
        confirmed = confirm_facts(carried.conversion if carried else conversion, read, facts)
        names = [str(one["person"]) for one in history if one.get("person")]
        person = names[-1] if names else None
        if confirmed is None:
            return EarlierCorrections(carried, history, person) if carried else None
        changes = [*(carried.changes if carried else []), *confirmed.changes]
        return EarlierCorrections(Corrected(confirmed.conversion, changes), history, person)

    async def _load(self) -> tuple[ConversionInput, StoredMapping]:
        async with (
            self.run.database.connection() as connection,
            connection.cursor(row_factory=class_row(ConversionInput)) as cursor,
        ):
            await cursor.execute(QUERIES.work, {"id": self.run.job.id})
            source = await cursor.fetchone()
            if source is None:
                raise Cancelled
            return source, await mapping_of_conversion(connection, source.owner_id, self.run.job.id, source.mapping)

    async def _convert(self, source: ConversionInput, mapping: StoredMapping) -> Conversion:
        if source.key is None:
            raise SourceGone
        if self.settings.conversion_gateway_url:
            return await RemoteService(self.run, self.settings, self.bucket).convert(source.key, mapping)
        conversion = await self._convert_here(source.key, source.sha256, mapping)
        required = {field.name for field in (await mapping.read_in_thread()).fields if field.required}
        if required and required <= set(conversion.missing):
            raise NothingFound
        return conversion

    async def _convert_here(self, key: str, checksum: str | None, mapping: StoredMapping) -> Conversion:
        with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
            path = Path(folder) / "source"
            await copy_to_file(self.bucket, key, path, checksum)
            pdf = PdfInSandbox(self.sandbox, path, limits=self.sandbox.limits, recognition=self.recognition)
            conversion, words = await convert_pdf_in_sandbox(pdf, mapping.text, mapping.file)
        read = await mapping.read_in_thread()
        lookup = await self._ask_for_missing(words, conversion, read) if words else None
        if words and lookup and lookup.answers:
            suggestions = [Suggestion(one.name, one.value, one.quote) for one in lookup.answers]
            conversion = await convert_in_sandbox(self.sandbox, words, mapping.text, mapping.file, suggestions)
        return replace(conversion, model_lookup=lookup)

    async def _ask_for_missing(self, words: bytes, conversion: Conversion, mapping: Mapping) -> ModelLookup | None:
        """Ask a model for the missing required fields. Returns None if no field is missing or no model is configured.

        The model's answers are suggestions. The sandbox verifies them against the document.
        """
        missing = [one for one in missing_fields(conversion, mapping) if one.name in conversion.missing]
        if not missing:
            return None
        names = tuple(one.name for one in missing)
        fields = [FieldToFind(one.name, one.type, one.labels) for one in missing]
        job = self.run.job
        caller = Caller(job.owner_id, job.document_id, job.id, job.lease_token)
        text = await asyncio.to_thread(_page_text, words)
        try:
            answer = await self.gateway.ask(EXTRACT_FIELDS, FieldsToFind(fields, text), caller)
        except _CONTINUE_WITHOUT_MODEL as error:
            log.info("no model for missing fields", job=str(job.id), code=error.code)
            return None if isinstance(error, NoModel) else ModelLookup(EXTRACT_FIELDS.name, names, error=error.code)
        answers = tuple(ModelAnswer(one.name, one.value, one.quote) for one in answer.output.fields)
        return ModelLookup(EXTRACT_FIELDS.name, names, answer.made_by, answers)


async def _facts(connection: Connection, source: ConversionInput) -> list[FactView]:
    if source.document_id is None:
        return []
    try:
        return await list_facts(connection, source.owner_id, source.document_id)
    except NotFound:  # the document is in the trash
        return []


def _page_text(words: bytes) -> str:
    return text_in_columns(sheets_from_json(json.loads(words)["pages"])).text
