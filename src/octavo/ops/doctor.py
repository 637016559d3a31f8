"""`octavo doctor`: looks at everything an installation stands on and says what is wrong and what to do.

Each check answers what it found in good order, or raises an error that says what is not.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import psycopg

from octavo.core.errors import Defect, NotPossibleHere, OctavoError
from octavo.core.settings import Settings
from octavo.database import Connection, load_queries, require_current
from octavo.database.embedded import DataFolder
from octavo.database.migrator import refuse_unfit_server
from octavo.ops.health import Check
from octavo.ops.instance import bucket_of, open_connection, sandbox_of, storage_place

QUERIES = load_queries("doctor")
LEAST_FREE_BYTES = 1 << 30
OBJECTS_AT_ONCE = 200


class WrongState(Defect):
    """The stored data is inconsistent."""

    code = "WRONG_STATE"


@dataclass(frozen=True, slots=True)
class Patient:
    """What the checks look at; opened once for all of them."""

    settings: Settings
    connection: Connection


Examine = Callable[[Patient], Awaitable[str]]
CHECKS: dict[str, Examine] = {}


def check(name: str) -> Callable[[Examine], Examine]:
    """Register a check; two of one name would hide each other."""

    def register(examine: Examine) -> Examine:
        if name in CHECKS:
            raise ValueError(f"there is a check {name} already")
        CHECKS[name] = examine
        return examine

    return register


async def examine(settings: Settings) -> list[Check]:
    """Run every check, also after one that failed."""
    DataFolder(settings.data_dir).prepare()
    async with open_connection(settings) as connection:
        patient = Patient(settings, connection)
        return [await _run(name, examine_one, patient) for name, examine_one in CHECKS.items()]


async def _run(name: str, examine_one: Examine, patient: Patient) -> Check:
    try:
        return Check(name, ok=True, detail=await examine_one(patient))
    except OctavoError as error:
        return Check(name, ok=False, detail=error.line)
    except psycopg.Error as error:
        return Check(name, ok=False, detail=str(error).strip().splitlines()[0])


@check("data folder")
async def data_folder(patient: Patient) -> str:
    folder = patient.settings.data_dir
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise NotPossibleHere(f"Only {free >> 20} MiB are free in {folder}; free some space.")
    return f"{folder}, {free >> 30} GiB free"


@check("database")
async def database(patient: Patient) -> str:
    await refuse_unfit_server(patient.connection)
    version = patient.connection.info.server_version
    return f"PostgreSQL {version // 10000}.{version % 10000}"


@check("schema")
async def schema(patient: Patient) -> str:
    state = await require_current(patient.connection)
    return f"{state.applied} migrations applied, none missing"


@check("jobs")
async def jobs(patient: Patient) -> str:
    """The state of every job is where its events end, and every step on the way was allowed."""
    await _refuse_rows(patient, QUERIES.jobs_unlike_events, "Jobs differ from their events")
    await _refuse_rows(patient, QUERIES.broken_jobs, "Jobs break their rules")
    await _refuse_rows(patient, QUERIES.illegal_histories, "Jobs went a way that is not allowed")
    await _refuse_rows(patient, QUERIES.left_leases, "Jobs were left behind by their workers")
    row = await (await patient.connection.execute(QUERIES.count_jobs)).fetchone()
    return f"{row[0] if row else 0} jobs, each in the state that its events tell"


@check("caps")
async def caps(patient: Patient) -> str:
    await _refuse_rows(patient, QUERIES.wrong_caps, "Slots were counted wrongly")
    await _refuse_rows(patient, QUERIES.idle_caps, "Free slots were not given to those who wait")
    return "slots recounted"


@check("schedules")
async def schedules(patient: Patient) -> str:
    await _refuse_rows(patient, QUERIES.late_schedules, "Schedules are late")
    return "none is late"


@check("documents")
async def documents(patient: Patient) -> str:
    """Every document is as its job is, its files are counted, and no content of an owner is there twice unasked."""
    await _refuse_rows(patient, QUERIES.wrong_documents, "Documents are not in the state of their jobs")
    await _refuse_rows(patient, QUERIES.uncanonical_documents, "Documents belong to no upload")
    await _refuse_rows(patient, QUERIES.wrong_versions, "Versions stand in the wrong order")
    await _refuse_rows(patient, QUERIES.wrong_references, "Files were counted wrongly")
    await _refuse_rows(patient, QUERIES.wrong_usage, "Owners' use was added up wrongly")
    await _refuse_rows(patient, QUERIES.orphan_chunks, "Chunks were left behind")
    row = await (await patient.connection.execute(QUERIES.count_documents)).fetchone()
    total, trashed, chunks = row or (0, 0, 0)
    each = f", {chunks / total:.1f} chunks each" if total else ""
    return f"{total} documents, {trashed} of them in the trash{each}"


@check("analyses")
async def analyses(patient: Patient) -> str:
    """Every page of an analysed document belongs to a segment, and whatever is open is being seen to."""
    await _refuse_rows(patient, QUERIES.wrong_analyses, "Analyses are not as their parts are")
    row = await (await patient.connection.execute(QUERIES.count_analyses)).fetchone()
    total, items = row or (0, 0)
    return f"{total} analyses with {items} items"


@check("ledger")
async def ledger(patient: Patient) -> str:
    """What is counted as spent is the sum of the calls."""
    await _refuse_rows(patient, QUERIES.wrong_spending, "What models cost was added up wrongly")
    row = await (await patient.connection.execute(QUERIES.count_calls)).fetchone()
    calls, cost = row or (0, 0)
    return f"{calls} calls of models, {cost:.2f} USD"


@check("files")
async def files(patient: Patient) -> str:
    """Every object that a row refers to is in the bucket, whole."""
    known, missing, last = 0, list[str](), ""
    async with aclosing(bucket_of(patient.settings)) as bucket:
        while rows := await _objects_after(patient, last):
            infos = await asyncio.gather(*(bucket.stat(key) for key, _ in rows))
            missing += [key for (key, size), info in zip(rows, infos, strict=True) if not info or info.bytes != size]
            known, last = known + len(rows), rows[-1][0]
    if missing:
        raise WrongState(f"Files are missing or cut: {'; '.join(missing[:3])}.")
    return f"{known} files, all there"


async def _objects_after(patient: Patient, key: str) -> list[tuple[str, int]]:
    cursor = await patient.connection.execute(QUERIES.objects_after, {"key": key, "most": OBJECTS_AT_ONCE})
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def _refuse_rows(patient: Patient, query: bytes, finding: str) -> None:
    rows = await (await patient.connection.execute(query)).fetchall()
    if rows:
        shown = "; ".join(" ".join(str(value) for value in row) for row in rows[:3])
        raise WrongState(f"{finding}: {shown}.")


@check("storage")
async def storage(patient: Patient) -> str:
    async with aclosing(bucket_of(patient.settings)) as bucket:
        await bucket.check()
        return f"{storage_place(patient.settings)}: written, read back and deleted"


@check("sandbox")
async def sandbox(patient: Patient) -> str:
    async with sandbox_of(patient.settings) as box:
        return (await box.layers()).summary
