"""From a PDF to validated XML by a mapping, in one stage: reading it again costs less than keeping what was read."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from psycopg.rows import class_row

from octavo.convert.contract import Conversion
from octavo.convert.errors import NothingFound
from octavo.convert.steps import convert_in_sandbox, convert_pdf_in_sandbox
from octavo.core.errors import Cancelled
from octavo.core.json import JSON
from octavo.database import Connection, load_queries
from octavo.extract.pdf.steps import PdfInSandbox
from octavo.intake.conversion_results import Made, save_revision, store_result
from octavo.intake.mappings import StoredMapping, find_mapping
from octavo.jobs.run import Run
from octavo.library.changes import SourceGone
from octavo.pipeline.conversion_gateway import convert_elsewhere
from octavo.pipeline.conversion_model import ask_for_missing, suggested
from octavo.pipeline.tools import Tools
from octavo.storage import copy_to_file

QUERIES = load_queries("conversions")
STAGE = "converted"


@dataclass(frozen=True, slots=True)
class Work:
    """What a job converts."""

    owner_id: UUID
    mapping: str
    mapping_sha256: str
    key: str | None


async def convert(run: Run[Tools]) -> JSON:
    made: list[Made] = []

    async def make() -> JSON:
        """The result is in the bucket before anything says that it is there."""
        work, mapping = await _load(run)
        conversion = await _convert(run, work, mapping)
        folder = f"conversions/{run.job.id}/{run.job.lease_token}"
        made.append(await store_result(run.tools.bucket, folder, conversion, mapping))
        return {"values": len(conversion.values), "missing": list(conversion.missing)}

    async def save(connection: Connection, answer: JSON) -> None:
        del answer
        await save_revision(connection, run.job.id, made[-1], run.tools.settings.conversion_result_days)

    return await run.stage(STAGE, make, save=save)


async def _load(run: Run[Tools]) -> tuple[Work, StoredMapping]:
    async with (
        run.tools.database.connection() as connection,
        connection.cursor(row_factory=class_row(Work)) as cursor,
    ):
        await cursor.execute(QUERIES.work, {"id": run.job.id})
        work = await cursor.fetchone()
        if work is None:
            raise Cancelled
        return work, await find_mapping(connection, work.owner_id, work.mapping)


async def _convert(run: Run[Tools], work: Work, mapping: StoredMapping) -> Conversion:
    if work.key is None:
        raise SourceGone
    tools = run.tools
    if tools.settings.conversion_gateway_url:
        return await convert_elsewhere(run, work.key, mapping)
    with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
        path = Path(folder) / "source"
        await copy_to_file(tools.bucket, work.key, path)
        pdf = PdfInSandbox(tools.sandbox, path, limits=tools.sandbox.limits, recognition=tools.recognition)
        conversion, words = await convert_pdf_in_sandbox(pdf, mapping.text, mapping.file)
    asked = await ask_for_missing(run, words, conversion, mapping.read()) if words else None
    if words and asked and asked.said:
        conversion = await convert_in_sandbox(tools.sandbox, words, mapping.text, mapping.file, suggested(asked))
    required = [field for field in mapping.read().fields if field.required]
    if required and len(conversion.missing) == len(required):
        raise NothingFound
    return replace(conversion, asked=asked)
