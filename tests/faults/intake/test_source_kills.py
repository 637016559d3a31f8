"""Files of a watched folder are added once each, although every kind of process is killed at random."""

from __future__ import annotations

import contextlib
import random
import time
from pathlib import Path

import psycopg
import pytest

from octavo.database.embedded import DataFolder, EmbeddedPostgres
from tests.soak.kills import Killer
from tests.support.instance import Instance, instance_in
from tests.support.processes import PATIENCE_SECONDS

FILES = 500
# Notified of changes, workers add files within a second, so few files arrive between two kills.
FILES_PER_KILL = 8
# A worker on a busy machine needs a second to start.
KILL_SECONDS = (1.0, 6.0)
# A database that recovers all the time would leave no time for anything else.
VICTIMS = {"worker": 5, "web": 3, "backend": 2, "backend -9": 1, "postmaster": 1, "up": 1}
# Workers that are killed cannot give back their leases, so these are short.
SETTINGS = {"workers": 2, "lease_seconds": 5, "worker_slots": 4}
ADDED = "SELECT count(*) FROM source_files WHERE state = 'added'"
MANY = """
    SELECT count(*) FROM (SELECT FROM documents WHERE filename LIKE 'note-%' GROUP BY filename HAVING count(*) > 1) x"""
DIFFERENT = "SELECT count(DISTINCT filename) FROM documents WHERE filename LIKE 'note-%'"


def number_of(instance: Instance, query: str) -> int:
    info = EmbeddedPostgres(DataFolder(instance.data)).connection_info()
    with psycopg.connect(info, autocommit=True, connect_timeout=5) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row
        return row[0]


def added(instance: Instance) -> int:
    with contextlib.suppress(psycopg.Error):  # the database was killed a moment ago
        return number_of(instance, ADDED)
    return 0


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_500_files_are_added_once_while_everything_is_killed(folder: Path) -> None:
    """Workers, web servers, `octavo up`, single connections of the database, and the whole database."""
    chance, inbox = random.Random(7), folder / "inbox"
    inbox.mkdir()
    with instance_in(folder, **SETTINGS) as instance:
        instance.start()
        watched = instance.octavo("sources", "add", "folder", str(inbox), "--every", "2")
        assert watched.returncode == 0, watched.stderr
        killer, started, dropped = Killer(instance, chance), time.monotonic(), 0
        first = chance.sample(list(VICTIMS), len(VICTIMS))  # each kind at least once
        deadline = started + 10 * PATIENCE_SECONDS
        while added(instance) != FILES and time.monotonic() < deadline:
            for number in range(dropped, min(FILES, dropped + FILES_PER_KILL)):
                (inbox / f"note-{number}.txt").write_text(f"Note {number} about pier {number % 9}.")
            dropped = min(FILES, dropped + FILES_PER_KILL)
            time.sleep(chance.uniform(*KILL_SECONDS))
            killer.kill(first.pop() if first else chance.choices(list(VICTIMS), list(VICTIMS.values()))[0])
        took = time.monotonic() - started
        assert number_of(instance, ADDED) == FILES, killer.counts
        assert number_of(instance, MANY) == 0
        assert number_of(instance, DIFFERENT) == FILES
        assert set(killer.counts) == set(VICTIMS), killer.counts
        print(f"{FILES} files added once each in {took:.0f} s while processes were killed: {killer.counts}")  # noqa: T201
