"""Kills of every kind of process, and workers that stand still for a while. The order is drawn from the seed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable

import psycopg

from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.ops.processes import RecordFile
from tests.support.instance import Instance

PAUSE_SECONDS = (2.0, 9.0)
STOPPED_SECONDS = (1.0, 8.0)
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
UNFINISHED = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')"


class Killer:
    """`counts` says how often each kind of victim was killed."""

    def __init__(self, instance: Instance, chance: random.Random) -> None:
        self.counts: Counter[str] = Counter()
        self.last_kill = time.monotonic()
        self._instance = instance
        self._chance = chance
        self._unfinished = 0
        self._plan: dict[str, tuple[int, Callable[[], bool]]] = {
            "worker": (8, self._kill_worker),
            "stopped": (2, self._stop_worker),
            "web": (4, self._kill_web),
            "backend": (4, self._end_backend),
            "backend -9": (1, self._kill_backend),
            "postmaster": (1, self._kill_postmaster),
            "up": (2, self._kill_up),
        }

    def unfinished(self) -> int:
        return self._unfinished

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, self._chance.uniform(*PAUSE_SECONDS)))
            with contextlib.suppress(psycopg.Error):
                self._unfinished = self.ask(UNFINISHED)[0]
            kinds = list(self._plan)
            (kind,) = self._chance.choices(kinds, [self._plan[name][0] for name in kinds])
            self.kill(kind)

    def kill(self, kind: str) -> None:
        """Kill one process of this kind, if there is one at this moment."""
        if self._plan[kind][1]():
            self.counts[kind] += 1
            self.last_kill = time.monotonic()

    def ask(self, statement: str) -> list[int]:
        info = EmbeddedPostgres(DataFolder(self._instance.data)).connection_info()
        with psycopg.connect(info, autocommit=True, connect_timeout=5) as connection:
            return [row[0] for row in connection.execute(statement.encode()).fetchall()]

    def _kill_worker(self) -> bool:
        return self._signal(self._some_child("worker"), signal.SIGKILL)

    def _kill_web(self) -> bool:
        return self._signal(self._some_child("web"), signal.SIGKILL)

    def _stop_worker(self) -> bool:
        pid = self._some_child("worker")
        if not self._signal(pid, signal.SIGSTOP):
            return False
        time.sleep(self._chance.uniform(*STOPPED_SECONDS))
        return self._signal(pid, signal.SIGCONT)

    def _end_backend(self) -> bool:
        return self._signal(self._some_backend(), signal.SIGTERM)

    def _kill_backend(self) -> bool:
        """PostgreSQL then ends all connections and recovers."""
        return self._signal(self._some_backend(), signal.SIGKILL)

    def _kill_postmaster(self) -> bool:
        return self._signal(EmbeddedPostgres(DataFolder(self._instance.data)).pid(), signal.SIGKILL)

    def _kill_up(self) -> bool:
        """With it go web and workers; the next one is started as a person would."""
        assert self._instance.process
        self._instance.process.kill()
        self._instance.process.wait()
        self._instance.start()
        return True

    def _some_child(self, name: str) -> int | None:
        record = RecordFile(DataFolder(self._instance.data)).read()
        pids = [child.pid for child in record.processes if child.name.startswith(name) and child.pid] if record else []
        return self._chance.choice(pids) if pids else None

    def _some_backend(self) -> int | None:
        with contextlib.suppress(psycopg.Error):
            if pids := self.ask(BACKENDS):
                return self._chance.choice(pids)
        return None

    @staticmethod
    def _signal(pid: int | None, number: signal.Signals) -> bool:
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True
