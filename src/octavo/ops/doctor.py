"""`octavo doctor`: checks the whole installation, and reports problems and how to fix them.

Each check returns a description of its result, or raises an error that explains the problem. `--repair` corrects values
that can be computed from other rows, and deletes no user data. Missing files, illegal job histories and unfinished
analyses are only reported, because they cannot be reconstructed.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import psycopg

from octavo.core.errors import Defect, NotPossibleHere, OctavoError, StorageFailed
from octavo.core.settings import Settings
from octavo.database import Connection, load_queries, require_current
from octavo.database.embedded import DataFolder
from octavo.database.migrator import refuse_unfit_server
from octavo.describe.embedding import embedding_model
from octavo.ops.health import Check
from octavo.ops.instance import bucket_of, open_connection, sandbox_of, storage_place
from octavo.storage import Bucket, Stored, find_damage

QUERIES = load_queries("doctor")
LEAST_FREE_BYTES = 1 << 30
READ_BYTES = 1 << 30
MOST_DAMAGED = 10
HEAL = "To replace an original file, upload it again. To replace other files, process the document again."
OBJECTS_AT_ONCE = 200
REPAIRS = load_queries("repairs")


class WrongState(Defect):
    """The stored data is inconsistent."""

    code = "WRONG_STATE"


@dataclass(frozen=True, slots=True)
class Installation:
    """The installation to check: its settings and an open database connection."""

    settings: Settings
    connection: Connection
    checksums: bool = False


Examine = Callable[[Installation], Awaitable[str]]
CHECKS: dict[str, Examine] = {}


def check(name: str) -> Callable[[Examine], Examine]:
    """Register a function as a check of `octavo doctor` (decorator). Names must be unique."""

    def register(examine: Examine) -> Examine:
        if name in CHECKS:
            raise ValueError(f"the check {name} already exists")
        CHECKS[name] = examine
        return examine

    return register


async def examine(settings: Settings, *, checksums: bool = False) -> list[Check]:
    """Run every check, even after one has failed. If `checksums` is true, all stored files are read."""
    DataFolder(settings.data_dir).prepare()
    async with open_connection(settings) as connection:
        installation = Installation(settings, connection, checksums)
        return [await _run(name, examine_one, installation) for name, examine_one in CHECKS.items()]


async def _run(name: str, examine_one: Examine, installation: Installation) -> Check:
    try:
        return Check(name, ok=True, detail=await examine_one(installation))
    except OctavoError as error:
        return Check(name, ok=False, detail=error.line)
    except psycopg.Error as error:
        return Check(name, ok=False, detail=str(error).strip().splitlines()[0])


@check("data folder")
async def data_folder(installation: Installation) -> str:
    folder = installation.settings.data_dir
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise NotPossibleHere(f"Only {free >> 20} MiB free in {folder}. Free some space.")
    return f"{folder}, {free >> 30} GiB free"


@check("database")
async def database(installation: Installation) -> str:
    await refuse_unfit_server(installation.connection)
    version = installation.connection.info.server_version
    return f"PostgreSQL {version // 10000}.{version % 10000}"


@check("schema")
async def schema(installation: Installation) -> str:
    state = await require_current(installation.connection)
    return f"{state.applied} migrations applied, none missing"


@check("jobs")
async def jobs(installation: Installation) -> str:
    """Check that the state of every job matches its last event, and that every transition was legal."""
    await _refuse_rows(
        installation, QUERIES.jobs_unlike_events, "The status of some jobs does not match their last event"
    )
    await _refuse_rows(installation, QUERIES.broken_jobs, "Some jobs violate an invariant")
    await _refuse_rows(installation, QUERIES.illegal_histories, "Some jobs changed status in a way that is not allowed")
    await _refuse_rows(installation, QUERIES.left_leases, "Some jobs were abandoned by their workers")
    row = await (await installation.connection.execute(QUERIES.count_jobs)).fetchone()
    return f"{row[0] if row else 0} jobs, all consistent with their events"


@check("events")
async def events(installation: Installation) -> str:
    """Check that new events are sorted after earlier ones, even after a restore, and are relayed to recipients."""
    wrong = "Events belong to another PostgreSQL cluster. Run `octavo migrate`"
    await _refuse_rows(installation, QUERIES.foreign_epoch, wrong)
    await _refuse_rows(installation, QUERIES.wrong_order, "New events would be ordered before earlier events")
    await _refuse_rows(installation, QUERIES.late_relay, "Events are not relayed to recipients")
    row = await (await installation.connection.execute(QUERIES.count_epochs)).fetchone()
    return f"in order, epoch {row[0] if row else 0}"


@check("caps")
async def caps(installation: Installation) -> str:
    await _refuse_rows(installation, QUERIES.wrong_caps, "Running-job counts are incorrect")
    await _refuse_rows(installation, QUERIES.idle_caps, "Jobs are waiting although slots are free")
    await _refuse_rows(installation, QUERIES.left_paused, "Jobs are paused although their owner has not paused imports")
    return "all slot counts are correct"


@check("schedules")
async def schedules(installation: Installation) -> str:
    await _refuse_rows(installation, QUERIES.late_schedules, "Schedules are late")
    return "no schedule is late"


@check("documents")
async def documents(installation: Installation) -> str:
    """Check that every document matches its job, upload, versions and files.

    Also checks that the recorded storage usage of each account is correct, and that every chunk belongs to the current
    revision of its document.
    """
    await _refuse_rows(
        installation, QUERIES.wrong_documents, "The status of some documents does not match the status of their jobs"
    )
    await _refuse_rows(
        installation, QUERIES.uncanonical_documents, "Some documents have no canonical upload, or more than one"
    )
    await _refuse_rows(installation, QUERIES.wrong_versions, "Some document versions are in the wrong order")
    await _refuse_rows(installation, QUERIES.wrong_references, "File reference counts are incorrect")
    await _refuse_rows(installation, QUERIES.wrong_usage, "The recorded storage usage of some owners is incorrect")
    await _refuse_rows(installation, QUERIES.orphan_chunks, "Some chunks belong to an old revision")
    row = await (await installation.connection.execute(QUERIES.count_documents)).fetchone()
    total, trashed, least, mean, most = row or (0, 0, 0, 0, 0)
    each = f", {least} to {most} chunks per document, {mean:.1f} on average" if total else ""
    return f"{total} documents, {trashed} of them in the trash{each}"


@check("connections")
async def connections(installation: Installation) -> str:
    """Count the connections between chunks, by type. Nothing is checked."""
    rows = await (await installation.connection.execute(QUERIES.count_connections)).fetchall()
    found = ", ".join(f"{count} {engine}" for engine, count in rows)
    return f"{sum(count for _, count in rows)} connections{f': {found}' if found else ''}"


@check("vectors")
async def vectors(installation: Installation) -> str:
    """Check that documents have all their vectors.

    Also checks that the jobs that replace vectors of an earlier embedding model have not failed.
    """
    settings = installation.settings
    values = {"model": embedding_model(settings), "visitors": settings.anonymous_models}
    await _refuse_rows(installation, QUERIES.incomplete_vectors, "Some documents have incomplete vectors")
    await _refuse_rows(
        installation, QUERIES.stuck_vectors, "Vectors from an earlier model could not be replaced", values
    )
    row = await (await installation.connection.execute(QUERIES.count_vectors, values)).fetchone()
    total, outdated = row or (0, 0)
    rest = f"; {outdated} still have vectors from an earlier model, which are being replaced" if outdated else ""
    return f"{total} documents with vectors, model {values['model']}{rest}"


@check("analyses")
async def analyses(installation: Installation) -> str:
    """Check that the segments (page ranges) of each analysis cover every page of the document.

    Also checks that every unfinished analysis has a job.
    """
    await _refuse_rows(
        installation, QUERIES.wrong_analyses, "Some analyses are inconsistent with their segments, jobs or answers"
    )
    row = await (await installation.connection.execute(QUERIES.count_analyses)).fetchone()
    total, items = row or (0, 0)
    return f"{total} analyses with {items} items"


@check("ledger")
async def ledger(installation: Installation) -> str:
    """Check that the recorded spending equals the sum of the model calls."""
    await _refuse_rows(installation, QUERIES.wrong_spending, "Recorded totals of model costs are incorrect")
    row = await (await installation.connection.execute(QUERIES.count_calls)).fetchone()
    calls, cost = row or (0, 0)
    return f"{calls} model calls, {cost:.2f} USD"


@check("files")
async def files(installation: Installation) -> str:
    """Check that every file that the database refers to is stored completely and matches its checksum.

    Reading all files can take hours, so without `--checksums` only the first gigabyte is read.
    """
    known, read, read_bytes, damaged, last = 0, 0, 0, list[str](), ""
    async with aclosing(bucket_of(installation.settings)) as bucket:
        while rows := await _objects_after(installation, last):
            ends = list(accumulate((wanted.bytes for wanted, _ in rows), initial=read_bytes))[1:]
            reads = [installation.checksums or end <= READ_BYTES for end in ends]
            damages = await asyncio.gather(*map(partial(_name_damage, bucket), rows, reads))
            damaged += [damage for damage in damages if damage]
            known, read, read_bytes, last = known + len(rows), read + sum(reads), ends[-1], rows[-1][0].key
    if damaged:
        shown = "; ".join(damaged[:MOST_DAMAGED])
        raise WrongState(f"{len(damaged)} of {known} files are missing or damaged: {shown}. {HEAL}")
    unread = f"; {known - read} were not read (`octavo doctor --checksums` reads all)" if read < known else ""
    return f"{known} files, all complete, {read} checksums correct{unread}"


async def _name_damage(bucket: Bucket, row: tuple[Stored, str], read: bool) -> str | None:  # noqa: FBT001 - mapped
    wanted, use = row
    try:
        damage = await find_damage(bucket, wanted, read=read)
    except StorageFailed as error:
        damage = f"cannot be read: {error.line}"
    return f"{use}: {wanted.key} {damage}" if damage else None


async def _objects_after(installation: Installation, key: str) -> list[tuple[Stored, str]]:
    cursor = await installation.connection.execute(QUERIES.objects_after, {"key": key, "most": OBJECTS_AT_ONCE})
    return [(Stored(*row[:3]), row[3]) for row in await cursor.fetchall()]


async def _refuse_rows(
    installation: Installation, query: bytes, finding: str, values: Mapping[str, object] | None = None
) -> None:
    rows = await (await installation.connection.execute(query, values or {})).fetchall()
    if rows:
        shown = "; ".join(" ".join(str(value) for value in row) for row in rows[:3])
        raise WrongState(f"{finding}: {shown}.")


@check("storage")
async def storage(installation: Installation) -> str:
    async with aclosing(bucket_of(installation.settings)) as bucket:
        await bucket.check()
        return f"{storage_place(installation.settings)}: written, read back and deleted"


@check("sandbox")
async def sandbox(installation: Installation) -> str:
    async with sandbox_of(installation.settings) as box:
        return (await box.layers()).summary


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of one repair: a description of the correction, and the number of changed rows."""

    name: str
    changed: int


@dataclass(frozen=True, slots=True)
class _Step:
    """Several corrections that run one after the other while holding the same lock."""

    lock: bytes
    corrections: Sequence[tuple[str, bytes]]


STEPS = (
    _Step(REPAIRS.lock_caps, [("abandoned jobs", REPAIRS.take_over)]),
    _Step(REPAIRS.lock_caps, [("slot counts", REPAIRS.count_caps), ("free slots", REPAIRS.admit_waiting)]),
    _Step(
        REPAIRS.lock_documents,
        [
            ("document statuses", REPAIRS.mirror_jobs),
            ("canonical documents", REPAIRS.claim_contents),
            ("versions", REPAIRS.order_versions),
            ("orphaned chunks", REPAIRS.forget_orphan_chunks),
            ("reference counts", REPAIRS.count_references),
            ("unused file rows", REPAIRS.forget_unused_objects),
            ("storage usage", REPAIRS.count_usage),
        ],
    ),
    _Step(REPAIRS.lock_ledger, [("model costs", REPAIRS.count_spending)]),
)


async def repair(settings: Settings) -> list[Repair]:
    """Run every repair. Returns the repairs that changed something."""
    async with open_connection(settings) as connection:
        made = [one for step in STEPS for one in await _run_step(connection, step)]
    return [one for one in made if one.changed]


async def _run_step(connection: Connection, step: _Step) -> list[Repair]:
    repairs: list[Repair] = []
    async with connection.transaction():
        await connection.execute(step.lock)
        for name, query in step.corrections:
            row = await (await connection.execute(query)).fetchone()
            repairs.append(Repair(name, row[0] if row else 0))
    return repairs
