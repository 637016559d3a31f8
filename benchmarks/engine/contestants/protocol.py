"""The lines that every contestant speaks; standard library only, because each one runs in an environment of its own."""

from __future__ import annotations

import abc
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import version

SETTLE_SECONDS, SETTLE_POLL_SECONDS = 60, 0.005
PLAIN, STAGED = "plain", "staged"


class Tally:
    """When the first line of each job ran, on the one clock that all processes of a machine share."""

    def __init__(self) -> None:
        self.starts: list[float] = []

    def record(self) -> None:
        """Called first by every job; appending to a list is safe from many threads."""
        self.starts.append(time.monotonic())


class Contestant(abc.ABC):
    """One engine; `benchmarks.engine.contest` says what each method must do and when it is called."""

    library: str
    can_checkpoint = False
    choices: tuple[str, ...] = ()

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url

    @abc.abstractmethod
    def prepare(self, batch: int) -> None: ...

    @abc.abstractmethod
    def enqueue(self, kind: str, count: int) -> None: ...

    @abc.abstractmethod
    def offer(self) -> None: ...

    @abc.abstractmethod
    def unfinished(self) -> int: ...

    @abc.abstractmethod
    def work(self, batch: int, tally: Tally, wait_for_start: Callable[[], None]) -> None: ...


class Conversation:
    """Questions are words on stdin, answers are one line of JSON each on what stdout was when we began."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
        # Libraries print; from here on that goes where it cannot be mistaken for an answer.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def listen(self) -> list[str]:
        line = sys.stdin.readline()
        return line.split() if line else ["stop"]

    def answer(self, **values: object) -> None:
        self._answers.write(json.dumps(values) + "\n")


class Control:
    """Answers the questions about the queue, and turns this process into a worker when asked to."""

    def __init__(self, contestant: Contestant) -> None:
        self._contestant = contestant
        self._conversation = Conversation()
        self._tally = Tally()

    def serve(self) -> None:
        while True:
            question, *words = self._conversation.listen()
            match question:
                case "describe":
                    self._describe()
                case "prepare":
                    self._contestant.prepare(int(words[0]))
                    self._conversation.answer(prepared=True)
                case "enqueue":
                    self._contestant.enqueue(words[0], int(words[1]))
                    self._conversation.answer(enqueued=True)
                case "offer":
                    self._offer()
                case "settle":
                    self._settle()
                case "work":
                    self._contestant.work(int(words[0]), self._tally, self._wait_for_start)
                case _:
                    os._exit(0)  # the database is dropped with everything in it; there is nothing to close

    def _describe(self) -> None:
        contestant = self._contestant
        self._conversation.answer(
            version=version(contestant.library),
            can_checkpoint=contestant.can_checkpoint,
            choices=contestant.choices,
        )

    def _offer(self) -> None:
        called = time.monotonic()
        self._contestant.offer()
        self._conversation.answer(called=called, committed=time.monotonic())

    def _settle(self) -> None:
        """Answer when the database holds no unfinished job, which is later than the end of the last job's code."""
        patience = time.monotonic() + SETTLE_SECONDS
        while remaining := self._contestant.unfinished():
            if time.monotonic() > patience:
                raise TimeoutError(f"{remaining} jobs are unfinished after {SETTLE_SECONDS} s")
            time.sleep(SETTLE_POLL_SECONDS)
        self._conversation.answer(settled=time.monotonic())

    def _wait_for_start(self) -> None:
        """Called by a worker that is connected; returns when all workers are."""
        self._conversation.answer(ready=True)
        if self._conversation.listen() != ["go"]:
            os._exit(0)
        threading.Thread(target=self._report, daemon=True).start()

    def _report(self) -> None:
        while True:
            match self._conversation.listen():
                case ["count"]:
                    self._conversation.answer(count=len(self._tally.starts))
                case ["starts"]:
                    self._conversation.answer(starts=self._tally.starts)
                case _:
                    os._exit(0)


def serve(contestant_class: type[Contestant]) -> None:
    """The main program of a contestant's file."""
    Control(contestant_class(os.environ["CONTEST_DATABASE_URL"])).serve()
