"""Runs tests in several processes that are forked after the tests were collected: `--processes 4`.

Importing and collecting all tests takes ten seconds of processor time, which processes that each collect for themselves
would spend again. A file's tests run in one process, and so do those of a folder of browser tests, because each process
has its own server, database and browser. Files are handed out in the order in which they were collected.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn, cast

import pytest

Message = tuple[str, Any]
SHARED_FOLDER = "tests/browser/"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, metavar="N", help="Run the tests in this many processes.")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    config, count = session.config, cast("int", session.config.getoption("processes"))
    if count < 2 or config.getoption("collectonly") or session.testsfailed or not session.items:
        return None
    Crew(session).run(count)
    return True


def group_of(item: pytest.Item) -> str:
    file = item.nodeid.partition("::")[0]
    return file.rpartition("/")[0] if file.startswith(SHARED_FOLDER) else file


# In the process that collected the tests ---------------------------------------------------------------------------


class Runner:
    """One of the processes, as the others see it."""

    def __init__(self, pid: int, connection: Connection[int | None, Message]) -> None:
        self.pid = pid
        self.connection = connection
        self.waiting: deque[int] = deque()  # of its group, in their order
        self.given: deque[int] = deque()  # handed out and not ended


class Crew:
    def __init__(self, session: pytest.Session) -> None:
        self.session = session
        places = range(len(session.items))
        groups = groupby(places, lambda place: group_of(session.items[place]))
        self.groups: deque[deque[int]] = deque(deque(group) for _, group in groups)
        self.runners: list[Runner] = []
        self.started = 0

    def run(self, count: int) -> None:
        try:
            for _ in range(min(count, len(self.groups))):
                self.start()
            while self.runners:
                for ready in wait([runner.connection for runner in self.runners]):
                    self.listen(next(one for one in self.runners if one.connection is ready))
        finally:
            for runner in self.runners:
                runner.connection.close()
                os.waitpid(runner.pid, 0)

    def start(self, waiting: Iterable[int] = ()) -> None:
        here, there = cast("tuple[Any, Any]", Pipe())
        folder = temporary_folders(self.session.config).getbasetemp() / f"process-{self.started}"
        self.started += 1
        pid = os.fork()
        if pid == 0:
            for other in [here, *(runner.connection for runner in self.runners)]:
                other.close()
            run_tests(self.session, there, folder)
        there.close()
        runner = Runner(pid, here)
        runner.waiting.extend(waiting)
        self.runners.append(runner)

    def listen(self, runner: Runner) -> None:
        message: Message | None = None
        with suppress(EOFError, ConnectionResetError):
            message = runner.connection.recv()
        if message is None:
            self.end(runner)
        elif message[0] == "next":
            runner.connection.send(self.next_for(runner))
        else:
            self.tell(runner, *message)

    def next_for(self, runner: Runner) -> int | None:
        self.stop_if_asked()
        if not runner.waiting and self.groups:
            runner.waiting = self.groups.popleft()
        if not runner.waiting:
            return None
        runner.given.append(runner.waiting.popleft())
        return runner.given[-1]

    def stop_if_asked(self) -> None:
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def tell(self, runner: Runner, kind: str, value: Any) -> None:  # noqa: ANN401 - as the process sent it
        hook, config = self.session.config.hook, self.session.config
        item = self.session.items[runner.given[0]]
        if kind == "started":
            hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        elif kind == "ended":
            runner.given.popleft()
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        else:
            report = hook.pytest_report_from_serializable(config=config, data=value)
            hook.pytest_runtest_logreport(report=report)

    def end(self, runner: Runner) -> None:
        """If it died while it ran a test, another one goes on behind that test."""
        self.runners.remove(runner)
        runner.connection.close()
        status = os.waitstatus_to_exitcode(os.waitpid(runner.pid, 0)[1])
        if not runner.given:
            return
        item = self.session.items[runner.given.popleft()]
        text = f"The process that ran this test ended with status {status}."
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
        self.session.config.hook.pytest_runtest_logreport(report=report)
        self.start([*runner.given, *runner.waiting])


# In the processes that run them ------------------------------------------------------------------------------------


class Messages:
    """Sends what happens to the process that collected the tests, which reports it."""

    def __init__(self, config: pytest.Config, connection: Connection[Message, int | None]) -> None:
        self.config = config
        self.connection = connection

    def pytest_runtest_logstart(self) -> None:
        self.connection.send(("started", None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.connection.send(("report", data))

    def pytest_runtest_logfinish(self) -> None:
        self.connection.send(("ended", None))

    def ask(self, items: Sequence[pytest.Item]) -> pytest.Item | None:
        self.connection.send(("next", None))
        place = self.connection.recv()
        return None if place is None else items[place]


def run_tests(session: pytest.Session, connection: Connection[Message, int | None], folder: object) -> NoReturn:
    """Until there are no more, or the process that collected them is gone."""
    status = 1
    try:
        messages = become_own(session.config, connection, folder)
        item = messages.ask(session.items)
        while item is not None:
            following = messages.ask(session.items)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        status = 0
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        os._exit(status)


def temporary_folders(config: pytest.Config) -> Any:  # noqa: ANN401 - a part of pytest without a public name
    return getattr(config, "_tmp_path_factory")  # noqa: B009


def own_captured_files(manager: Any) -> None:  # noqa: ANN401 - a part of pytest without a public name
    """Write captured output to files of this process. The objects stay: imported modules may hold them."""
    for capture in (manager._global_capturing.out, manager._global_capturing.err):
        if capture is not None:
            with tempfile.TemporaryFile(buffering=0) as own:
                os.dup2(own.fileno(), capture.tmpfile.fileno())


def become_own(config: pytest.Config, connection: Connection[Message, int | None], folder: object) -> Messages:
    """Own temporary files, captured output and random numbers; nothing is printed here."""
    random.seed()
    plugins: Any = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    own_captured_files(plugins.getplugin("capturemanager"))
    factory = temporary_folders(config)
    factory._given_basetemp, factory._basetemp = folder, None
    messages = Messages(config, connection)
    plugins.register(messages, "messages")
    return messages
