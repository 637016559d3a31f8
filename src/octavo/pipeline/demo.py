"""Job kind for self-tests: its stages sleep, and fail or crash on request.

Each stage appends a line to a file when it runs, so that executions can be counted.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from octavo.core import errors
from octavo.core.errors import BadInput, ErrorClass, OctavoError
from octavo.core.types import JSON
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.pipeline.tools import Tools

FAILURES: dict[ErrorClass, type[OctavoError]] = {
    ErrorClass.TRANSIENT: errors.StorageFailed,
    ErrorClass.TIMEOUT: errors.TimedOut,
    ErrorClass.NETWORK: errors.NetworkFailed,
    ErrorClass.DATABASE: errors.DatabaseUnavailable,
    ErrorClass.RATE_LIMIT: errors.RateLimited,
    ErrorClass.AI_QUOTA: errors.QuotaExhausted,
    ErrorClass.VALIDATION: errors.BadInput,
    ErrorClass.UNSUPPORTED: errors.NotSupported,
    ErrorClass.CONTENT_BLOCKED: errors.ContentBlocked,
    ErrorClass.PERMANENT: errors.TokenLimit,
}


class DemoInput(BaseModel):
    """The input of a demo job.

    `fail` is the error class to raise in the first `fail_times` attempts. `crash_at` is the stage to crash in.
    """

    model_config = ConfigDict(extra="forbid")

    stages: int = Field(default=1, ge=0, le=1000)
    seconds: float = Field(default=0.0, ge=0, le=3600)
    fail: ErrorClass | None = None
    fail_times: int | None = Field(default=None, ge=0)
    crash_at: int | None = Field(default=None, ge=1)


def read_input(given: dict[str, JSON]) -> DemoInput:
    try:
        return DemoInput.model_validate(given)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise BadInput(wrong) from None


async def run_demo(run: Run[Tools]) -> JSON:
    wanted = read_input(run.input)
    for number in range(1, wanted.stages + 1):

        async def work(number: int = number) -> JSON:
            await asyncio.to_thread(note_execution, run, f"stage-{number}")
            fail_on_request(wanted, number, run.job.attempt)
            await asyncio.sleep(wanted.seconds)
            return number

        await run.stage(f"stage-{number}", work)
    return {"stages": wanted.stages}


def note_execution(run: Run[Tools], stage: str) -> None:
    """Append one line with a single write, so that lines from several processes do not mix."""
    file = executions_file(run.tools.settings.data_dir)
    file.parent.mkdir(mode=0o755, exist_ok=True)
    with file.open("a") as stream:
        stream.write(f"{run.job.id} {stage} {run.job.attempt}\n")


def fail_on_request(wanted: DemoInput, number: int, attempt: int) -> None:
    if wanted.crash_at == number:  # a crash, which a supervisor can tell from a kill
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), signal.SIGABRT)
    if wanted.fail and (wanted.fail_times is None or attempt <= wanted.fail_times):
        raise FAILURES[wanted.fail]("The demo job fails as requested.")


def executions_file(data_dir: Path) -> Path:
    return data_dir / "demo" / "executions.log"


KIND = JobKind("demo", run_demo, time_limit_seconds=600, limit_renewed_by_stage=True, check_input=read_input)
