"""The conversion job: converts a PDF to validated XML, in a single stage, because a second attempt is cheap.

If the rules miss required fields, a model is asked for them. Without a model or budget, these fields stay missing.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog
from psycopg.rows import class_row

from octavo.ai.calls import Caller
from octavo.ai.gateway import Gateway
from octavo.ai.tasks import EXTRACT_FIELDS, FieldsToFind, FieldToFind
from octavo.convert.errors import NothingFound
from octavo.convert.in_sandbox import convert_in_sandbox, convert_pdf_in_sandbox
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.stored_mappings import StoredMapping, find_mapping
from octavo.convert.remote_service import RemoteService
from octavo.convert.results import StoredResult, save_revision, store_result
from octavo.convert.rules.suggestions import missing_fields
from octavo.convert.values import Conversion, ModelAnswer, ModelLookup, Suggestion
from octavo.core.errors import (
    AnswerUnusable,
    BadModelKey,
    Cancelled,
    ContentBlocked,
    ModelRefused,
    NoModel,
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
from octavo.sandbox import Sandbox
from octavo.storage import Bucket, copy_to_file

log = structlog.get_logger()
QUERIES = load_queries("conversions")
STAGE = "converted"
# After these errors the job continues with the values found by rules: a retry would not help, or only after a person
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
    """The input of a conversion job. `key` is None if the source has been deleted; `sha256` is its checksum."""

    owner_id: UUID
    mapping: str
    mapping_sha256: str
    key: str | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class ConversionJob:
    """One attempt at a conversion, with the tools it needs."""

    run: Run[Any]
    settings: Settings
    bucket: Bucket
    sandbox: Sandbox
    recognition: Recognition
    gateway: Gateway

    async def convert(self) -> JSON:
        results: list[StoredResult] = []

        async def work() -> JSON:
            """Convert the file. The result is stored in the bucket before any row refers to it."""
            source, mapping = await self._load()
            conversion = await self._convert(source, mapping)
            folder = f"conversions/{self.run.job.id}/{self.run.job.lease_token}"
            results.append(await store_result(self.bucket, folder, conversion, mapping))
            return {"values": len(conversion.values), "missing": list(conversion.missing)}

        async def save(connection: Connection, output: JSON) -> None:
            del output
            await save_revision(connection, self.run.job.id, results[-1], self.settings.conversion_result_days)

        return await self.run.stage(STAGE, work, save=save)

    async def _load(self) -> tuple[ConversionInput, StoredMapping]:
        async with (
            self.run.database.connection() as connection,
            connection.cursor(row_factory=class_row(ConversionInput)) as cursor,
        ):
            await cursor.execute(QUERIES.work, {"id": self.run.job.id})
            source = await cursor.fetchone()
            if source is None:
                raise Cancelled
            return source, await find_mapping(connection, source.owner_id, source.mapping)

    async def _convert(self, source: ConversionInput, mapping: StoredMapping) -> Conversion:
        if source.key is None:
            raise SourceGone
        if self.settings.conversion_gateway_url:
            return await RemoteService(self.run, self.settings, self.bucket).convert(source.key, mapping)
        conversion = await self._convert_here(source.key, source.sha256, mapping)
        required = [field for field in (await mapping.read_in_thread()).fields if field.required]
        if required and len(conversion.missing) == len(required):
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
        """Ask a model for missing required fields; None if no model is set up.

        The model's answers are suggestions: the sandbox verifies them against the document.
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


def _page_text(words: bytes) -> str:
    return text_in_columns(sheets_from_json(json.loads(words)["pages"])).text
