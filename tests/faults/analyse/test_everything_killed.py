"""One installation, killed with all of its processes once in each phase of an analysis: the next start goes on with it.

The moment is the database's: a trigger keeps whoever comes to it, and by the next start it waits at the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from octavo.database.embedded import DataFolder, EmbeddedPostgres
from tests.support.analyses import answer_well, begin, check_answers
from tests.support.engine import Engine, engine_on
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import SECRET
from tests.support.instance import Instance, instance_in
from tests.support.processes import wait_until

PAGES, PROMPTS, AT_ONCE = 120, 1, 2
# What is kept from happening in each phase, and what the analysis says of itself then.
MOMENTS = {
    "initializing": ("INSERT ON segments", "true", "initializing"),
    "splitting": ("UPDATE ON segments", "NEW.first > 1", "uploading"),
    "uploading": ("INSERT ON provider_files", "true", "processing"),
    "processing": ("UPDATE ON analysis_items", "NEW.status = 'done'", "processing"),
    "consolidating": ("UPDATE ON analysis_results", "NEW.status = 'completed'", "consolidating"),
}
WAITING = """
    CREATE TABLE moment (name text);
    CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM moment WHERE name = TG_ARGV[0]) THEN
            PERFORM pg_sleep(600);
        END IF;
        RETURN NEW;
    END $$"""
IS_THERE = """
    SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"""


@pytest.fixture
def instance(folder: Path) -> Iterator[Instance]:
    with FakeGemini() as gemini:
        gemini.answer = answer_well
        asked = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
        rich = dict.fromkeys(("document_budget", "owner_budget", "month_budget"), 1000)
        with instance_in(folder, lease_seconds=2, **asked, **rich) as one:
            yield one


def info_of(instance: Instance) -> str:
    return EmbeddedPostgres(DataFolder(instance.data)).connection_info()


def wait_at(engine: Engine, moment: str) -> None:
    engine.run("DELETE FROM moment")
    engine.run("INSERT INTO moment VALUES (%s)", moment)


def kill_everything(instance: Instance) -> None:
    victims = instance.everything()
    for one in victims:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    assert instance.process
    instance.process.wait()
    psutil.wait_procs(victims)
    wait_until(lambda: not instance.everything(), "nothing is left")


def test_after_a_kill_in_any_phase_the_next_start_completes_the_analysis(instance: Instance) -> None:
    instance.start()
    with engine_on(info_of(instance)) as engine:
        engine.run(WAITING)
        for name, (event, condition, _) in MOMENTS.items():
            trigger = f"CREATE TRIGGER wait_{name} BEFORE {event} FOR EACH ROW WHEN ({condition})"
            engine.run(f"{trigger} EXECUTE FUNCTION wait_here('{name}')")
        wait_at(engine, "initializing")
    asyncio.run(begin(info_of(instance), instance.data, PAGES, PROMPTS, AT_ONCE))
    upcoming = iter([*MOMENTS, ""])
    next(upcoming)
    for _, _, phase in MOMENTS.values():
        with engine_on(info_of(instance)) as engine:
            wait_until(lambda: engine.one(IS_THERE), f"something waits while it is {phase}")
            assert engine.one("SELECT phase FROM analyses") == phase
            wait_at(engine, next(upcoming))
        kill_everything(instance)
        instance.start()
    with engine_on(info_of(instance)) as engine:
        wait_until(lambda: engine.one("SELECT status FROM analyses") != "analyzing", "it ends")
        assert engine.one("SELECT status FROM analyses") == "completed"
        check_answers(engine, PAGES, PROMPTS)
        assert instance.stop() == 0
