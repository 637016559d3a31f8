"""The job engine under test: its SQL functions called one by one, and real worker processes that are really killed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import psutil
import psycopg
from psycopg.rows import TupleRow, class_row, dict_row
from psycopg.types.json import Jsonb

from octavo.core.errors import RETRY_RULES, ErrorClass
from octavo.core.types import JobStatus
from octavo.database import load_queries, newest_known
from octavo.jobs.job_run import ClaimedJob
from octavo.jobs.queue import NewJob
from octavo.pipeline.demo import executions_file
from tests.support.postgres import as_url
from tests.support.processes import (
    PATIENCE_SECONDS,
    Running,
    octavo_environment,
    report_on,
    start_octavo,
    wait_until,
)

QUERIES = load_queries("jobs")
FROM_THE_BEGINNING = {
    "mark_priority": 0,
    "mark_time": 0,
    "bulk_mark_priority": 10,
    "bulk_mark_time": 0,
    "bulk_most": 1000,
    "bulk_first": False,
}
Row = dict[str, Any]


class Engine:
    """One connection on which every call commits by itself; several of them are several clients."""

    def __init__(self, connection_info: str) -> None:
        self.info = connection_info
        self.connection: psycopg.Connection[TupleRow] = psycopg.connect(connection_info, autocommit=True)

    # What there is ----------------------------------------------------------------------------------------------

    def rows(self, statement: str, *values: object) -> list[Row]:
        with self.connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement.encode(), values).fetchall()

    def one(self, statement: str, *values: object) -> Any:  # noqa: ANN401 - whatever the statement answers
        row = self.connection.execute(statement.encode(), values).fetchone()
        return row[0] if row else None

    def run(self, statement: str, *values: object) -> int:
        return self.connection.execute(statement.encode(), values).rowcount

    def job(self, job: UUID) -> Row:
        return self.rows("SELECT *, xmin::text AS version FROM jobs WHERE id = %s", job)[0]

    def status(self, job: UUID) -> str:
        return self.one("SELECT status FROM jobs WHERE id = %s", job)

    def statuses(self) -> Counter[str]:
        return Counter(row["status"] for row in self.rows("SELECT status FROM jobs"))

    def events(self, job: UUID) -> list[Row]:
        return self.rows("SELECT * FROM events WHERE process_id = %s ORDER BY id", job)

    def stages(self, job: UUID) -> list[tuple[str, int]]:
        rows = self.rows("SELECT stage, attempt FROM job_stages WHERE job_id = %s ORDER BY finished_at", job)
        return [(row["stage"], row["attempt"]) for row in rows]

    def taken(self, key: str) -> int:
        return self.one("SELECT taken FROM caps WHERE key = %s", key)

    # What clients do --------------------------------------------------------------------------------------------

    def add_kind(
        self, name: str, *, attempts: int = 3, limit: float = 600, renewed: bool = False, rate: float | None = None
    ) -> str:
        values = {"names": [name], "max_attempts": [attempts], "time_limits": [limit], "renewed": [renewed]}
        self.connection.execute(QUERIES.sync_kinds, values | {"caps": [None], "rates": [rate]})
        self.connection.execute(QUERIES.sync_rates)
        return name

    def add_owner(self) -> UUID:
        return self.one("INSERT INTO owners (id, kind) VALUES (%s, 'user') RETURNING id", uuid4())

    def enqueue(self, *jobs: NewJob) -> list[tuple[UUID, bool]]:
        wanted = Jsonb([job.as_json() for job in jobs])
        return cast("list[tuple[UUID, bool]]", self.connection.execute(QUERIES.enqueue, {"wanted": wanted}).fetchall())

    def put(self, owner: UUID, kind: str = "demo", count: int = 1, **more: Any) -> list[UUID]:  # noqa: ANN401
        return [job for job, _ in self.enqueue(*(NewJob(kind, owner, **more) for _ in range(count)))]

    def advance(self, seconds: float) -> None:
        """The engine's clock is the only time that tests wait for. Quiet workers are woken, to check it."""
        self.run("UPDATE engine_clock SET shift = shift + make_interval(secs => %s)", seconds)
        self.connection.execute(QUERIES.notify)

    def bury(self, worker: Running) -> None:
        """The leases of a worker that was killed are over at once; those of the living are long enough to be kept."""
        worker.wait()
        held = "FROM workers WHERE workers.id = jobs.leased_by AND workers.pid = %s"
        self.run(f"UPDATE jobs SET lease_expires_at = engine_now() {held}", worker.pid)
        self.connection.execute(QUERIES.notify)

    def clear(self) -> None:
        """As if just migrated, which takes a tenth of the time of a new database."""
        self.connection.execute(CLEAR.encode())

    def cancel(self, job: UUID) -> int:
        return self._answer(QUERIES.cancel, job=job, event=None)

    def requeue(self, job: UUID, from_stage: str | None = None) -> bool:
        return self._answer(QUERIES.requeue, job=job, from_stage=from_stage)

    def pause(self, job: UUID, token: int | None = None) -> bool:
        return self._answer(QUERIES.pause, job=job, token=token, code="OVER_BUDGET", message="Nothing left.")

    def force(self, job: UUID, status: JobStatus) -> None:
        """By plain SQL, with all that the state needs, so that only the transition itself can be refused."""
        fields = {**PLAIN, **FIELDS.get(status, {})}
        settings = ", ".join(f"{name} = {value}" for name, value in fields.items())
        self.run(f"UPDATE jobs SET status = '{status}', {settings} WHERE id = %s", job)

    # What workers do --------------------------------------------------------------------------------------------

    def claim(
        self,
        worker: UUID | None = None,
        slots: int = 1,
        *,
        lease: float = 60,
        kinds: Sequence[str] = ("demo",),
        finished: Sequence[ClaimedJob] = (),
    ) -> list[ClaimedJob]:
        """As a worker does it: what the clock has brought about first, then what is next in line."""
        self.pass_time()
        values: dict[str, Any] = {"worker": worker or uuid4(), "kinds": list(kinds)}
        values |= {"held": [job.id for job in finished], "tokens": [job.lease_token for job in finished]}
        values["outputs"] = Jsonb([None for _ in finished])
        values |= {"slots": slots, "lease": lease, **FROM_THE_BEGINNING}
        # Who claims by hand is faster than documents may start.
        self.connection.execute(b"DELETE FROM start_rates WHERE kind = 'process_document'")
        with self.connection.cursor(row_factory=class_row(ClaimedJob)) as cursor:
            return cursor.execute(QUERIES.exchange, values).fetchall()

    def pass_time(self) -> int:
        return self._answer(QUERIES.pass_time, taking_over=True, newest_known=newest_known(), worker=None)

    def claim_one(self, worker: UUID | None = None, **more: Any) -> ClaimedJob:  # noqa: ANN401
        (job,) = self.claim(worker, **more)
        return job

    def complete(self, *jobs: ClaimedJob) -> list[UUID]:
        """Bring them back without taking anything; answers which of them it ended."""
        ended = self._ended(jobs)
        self.claim(slots=0, finished=jobs)
        return [job for job in self._ended(jobs) if job not in ended]

    def _ended(self, jobs: Sequence[ClaimedJob]) -> list[UUID]:
        found = "SELECT id FROM jobs WHERE id = ANY (%s) AND status = 'complete' ORDER BY id"
        return [row["id"] for row in self.rows(found, [job.id for job in jobs])]

    def fail(self, job: ClaimedJob, error: ErrorClass, retry_after: float | None = None) -> str | None:
        rule = RETRY_RULES[error]
        return self._answer(
            QUERIES.fail,
            job=job.id,
            token=job.lease_token,
            code=error.upper(),
            message="It failed.",
            first_delay=rule.first_delay_seconds if rule else None,
            factor=rule.factor if rule else 1,
            charged=rule.charged if rule else True,
            retry_after=retry_after,
        )

    def finish_stage(self, job: ClaimedJob, stage: str, part: str = "") -> bool:
        values = {"stage": stage, "part": part, "output": Jsonb(stage), "seconds": 0.5}
        return self._answer(QUERIES.finish_stage, job=job.id, token=job.lease_token, **values)

    def progress(self, job: ClaimedJob, done: int) -> bool:
        values = {"done": done, "total": 10, "unit": "pages", "stage": None}
        return self._answer(QUERIES.progress, job=job.id, token=job.lease_token, **values)

    def renew(self, *jobs: ClaimedJob, lease: float = 60) -> set[UUID]:
        values = {"worker": uuid4(), "lease": lease, **leases(jobs)}
        return {row[0] for row in self.connection.execute(QUERIES.renew, values).fetchall()}

    def lost(self, *jobs: ClaimedJob) -> set[UUID]:
        return {row[0] for row in self.connection.execute(QUERIES.lost, leases(jobs)).fetchall()}

    def hand_back(self, *jobs: ClaimedJob) -> int:
        return self._answer(QUERIES.hand_back, because="worker_stopped", **leases(jobs))

    def _answer(self, query: bytes, **values: object) -> Any:  # noqa: ANN401 - whatever the function answers
        row = self.connection.execute(query, values).fetchone()
        assert row
        return row[0]

    # What must always hold --------------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """No slot is lost or given twice, and the last event of each job tells its state."""
        assert self.rows(WRONG_CAPS) == []
        assert self.rows(WRONG_EVENTS) == []


PLAIN = {
    **dict.fromkeys(["leased_by", "lease_expires_at", "deadline_at", "run_after"], "NULL"),
    **dict.fromkeys(["completed_at", "output", "failed_at", "error_code", "error_message"], "NULL"),
    "admitted": "false",
    "started_at": "now()",
}
ERROR = {"failed_at": "now()", "error_code": "'UNKNOWN'", "error_message": "'It failed.'"}
LEASE = {"leased_by": "gen_random_uuid()", "lease_expires_at": "now()", "deadline_at": "now()"}
FIELDS: dict[JobStatus, dict[str, str]] = {
    JobStatus.PROCESSING: {"admitted": "true", **LEASE},
    JobStatus.QUEUED: {"admitted": "true"},
    JobStatus.COMPLETE: {"completed_at": "now()"},
    JobStatus.FAILED: ERROR,
    JobStatus.DEAD_LETTER: ERROR,
}
# Deleting the few rows takes a tenth of the time of truncating, which makes new files for all tables and their indexes.
CLEAR = """
    SET session_replication_role = replica; -- triggers rest
    DO $$ DECLARE one regclass; BEGIN
        FOR one IN
            WITH RECURSIVE cleared AS (
                SELECT unnest('{owners,jobs,caps,job_kinds,events,workers}'::regclass[])::oid AS id
                UNION SELECT conrelid FROM pg_constraint JOIN cleared ON confrelid = id WHERE contype = 'f')
            SELECT id FROM cleared
        LOOP EXECUTE format('DELETE FROM %s', one); END LOOP;
    END $$;
    SET session_replication_role = origin;
    UPDATE engine_clock SET shift = '0';
    SELECT setval('virtual_clock_' || priority, 0, false) FROM generate_series(0, 19) AS priority"""
WRONG_CAPS = """
    SELECT caps.*, count(jobs.id) AS counted FROM caps
    LEFT JOIN jobs ON jobs.cap_key = caps.key AND jobs.admitted
    GROUP BY caps.key HAVING caps.taken <> count(jobs.id)"""
WRONG_EVENTS = """
    SELECT jobs.id, jobs.status, last.state_after FROM jobs
    LEFT JOIN LATERAL (SELECT state_after FROM events WHERE process_id = jobs.id AND state_after IS NOT NULL
                       ORDER BY id DESC LIMIT 1) AS last ON true
    WHERE jobs.status IS DISTINCT FROM last.state_after"""


REPLAY = """
    SELECT process_id, state_after, {group} AS grouped FROM events JOIN jobs ON jobs.id = events.process_id
    WHERE state_after IS NOT NULL ORDER BY events.id"""


def most_at_once(engine: Engine, group: str = "cap_key") -> Counter[str]:
    """The events replayed: how many of each key, or of each worker, ran at the same time at most.

    By id: a slot is passed on only after the event of the job that gives it back, so ids never show fewer.
    """
    running: dict[UUID, str] = {}
    now, most = Counter[str](), Counter[str]()
    for event in engine.rows(REPLAY.format(group=group)):
        if event["state_after"] == "processing":
            assert event["process_id"] not in running
            key = running[event["process_id"]] = event["grouped"]
            now[key] += 1
            most[key] = max(most[key], now[key])
        elif event["process_id"] in running:
            now[running.pop(event["process_id"])] -= 1
    assert running == {}
    return most


def leases(jobs: Iterable[ClaimedJob]) -> dict[str, object]:
    held = list(jobs)
    return {"held": [job.id for job in held], "tokens": [job.lease_token for job in held]}


@contextmanager
def engine_on(connection_info: str) -> Generator[Engine]:
    """An engine with the kind `demo`, closed at the end."""
    engine = Engine(connection_info)
    try:
        engine.add_kind("demo")
        yield engine
    finally:
        engine.connection.close()


UNFINISHED = b"SELECT * FROM jobs WHERE status IN ('queued', 'processing') LIMIT 10"
# Every five minutes there would be a job that the test did not make.
NO_SCHEDULES = b"ALTER TABLE schedules ALTER COLUMN enabled SET DEFAULT false"


class Workers:
    """Worker processes on one database and one data folder; none is left when the test ends."""

    def __init__(self, folder: Path, connection_info: str, **settings: object) -> None:
        self.data = folder / "data"
        self.data.mkdir(exist_ok=True)
        self.log = folder / "workers.log"
        self.settings: dict[str, object] = {"lease_seconds": 2, "database_url": as_url(connection_info), **settings}
        self.started: list[Running] = []
        self._connection_info = connection_info
        with psycopg.connect(connection_info) as connection:
            connection.execute(NO_SCHEDULES)

    def start(self, *, prefix: Sequence[str] = (), **settings: object) -> Running:
        environment = octavo_environment(self.data, **{**self.settings, **settings})
        with self.log.open("ab") as log:
            process = start_octavo(["worker"], environment, log.fileno(), prefix=prefix)
        self.started.append(process)
        return process

    def executions(self) -> list[tuple[UUID, str, int]]:
        """Every stage that was really begun, in order: job, stage, attempt."""
        file = executions_file(self.data)
        if not file.exists():
            return []
        lines = (line.split() for line in file.read_text().splitlines())
        return [(UUID(job), stage, int(attempt)) for job, stage, attempt in lines]

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            process.wait()

    def report(self) -> str:
        """Why jobs may not end: those that are left, and what the workers do."""
        running = [psutil.Process(one.pid) for one in self.started if one.poll() is None]
        processes = [each for one in running for each in (one, *one.children(recursive=True))]
        with psycopg.connect(self._connection_info) as connection, connection.cursor(row_factory=dict_row) as cursor:
            jobs = cursor.execute(UNFINISHED).fetchall()
        return "\n".join([*map(str, jobs), report_on(processes, self.log)])


@contextmanager
def workers_in(folder: Path, connection_info: str, **settings: object) -> Generator[Workers]:
    workers = Workers(folder, connection_info, **settings)
    try:
        yield workers
    except AssertionError as error:
        error.add_note(workers.report())
        raise
    finally:
        workers.end()


def wait_for_end(engine: Engine, seconds: float = PATIENCE_SECONDS) -> None:
    """Until nothing is queued or runs any more."""

    def nothing_left() -> bool:
        return not engine.one("SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')")

    wait_until(nothing_left, "all jobs end", seconds=seconds)
