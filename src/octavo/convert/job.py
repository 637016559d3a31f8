"""The conversion job, which converts a PDF to validated XML.

It has a single stage, because it is cheap to repeat from the start. If the rules do not find all required fields, the
job asks a model for the missing ones. If no model or budget is available, they stay missing.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from psycopg.rows import class_row

from octavo.ai.calls import Caller
from octavo.ai.gateway import Gateway
from octavo.ai.tasks import EXTRACT_FIELDS, FieldsToFind, FieldToFind
from octavo.convert.conversion_json import conversion_to_record
from octavo.convert.corrections import Change, Corrected, carry_over, confirm_facts, keep_correction, share_facts
from octavo.convert.errors import NothingFound
from octavo.convert.in_sandbox import convert_in_sandbox, convert_pdf_in_sandbox
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.stored_mappings import StoredMapping, mapping_of_conversion
from octavo.convert.remote_service import RemoteService
from octavo.convert.results import Author, StoredResult, add_revision, save_revision, store_result
from octavo.convert.rules.engine import missing_fields
from octavo.convert.values import Conversion, ModelAnswer, ModelLookup, Suggestion
from octavo.core.errors import (
    AnswerUnusable,
    BadModelKey,
    Cancelled,
    ContentBlocked,
    ModelRefused,
    NoModel,
    NotFound,
    OverBudget,
    TokenLimit,
)
from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.database import Connection, load_queries
from octavo.extract.ocr.recognition import Recognition
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.facts.layout import text_in_columns
from octavo.facts.words import sheets_from_json
from octavo.jobs.job_run import Run
from octavo.library.errors import SourceGone
from octavo.library.facts import list_facts
from octavo.records.documents import FactView
from octavo.sandbox import Sandbox
from octavo.storage import Bucket, copy_to_file

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

    `key` is the storage key of the source file, or None if the file has been deleted. `sha256` is the checksum of the
    file.
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
