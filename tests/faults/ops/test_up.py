"""One command starts everything; whatever is killed, the next start works and committed rows are there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import smtplib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from octavo.database import connect
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.database.embedded.data_folder import FileLock
from octavo.ops.processes import RecordFile
from octavo.ops.work import NICENESS
from tests.support.engine import engine_on
from tests.support.imap import mail
from tests.support.instance import Instance, fetch, free_port, instance_in
from tests.support.processes import (
    PATIENCE_SECONDS,
    Running,
    processes_mentioning,
    start_octavo,
    wait_until,
)

LOWEST_PRIORITY = 19


@pytest.fixture
def instance(folder: Path) -> Iterator[Instance]:
    with instance_in(folder) as one:
        yield one


def write_row(instance: Instance, number: int) -> None:
    execute(instance, f"CREATE TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES ({number})")


def count_rows(instance: Instance) -> int:
    return execute(instance, "SELECT count(*) FROM kept")


def execute(instance: Instance, statement: str) -> int:
    info = EmbeddedPostgres(DataFolder(instance.data)).connection_info()

    async def run() -> int:
        async with await connect(info) as connection:
            cursor = await connection.execute(statement.encode())
            row = await cursor.fetchone() if cursor.description else None
            return int(row[0]) if row else 0

    return asyncio.run(run())


def kill(pids: list[int | None]) -> None:
    for pid in pids:
        assert pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_stops_everything_in_good_order(instance: Instance, number: signal.Signals) -> None:
    instance.start()
    assert set(instance.process_ids()) == {"up", "web", "worker 1", "database"}
    assert instance.stop(number) == 0
    assert instance.everything() == []
    with socket.socket() as other:  # the port is free at once, without any option
        other.bind(("127.0.0.1", int(instance.environment["OCTAVO_PORT"])))
    assert "database system is shut down" in (instance.data / "logs/postgres.log").read_text()


def test_stop_ends_it_and_status_tells(instance: Instance) -> None:
    assert instance.octavo("status").returncode == 3
    assert instance.octavo("stop").stdout == "Nothing was running.\n"
    instance.start()
    assert instance.status()["ready"] is True
    stopped = instance.octavo("stop")
    assert (stopped.returncode, stopped.stdout) == (0, "Stopped.\n")
    assert instance.process
    assert instance.process.wait(10) == 0
    assert instance.everything() == []


def test_a_web_process_that_is_killed_is_started_again_and_no_caller_is_refused(instance: Instance) -> None:
    instance.start()
    for restarts in (1, 2, 3):
        kill([instance.process_ids()["web"]])
        # The port is the supervisor's, so a caller waits for the new process instead of being refused.
        status, _, _ = fetch(f"{instance.address}/healthz")
        assert status == 200
        wait_until(lambda: web_restarts(instance) == restarts, "the restart is counted")  # noqa: B023


def test_a_web_process_is_started_again_while_the_record_of_processes_cannot_be_written(instance: Instance) -> None:
    """For example, while the disk is full."""
    instance.start()
    in_the_way = DataFolder(instance.data).run / "up.new"
    in_the_way.mkdir()
    kill([instance.process_ids()["web"]])
    assert fetch(f"{instance.address}/healthz")[0] == 200
    in_the_way.rmdir()


def test_several_web_processes_serve_one_port_and_nobody_misses_one_that_dies(folder: Path) -> None:
    with instance_in(folder, web=2, workers=0) as instance:
        instance.start()
        named = instance.process_ids()
        webs = [named["web"], named["web 2"]]
        for stopped in webs:  # each serves alone
            assert stopped
            os.kill(stopped, signal.SIGSTOP)
            try:
                assert [fetch(f"{instance.address}/healthz")[0] for _ in range(5)] == [200] * 5
            finally:
                os.kill(stopped, signal.SIGCONT)
        kill([named["web"]])
        assert [fetch(f"{instance.address}/healthz")[0] for _ in range(20)] == [200] * 20
        try:
            wait_until(lambda: web_restarts(instance) > 0, "the restart is counted")
            assert web_restarts(instance) == 1
        except AssertionError as error:
            error.add_note(instance.report())
            raise
        assert instance.process_ids()["web 2"] == named["web 2"]
        assert instance.stop() == 0
        assert instance.everything() == []


def test_another_up_takes_over_the_port_and_requests_wait_meanwhile(folder: Path) -> None:
    """As in an upgrade. The old processes are stopped by the new `up`, which opens the port as soon as it is free."""
    with instance_in(folder, workers=1) as instance:
        instance.start()
        assert instance.process
        before, old = instance.process, set(instance.everything())
        refused, ending = list[float](), threading.Event()

        def read() -> None:
            while not ending.is_set():
                try:
                    with socket.create_connection(("127.0.0.1", int(instance.environment["OCTAVO_PORT"]))):
                        pass
                except ConnectionRefusedError:
                    refused.append(time.monotonic())
                ending.wait(0.002)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            instance.start(replace=True)
            assert fetch(f"{instance.address}/healthz")[0] == 200
        finally:
            ending.set()
            reader.join()
        assert before.wait(PATIENCE_SECONDS) == 0
        assert not old & set(instance.everything())
        # The port is closed only between two attempts to open it. Two seconds are the goal for readers.
        assert not refused or refused[-1] - refused[0] < 2
        assert instance.stop() == 0


def test_replacing_nothing_is_a_start(folder: Path) -> None:
    with instance_in(folder, workers=0) as instance:
        instance.start(replace=True)
        assert fetch(f"{instance.address}/healthz")[0] == 200
        assert instance.stop() == 0


def web_restarts(instance: Instance) -> int:
    record = RecordFile(DataFolder(instance.data)).read()
    assert record
    return next(one.restarts for one in record.processes if one.name == "web")


def test_workers_leave_the_processor_to_web_and_database_also_after_both_were_killed(instance: Instance) -> None:
    """The priority is inherited, and a killed database is started again by a process that has its own."""
    instance.start()
    for name in ("worker 1", "database"):
        killed = instance.process_ids()[name]
        assert killed
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda name=name, killed=killed: instance.process_ids().get(name) not in {None, killed}, name)
    lower = min(LOWEST_PRIORITY, os.nice(0) + NICENESS)
    wait_until(lambda: niceness_of(instance, "worker") == {lower}, "the new worker has a low priority")
    assert niceness_of(instance, "up", "web", "database") == {os.nice(0)}


def niceness_of(instance: Instance, *names: str) -> set[int]:
    """Of every thread of the processes whose names begin like this."""
    pids = [pid for name, pid in instance.process_ids().items() if pid and name.startswith(names)]
    threads = [int(one.name) for pid in pids for one in Path(f"/proc/{pid}/task").iterdir()]
    with contextlib.suppress(ProcessLookupError):
        return {os.getpriority(os.PRIO_PROCESS, one) for one in threads}
    return set()


def test_a_killed_database_is_restarted_automatically(instance: Instance) -> None:
    instance.start()
    write_row(instance, 1)
    before = instance.process_ids()
    kill([before["database"]])
    wait_until(lambda: instance.process_ids()["database"] not in {None, before["database"]}, "a new database")
    wait_until(instance.is_ready, "ready again")
    assert count_rows(instance) == 1
    assert instance.process_ids()["web"] == before["web"]


def test_nothing_outlives_a_killed_supervisor(instance: Instance) -> None:
    instance.start()
    kill([instance.pid])
    wait_until(lambda: not instance.everything(), "web, keeper and database are gone")


def test_kills_from_outside_cost_a_job_no_time_and_no_suspicion(instance: Instance) -> None:
    """The lease is a minute, and nobody waits for it: `up` saw the worker end, and the next `up` knows of the last."""
    instance.start()
    instance.octavo("jobs", "add", "demo", "--input", '{"seconds": 600}')
    with engine_on(EmbeddedPostgres(DataFolder(instance.data)).connection_info()) as engine:
        job: UUID = engine.one("SELECT id FROM jobs WHERE kind = 'demo'")
        wait_until(lambda: engine.status(job) == "processing", "it has begun")
        kill([instance.process_ids()["worker 1"]])
        wait_until(lambda: engine.job(job)["attempt"] == 2, "the next worker has it")
        assert (engine.events(job)[-2]["detail"]["reason"], engine.job(job)["taken_from"]) == ("worker_killed", [])
    kill([instance.pid])
    wait_until(lambda: not instance.everything(), "all is gone")
    instance.start()
    with engine_on(EmbeddedPostgres(DataFolder(instance.data)).connection_info()) as engine:
        wait_until(lambda: engine.job(job)["attempt"] == 3, "the next installation has it")
        assert (engine.events(job)[-2]["detail"]["reason"], engine.job(job)["taken_from"]) == ("worker_killed", [])
        instance.octavo("jobs", "add", "demo", "--input", '{"crash_at": 1}')
        wait_until(lambda: engine.job(job)["taken_from"], "a crash is told from a kill")
        told = [event["detail"].get("reason") for event in engine.events(job)]
        assert told.count("worker_ended") >= 1
        assert "lease_expired" not in told


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.long)])
def test_after_any_kills_the_next_start_works_and_committed_rows_are_there(instance: Instance, rounds: int) -> None:
    chance = random.Random(rounds)
    instance.start()
    for number in range(rounds):
        write_row(instance, number)
        victims: list[int | None] = [process.pid for process in instance.everything()]
        chance.shuffle(victims)
        if number % 2:  # all at once, in any order; else some of them, and the supervisor last
            kill(victims)
        else:
            kill([*victims[: chance.randrange(len(victims))], instance.pid])
        assert instance.process
        instance.process.wait()
        instance.start()
        assert count_rows(instance) == number + 1
    assert instance.octavo("doctor").returncode == 0
    assert instance.stop() == 0
    assert instance.everything() == []


def test_a_second_start_on_the_same_folder_is_refused_and_names_the_first(instance: Instance) -> None:
    instance.start()
    second = instance.octavo("up")
    assert second.returncode == 1
    assert second.stderr.strip().splitlines() == [second.stderr.strip()]
    assert instance.address in second.stderr
    assert instance.is_ready()


def test_the_sign_in_link_works_once(instance: Instance) -> None:
    instance.start()
    link = instance.sign_in_link()
    for _ in range(2):  # a mail scanner, then the person
        status, headers, page = fetch(link)
        assert status == 200
        assert b'<form method="post" action="/sign-in"' in page
    token = {"token": link.partition("token=")[2]}
    assert httpx.post(f"{instance.address}/sign-in", data=token, trust_env=False).status_code == 303
    status, headers, page = fetch(link)
    assert status == 403
    assert b"Sign-in link not valid" in page
    assert "content-security-policy" in headers


def test_doctor_works_beside_a_running_instance_and_alone(instance: Instance) -> None:
    instance.start()
    assert instance.octavo("doctor").returncode == 0
    instance.stop()
    alone = instance.octavo("doctor", "--json")
    assert alone.returncode == 0, alone
    wait_until(lambda: not processes_mentioning(str(instance.data)), "the doctor leaves no database behind")


def test_four_parallel_supervisors_start_one_instance(instance: Instance) -> None:
    logs = [instance.log.with_name(f"{number}.log") for number in range(4)]
    crowd: list[Running] = []
    for log in logs:
        with log.open("wb") as stream:
            crowd.append(start_octavo(["up"], instance.environment, stream.fileno()))
    try:
        wait_until(lambda: sum(one.poll() is not None for one in crowd) == 3, "all but one give up")
        assert [one.returncode for one in crowd if one.poll() is not None] == [1, 1, 1]
        wait_until(instance.is_ready, "the one is ready")
    finally:
        for one in crowd:
            one.terminate()
            one.wait(PATIENCE_SECONDS)
    assert instance.everything() == []


def test_a_test_whose_start_hangs_reports_where_each_process_waits(instance: Instance) -> None:
    """For failures that nobody can repeat: here another process holds a lock that the start needs."""
    folder = DataFolder(instance.data)
    folder.prepare()
    held = FileLock(folder.run / "postgres.start.lock")
    assert held.try_lock()
    with instance.log.open("ab") as log:
        instance.process = start_octavo(["up"], instance.environment, log.fileno())
    wait_until(lambda: "in lock" in instance.report(), "its stacks show the lock")
    report = instance.report()
    assert f"{instance.pid} of " in report
    assert "threads, waits in " in report
    held.close()


def deliver(port: int, number: int) -> dict[str, tuple[int, bytes]]:
    with smtplib.LMTP("127.0.0.1", port, timeout=PATIENCE_SECONDS) as server:
        return server.sendmail("ann@example.org", ["scans@example.org"], mail(number))


def test_mails_are_delivered_to_up_also_while_their_process_is_restarted(folder: Path) -> None:
    port = free_port()
    with instance_in(folder, lmtp_listen=f"127.0.0.1:{port}") as instance:
        instance.start()
        assert f"Emails are received over LMTP at 127.0.0.1:{port}" in instance.log.read_text()
        assert instance.octavo("sources", "add", "lmtp", "scans").returncode == 0
        assert deliver(port, 1) == {}
        killed = instance.process_ids()["mail"]
        kill([killed])
        assert deliver(port, 2) == {}  # it waits until the process is there again
        assert instance.process_ids()["mail"] != killed
        found = json.loads(instance.octavo("ls", "--json").stdout)["items"]
        assert len({one["id"] for one in found if one["source_type"] == "eml"}) == 2
        assert instance.stop() == 0
        assert instance.everything() == []


def test_a_port_for_mails_that_is_in_use_is_reported(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        place = f"127.0.0.1:{other.getsockname()[1]}"
        with instance_in(folder, lmtp_listen=place) as instance:
            refused = instance.octavo("up")
    assert refused.returncode != 0
    assert "OCTAVO_LMTP_LISTEN" in refused.stderr
