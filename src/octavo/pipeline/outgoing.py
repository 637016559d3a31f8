"""Job kinds that send data out of Octavo: they deliver an event to one recipient, or export a library.

If a worker dies after sending an event but before recording the delivery, the event is sent again with the same id.
Each batch of an export is stored as a separate object, so that a killed job continues with the next batch.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from octavo.core.errors import BadInput, NotFound, PageNotDrawn
from octavo.core.types import JSON, new_id
from octavo.database import Connection
from octavo.deliver.deliveries import Sender, known_channels, read_input, record_success
from octavo.extract.extracted import SourceType
from octavo.extract.pictures.page_images import FigurePlace, figure_in_sandbox
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.library.errors import NotReady
from octavo.library.exporting import (
    BATCH_DOCUMENTS,
    EXPORTS,
    Export,
    ExportOptions,
    ExportPart,
    Place,
    SelectedDocuments,
    StoredPart,
    read_options,
    select_exported,
)
from octavo.library.files import FIGURE_WIDTH, find_figure, picture_name, store_figure
from octavo.pipeline.tools import Tools
from octavo.storage import ObjectMissing, copy_to_file

PART = "part"


async def deliver_event(run: Run[Tools]) -> JSON:
    tools = run.tools
    sender = Sender(tools.database, known_channels(tools.settings, tools.fetch), tools.settings.public_url)
    prepared = await sender.prepare(run.job, read_input(run.input))
    if prepared is None:
        return {"skipped": True}
    channel, delivery = prepared

    async def send() -> JSON:
        return await sender.send(channel, delivery, run.job)

    async def save(connection: Connection, made: JSON) -> None:
        await record_success(connection, delivery, run.job, made)

    return await run.stage("sent", send, save=save)


# Exports -------------------------------------------------------------------------------------------------------------


async def export_library(run: Run[Tools]) -> JSON:
    """Store an export in parts. The output of the job lists the parts in order.

    A killed job continues after the last stored part.
    """
    options = read_options(run.input)
    async with run.tools.database.connection() as connection:
        owner = await run.current_owner(connection)
    parts = await LibraryExport(run, owner, options).store_all()
    return {"parts": [one.model_dump(exclude={"place"}) for one in parts]}


@dataclass(frozen=True, slots=True)
class LibraryExport:
    run: Run[Tools]
    owner: UUID
    options: ExportOptions

    async def store_all(self) -> list[StoredPart]:
        """Store the parts that are missing, and return all parts."""
        outputs = await self.run.finished_outputs({PART})
        done = sorted(map(StoredPart.model_validate, outputs), key=lambda one: one.number)
        selected = await self._select()
        if done and done[-1].place is None:
            return done
        tools, draw = self.run.tools, self._draw if self.options.figures else None
        place = Place.read(done[-1].place) if done and done[-1].place else Place()
        export = Export(tools.database, tools.bucket, self.owner, selected.documents, draw, place)
        async for part in export.parts():
            done.append(await self._store(part, len(done) + 1))
            if part.place:
                exported = min(selected.total, part.place.pages * BATCH_DOCUMENTS)
                await self.run.progress(exported, selected.total, "documents")
        return done

    async def _select(self) -> SelectedDocuments:
        async def work() -> JSON:
            async with self.run.tools.database.connection() as connection:
                return (await select_exported(connection, self.owner, self.options)).model_dump(mode="json")

        return SelectedDocuments.model_validate(await self.run.stage("selected", work))

    async def _store(self, part: ExportPart, number: int) -> StoredPart:
        """Store a part as an object without a database row, so that the daily clean-up deletes it later."""

        async def work() -> JSON:
            key = f"{EXPORTS}/{self.run.job.id}/{number:06d}-{new_id()}.tar"
            stored = await self.run.tools.bucket.put(key, part.body)
            place = part.place.text if part.place else None
            made = StoredPart(number=number, key=key, bytes=stored.bytes, sha256=stored.sha256, place=place)
            return made.model_dump()

        return StoredPart.model_validate(await self.run.stage(PART, work, part=f"{number:06d}"))

    async def _draw(self, document: UUID, number: int) -> bytes | None:
        """Return the picture of a figure. A new picture is stored with its document.

        Returns None if it cannot be drawn.
        """
        tools = self.run.tools
        try:
            async with tools.database.connection() as connection:
                figure = await find_figure(connection, self.owner, document, number, FIGURE_WIDTH)
            if figure.picture:
                return await tools.bucket.read(figure.picture.key)
            place = FigurePlace(SourceType(figure.source_type), figure.page, tuple(figure.box or ()), figure.member)
            with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
                await copy_to_file(tools.bucket, figure.key, path := Path(folder, "source"))
                drawn = await figure_in_sandbox(tools.sandbox, path, place, FIGURE_WIDTH)
        except (PageNotDrawn, BadInput, NotFound, NotReady, ObjectMissing):
            return None
        await store_figure(
            tools.database, tools.bucket, document, figure.revision, picture_name(number, FIGURE_WIDTH), drawn
        )
        return drawn


DELIVER = JobKind("deliver", deliver_event, time_limit_seconds=60, max_attempts=12, check_input=read_input)
EXPORT = JobKind(
    "export_library", export_library, time_limit_seconds=3600, limit_renewed_by_stage=True, check_input=read_options
)
KINDS = (DELIVER, EXPORT)
