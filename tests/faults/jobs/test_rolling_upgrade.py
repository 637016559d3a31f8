"""Workers of this version beside a newer version: they go on if its migrations allow it, and stop if not."""

from __future__ import annotations

from uuid import UUID

from octavo.database.migrator import newest_known
from tests.support.engine import Engine, Workers, wait_for_end
from tests.support.processes import PATIENCE_SECONDS, wait_until

APPLIED = """
    INSERT INTO schema_migrations (number, name, digest, compatible_from) VALUES (%s, 'later', repeat('0', 64), %s)"""
LIVE = "SELECT count(*) FROM workers WHERE expires_at > engine_now()"


def test_workers_go_on_after_a_compatible_migration_and_stop_after_another(
    engine: Engine, owner: UUID, workers: Workers
) -> None:
    newest = newest_known()
    before = workers.start(lease_seconds=30)
    wait_until(lambda: engine.one(LIVE) == 1, "the first worker runs")

    engine.run("ALTER TABLE documents ADD COLUMN later text")
    engine.run(APPLIED, newest + 1, newest)
    after = workers.start(lease_seconds=30)
    wait_until(lambda: engine.one(LIVE) == 2, "a worker starts after the migration")
    engine.put(owner, count=20, input={"stages": 2})
    wait_for_end(engine)
    assert engine.statuses() == {"complete": 20}
    assert before.poll() is None
    assert after.poll() is None

    engine.put(owner, count=4, input={"stages": 1, "seconds": 60})
    wait_until(lambda: engine.statuses()["processing"] == 4, "jobs are running")
    engine.run(APPLIED, newest + 2, None)
    assert (before.wait(PATIENCE_SECONDS), after.wait(PATIENCE_SECONDS)) == (0, 0)
    assert engine.statuses() == {"complete": 20, "queued": 4}
    assert engine.rows("SELECT FROM jobs WHERE failures > 0") == []
    assert engine.rows("SELECT FROM workers") == []

    assert workers.start().wait(PATIENCE_SECONDS) != 0
    assert f"newer version of Octavo (migration {newest + 2}; this version has {newest})" in workers.log.read_text()
