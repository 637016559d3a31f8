"""Files of a watched folder are added once each, although web servers and workers are killed at random."""

from __future__ import annotations

import random
import time
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import scalar_row

from tests.support.processes import PATIENCE_SECONDS
from tests.support.site import Caller, Site, site_in

FILES = 500
# A worker on a busy machine needs a second to start.
KILL_SECONDS = (1.0, 6.0)
# Workers that are killed cannot give back their leases, so these are short.
WORKER = {"lease_seconds": 5, "worker_slots": 4}
ADDED = "SELECT count(*) FROM source_files WHERE state = 'added'"
MANY = """
    SELECT filename FROM documents WHERE filename LIKE 'note-%' GROUP BY filename HAVING count(*) > 1"""
DIFFERENT = "SELECT count(DISTINCT filename) FROM documents WHERE filename LIKE 'note-%'"


def watch_folder(site: Site, inbox: Path) -> UUID:
    body = {"kind": "folder", "path": str(inbox), "every_seconds": 2}
    status, made = Caller(site, site.sign_in()).ask("POST", "/api/v1/sources", body)
    assert status == 201, made
    return UUID(made["id"])


@pytest.mark.long
def test_500_files_are_added_once_while_processes_are_killed(database_info: str, tmp_path: Path) -> None:
    chance, inbox = random.Random(7), tmp_path / "inbox"
    inbox.mkdir()
    with (
        site_in(tmp_path, database_info) as site,
        psycopg.connect(database_info, autocommit=True) as connection,
        connection.cursor(row_factory=scalar_row) as cursor,
    ):
        running = [site.start_web(), site.start_worker(**WORKER), site.start_worker(**WORKER)]
        watch_folder(site, inbox)
        dropped = killed = 0
        deadline = time.monotonic() + 5 * PATIENCE_SECONDS
        while cursor.execute(ADDED.encode()).fetchone() != FILES and time.monotonic() < deadline:
            for number in range(dropped, min(FILES, dropped + 20)):
                (inbox / f"note-{number}.txt").write_text(f"Note {number} about pier {number % 9}.")
            dropped = min(FILES, dropped + 20)
            time.sleep(chance.uniform(*KILL_SECONDS))
            place = chance.randrange(len(running))
            running[place].kill()
            running[place].wait()
            running[place] = site.start_web() if place == 0 else site.start_worker(**WORKER)
            killed += 1
        assert cursor.execute(ADDED.encode()).fetchone() == FILES
        assert cursor.execute(MANY.encode()).fetchall() == []
        assert cursor.execute(DIFFERENT.encode()).fetchone() == FILES
        print(f"{FILES} files added once each while {killed} processes were killed")  # noqa: T201
