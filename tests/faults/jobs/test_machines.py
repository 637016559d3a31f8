"""Workers on two machines, joined by nothing but the database: caps, schedules, take-over and cancel hold there too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.support.engine import Engine, Workers, most_at_once, wait_for_end
from tests.support.processes import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make network namespaces")


@pytest.fixture
def machines() -> Iterator[list[str]]:
    """Two network namespaces without any way out; the database's socket is a file, and so reaches into both."""
    names = [f"octavo-{uuid4().hex[:8]}" for _ in range(2)]
    for name in names:
        subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=True)


def network_of(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def test_two_machines_share_nothing_but_the_database(
    engine: Engine, owner: UUID, workers: Workers, machines: list[str]
) -> None:
    capped = engine.put(owner, count=40, cap_key="analysis", cap=3, input={"stages": 2, "seconds": 0.05})
    (long,) = engine.put(owner, input={"stages": 1, "seconds": 60})
    first, second = (workers.start(prefix=["ip", "netns", "exec", name]) for name in machines)
    wait_until(lambda: len(workers.executions()) >= 20, "both work")
    assert len({network_of(pid) for pid in (os.getpid(), first.pid, second.pid)}) == 3
    holder = engine.one("SELECT pid FROM workers JOIN jobs ON leased_by = workers.id WHERE jobs.id = %s", long)
    victim, survivor = (first, second) if first.pid == holder else (second, first)
    engine.run(
        "INSERT INTO schedules (name, kind, cron, enabled, next_run_at)"
        " VALUES ('once', 'demo', '0 0 1 1 *', true, engine_now())"
    )
    wait_until(lambda: engine.one("SELECT last_run_at FROM schedules WHERE name = 'once'"), "one of them starts it")
    victim.kill()
    wait_until(lambda: engine.job(long)["attempt"] == 2, "the other machine takes over")
    engine.cancel(long)
    wait_until(lambda: "lease lost" in workers.log.read_text(), "it is stopped there")
    wait_for_end(engine)
    assert engine.statuses() == {"complete": 41, "cancelled": 1}
    assert engine.one("SELECT count(*) FROM job_stages") == 2 * len(capped) + 1
    assert most_at_once(engine)["analysis"] <= 3
    said = [line for line in workers.log.read_text().splitlines() if "lease lost" in line]
    assert any(str(long) in line for line in said)
    assert survivor.poll() is None
