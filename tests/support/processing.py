"""Processing of documents in the test's own process: every step of a worker, when the test says so."""

from __future__ import annotations

import json
import os
from importlib import import_module

from octavo.core.types import JSON
from octavo.jobs.faults import FaultPlan
from octavo.jobs.run import ClaimedJob, Run
from octavo.pipeline import Tools, known_kinds
from octavo.sandbox import Call, Limits, Sandbox, SandboxedFunction
from octavo.sandbox.channel import ProgressCallback
from octavo.sandbox.files import InputFile, OutputFile, open_input, open_output
from octavo.sandbox.function import Task
from octavo.sandbox.limits import Outcome


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


async def attempt(job: ClaimedJob, tools: Tools, faults: str = "") -> JSON:
    """One attempt at a claimed job, up to its answer or its error."""

    def renew() -> None:
        """Nobody watches the time here."""

    return await known_kinds()[job.kind].handler(Run(job, tools, tools.database, FaultPlan(faults), renew))
