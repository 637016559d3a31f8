"""`octavo jobs` as a person and as a program use it: on a database without a worker, and beside a real one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from octavo.cli import main
from octavo.core.errors import ErrorClass
from tests.support.engine import Engine, engine_on, wait_for_end, workers_in
from tests.support.postgres import Server, as_url
from tests.support.processes import octavo_environment, run_octavo


@dataclass(frozen=True, slots=True)
class Said:
    returncode: int
    stdout: str
    stderr: str


class Console:
    """A person at the installation's own machine. Commands run in this process, which saves half a second for each."""

    def __init__(self, engine: Engine, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self.engine = engine
        self._patch = patch
        self._capture = capture

    def jobs(self, *arguments: str) -> Said:
        self._patch.setattr(sys, "argv", ["octavo", "jobs", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capture.readouterr()
        return Said(int(ended.value.code or 0), captured.out, captured.err)

    def read(self, *arguments: str) -> Any:  # noqa: ANN401 - whatever the command prints
        result = self.jobs(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def say(self, *arguments: str) -> str:
        result = self.jobs(*arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def refuse(self, *arguments: str) -> str:
        """One clear line, and nothing is changed."""
        before = self.engine.rows("SELECT *, xmin::text AS version FROM jobs ORDER BY id")
        result = self.jobs(*arguments)
        lines = result.stderr.strip().splitlines()
        assert (result.returncode, result.stdout, len(lines)) == (1, "", 1), result
        assert self.engine.rows("SELECT *, xmin::text AS version FROM jobs ORDER BY id") == before
        return lines[0]


@pytest.fixture(scope="module")
def console_database(newest_server: Server) -> Iterator[str]:
    with newest_server.database() as info:
        yield info


@pytest.fixture
def console(
    console_database: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Console]:
    monkeypatch.setenv("OCTAVO_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("OCTAVO_DATABASE_URL", as_url(console_database))
    with engine_on(console_database) as engine:
        engine.run("DELETE FROM owners")  # and with them their jobs
        engine.run("DELETE FROM caps")
        yield Console(engine, monkeypatch, capsys)


def test_jobs_are_added_listed_and_shown_before_any_worker_ran(console: Console) -> None:
    console.engine.run("DELETE FROM job_kinds")
    added = console.read("add", "demo", "--count", "3", "--input", '{"stages": 2}', "--priority", "1")
    assert [set(one) for one in added] == [{"id", "made"}] * 3
    assert console.engine.one("SELECT count(*) FROM jobs WHERE priority = 1 AND input = '{\"stages\": 2}'") == 3
    listed = console.read("ls", "--kind", "demo", "--status", "queued", "--limit", "500")
    assert {job["id"] for job in listed["items"]} == {one["id"] for one in added}
    page = console.read("ls", "--limit", "2")
    assert len(console.read("ls", "--limit", "2", "--cursor", page["next_cursor"])["items"]) == 1
    rows = console.say("ls").splitlines()
    assert rows[0].split() == ["ID", "KIND", "STATUS", "STAGE", "PROGRESS", "ATTEMPT", "CREATED"]
    assert all(row.endswith("no worker is running") for row in rows[1:])
    assert console.read("show", added[0]["id"])["waiting_because"]["reason"] == "no_worker"
    assert "created" in console.say("show", added[0]["id"])


def test_a_key_a_delay_and_a_cap_are_kept(console: Console) -> None:
    first = console.read("add", "demo", "--key", "once", "--delay", "60", "--cap-key", "group", "--cap", "2")
    again = console.read("add", "demo", "--key", "once")
    assert [one["id"] for one in again] == [one["id"] for one in first]
    assert [one["made"] for one in first + again] == [True, False]
    (job,) = console.engine.rows("SELECT cap_key, run_after > now() AS later FROM jobs")
    assert job == {"cap_key": "group", "later": True}
    assert console.engine.one("SELECT most FROM caps WHERE key = 'group'") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "nothing"], "nothing is not one of add_files, analyse_document"),
        (["add", "demo", "--input", "{"], "not JSON"),
        (["add", "demo", "--input", "[1]"], "not an object"),
        (["add", "demo", "--input", '{"stages": NaN}'], "NaN is not valid"),
        (["add", "demo", "--input", '{"stages": -1}'], "stages"),
        (["add", "demo", "--input", '{"stagse": 1}'], "stagse"),
        (["add", "demo", "--input", '{"fail": "loudly"}'], "fail"),
        (["add", "demo", "--key", "\udcff"], "database rejected the job"),
        (["add", "demo", "--count", "2", "--key", "k"], "--count"),
        (["add", "demo", "--cap-key", "k"], "used together"),
        (["ls", "--kind", "nothing"], "nothing is not one of add_files, analyse_document"),
        (["ls", "--cursor", "nonsense"], "cursor"),
        (["show", "nonsense"], "`octavo jobs ls` lists them"),
        (["cancel", "0000ffff"], "No job's id begins or ends with 0000ffff"),
        (["retry", str(uuid4())], "Not found"),
        (["retry", str(uuid4()), "--from-stage", "x", "--start-over"], "cannot be combined"),
        (["cancel", str(uuid4())], "Not found"),
        (["dead-letters", "--requeue", str(uuid4())], "Not found"),
        (["dead-letters", "--requeue", "all", "--discard", "all"], "cannot be combined"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(console: Console, arguments: list[str], said: str) -> None:
    assert said in console.refuse(*arguments)


def test_jobs_are_named_by_any_unique_part_of_their_ids(console: Console) -> None:
    first, second = (one["id"] for one in console.read("add", "demo", "--count", "2"))
    for part in (first[-8:], first[-8:][:6].upper(), first[:36]):
        assert console.read("show", part)["id"] == first
    ambiguous = console.refuse("cancel", first[:8])
    assert "matches more than one job: " in ambiguous
    assert f"{first} (demo)" in ambiguous
    assert f"{second} (demo)" in ambiguous
    assert "Cancelled: 2." in console.say("cancel", first[-8:], second[-8:], first)
    assert "Queued again: 1." in console.say("retry", second[-12:])
    assert console.read("show", second[-8:])["status"] == "queued"


def test_a_database_that_is_not_set_up_is_refused_with_what_to_do(console: Console) -> None:
    console.engine.run("ALTER TABLE schema_migrations RENAME TO hidden")
    try:
        assert "octavo migrate" in console.refuse("ls")
    finally:
        console.engine.run("ALTER TABLE hidden RENAME TO schema_migrations")


def test_a_job_moves_up_and_imports_are_paused(console: Console) -> None:
    job = console.say("add", "demo", "--json").split('"')[3]
    assert console.say("prioritise", job) == "Moved up: 0.\n"  # it is not part of an import
    assert console.say("pause-imports") == "Imports are paused, 0 waiting.\n"
    assert '"waiting": 0' in console.say("pause-imports", "--json")
    assert console.say("resume-imports") == "Imports are not paused, 0 waiting.\n"


def test_jobs_are_cancelled_and_retried_and_finished_ones_are_not(console: Console) -> None:
    engine = console.engine
    first, second, complete = (one["id"] for one in console.read("add", "demo", "--count", "3"))
    engine.run("UPDATE jobs SET virtual_time = 0 WHERE id = %s", complete)
    claimed = engine.claim_one()
    engine.finish_stage(claimed, "stage-1")
    engine.complete(claimed)
    assert "is complete" in console.refuse("cancel", first, complete)
    assert console.say("cancel", first, second) == "Cancelled: 2.\n"
    assert "no finished stage" in console.refuse("retry", first, "--from-stage", "stage-9")
    assert console.say("retry", first, second, "--start-over") == "Queued again: 2.\n"
    assert "is queued" in console.refuse("retry", first)
    assert engine.statuses() == {"queued": 2, "complete": 1}


def test_dead_letters_of_all_owners_are_requeued_or_discarded(console: Console) -> None:
    engine = console.engine
    letters = engine.put(engine.add_owner(), count=3, max_attempts=1)
    for claimed in engine.claim(slots=3):
        engine.fail(claimed, ErrorClass.TRANSIENT)
    assert {job["id"] for job in console.read("dead-letters")["items"]} == {str(letter) for letter in letters}
    assert "It failed. (TRANSIENT)" in console.say("dead-letters")
    assert console.say("dead-letters", "--requeue", str(letters[0])) == "Queued again: 1.\n"
    assert console.read("dead-letters", "--discard", "all") == {"changed": 2}
    assert engine.statuses() == {"queued": 1, "cancelled": 2}
    assert console.say("dead-letters") == "No jobs.\n"
    assert console.read("ls")["items"] == []
    assert len(console.read("ls", "--all-owners")["items"]) == 3


def test_a_worker_claims_a_job_added_by_its_own_process(database_info: str, folder: Path) -> None:
    environment = octavo_environment(folder / "data", database_url=as_url(database_info))
    with engine_on(database_info) as engine, workers_in(folder, database_info) as workers:
        workers.start()
        for given in ('{"stages": 2}', '{"fail": "permanent"}'):
            assert run_octavo(["jobs", "add", "demo", "--input", given], environment).returncode == 0
        wait_for_end(engine)
        rows = run_octavo(["jobs", "ls", "--kind", "demo"], environment).stdout.splitlines()
    failed, complete = (row.split()[1:4] for row in rows[1:])
    assert complete == ["demo", "complete", "stage-2"]
    assert failed[:2] == ["demo", "failed"]
    assert rows[1].endswith("The demo job fails as requested. (AI_TOKEN_LIMIT)")
