"""Processing of documents in the test's own process: every step of a worker, when the test says so."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Sequence
from importlib import import_module

from octavo.core.types import JSON
from octavo.jobs.job_run import ClaimedJob, FaultPlan, Run
from octavo.pipeline import Tools, known_kinds
from octavo.sandbox import Call, Limits, Sandbox, SandboxedFunction
from octavo.sandbox.channel import Progress, ProgressCallback
from octavo.sandbox.protocol import Outcome, Task
from octavo.sandbox.sandbox import InputFile, OutputFile, open_input, open_output


class OpenSandbox(Sandbox):
    """Runs what a sandbox would run without one: for files that the test wrote itself, a hundred times as fast."""

    async def run(
        self,
        call: Call,
        *,
        input_file: InputFile | None = None,
        output_file: OutputFile | None = None,
        limits: Limits | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Outcome:
        module, _, name = call.function.partition(":")
        with (
            os.fdopen(open_input(input_file), "rb") as given,
            os.fdopen(open_output(output_file), "wb") as made,
            open(os.devnull, "wb") as nowhere,  # noqa: PTH123, ASYNC230 - no path of a file
        ):
            function = getattr(import_module(module), name)
            assert isinstance(function, SandboxedFunction), call.function
            # As they arrive in a child: tuples are lists, and strings of our own types are plain ones.
            value = function(Task(given, made, nowhere.fileno()), **json.loads(json.dumps(call.arguments)))
        return Outcome(value, 0, 0.0, 0.0, 0)


class SharedSandbox(Sandbox):
    """A real sandbox for all tests of a process: in a thread, because each test has its own event loop."""

    def __init__(self, preload: Sequence[str]) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._real = asyncio.run_coroutine_threadsafe(_open_sandbox(preload), self._loop).result()

    async def run(
        self,
        call: Call,
        *,
        input_file: InputFile | None = None,
        output_file: OutputFile | None = None,
        limits: Limits | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Outcome:
        here = asyncio.get_running_loop()

        def tell(progress: Progress) -> None:
            if on_progress:
                here.call_soon_threadsafe(on_progress, progress)

        running = self._real.run(call, input_file=input_file, output_file=output_file, limits=limits, on_progress=tell)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(running, self._loop))

    def end(self) -> None:
        asyncio.run_coroutine_threadsafe(self._real.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _open_sandbox(preload: Sequence[str]) -> Sandbox:
    return await Sandbox(preload=preload).__aenter__()


async def attempt(job: ClaimedJob, tools: Tools, faults: str = "") -> JSON:
    """One attempt at a claimed job, up to its answer or its error."""

    def renew() -> None:
        """Nobody watches the time here."""

    return await known_kinds()[job.kind].handler(Run(job, tools, tools.database, FaultPlan(faults), renew))
