"""An analysis with everything that takes part: a database, worker processes, and a model that takes its time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from tests.support.analyses import answer_well, begin
from tests.support.engine import Engine, Workers, engine_on, workers_in
from tests.support.fake_ai import Asked, FakeGemini
from tests.support.fake_ai.server import SECRET
from tests.support.postgres import open_folder, run_server

PAGES_A_SEGMENT = 100
SAMPLE_SECONDS = 0.05


class Model(FakeGemini):
    """Answers after so many seconds. What it was asked is forgotten: only numbers are wanted of it."""

    seconds = 0.0

    def clear(self) -> None:
        super().clear()
        self.calls = 0
        self.answer = self._take_time

    def _take_time(self, asked: Asked) -> str:
        time.sleep(self.seconds)
        with self._lock:
            self.calls += 1
            self.asked.clear()
            self.bills.clear()
            self.requests.clear()
        return answer_well(asked)


@dataclass(frozen=True, slots=True)
class House:
    engine: Engine
    workers: Workers
    model: Model

    def begin(self, segments: int, prompts: int, at_once: int) -> UUID:
        """A book that was read, and its analysis in line."""
        pages = segments * PAGES_A_SEGMENT
        return asyncio.run(begin(self.engine.info, self.workers.data, pages, prompts, at_once))

    def is_open(self) -> bool:
        return self.engine.one("SELECT status FROM analyses") in ("created", "queued", "analyzing")

    def wait(self, count: int) -> None:
        """Until so many workers are there."""
        while self.engine.one("SELECT count(*) FROM workers WHERE expires_at > now()") < count:
            time.sleep(SAMPLE_SECONDS)


@contextmanager
def open_house(seconds: float, **settings: object) -> Generator[House]:
    """`seconds` are those of the model. Nothing is short of money."""
    with run_server(18) as server, server.database() as info, Model() as model, open_folder() as folder:
        model.seconds = seconds
        asked = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": model.url, "embedding_model": "local"}
        rich = dict.fromkeys(("document_budget", "owner_budget", "month_budget"), "1000000")
        given = {"lease_seconds": 60, **asked, **rich, **settings}
        with workers_in(folder, info, **given) as workers, engine_on(info) as engine:
            yield House(engine, workers, model)
