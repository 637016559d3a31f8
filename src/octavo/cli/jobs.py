"""`octavo jobs` and `octavo schedules`: jobs and recurring jobs, on the machine where Octavo is installed.

The commands also work while Octavo is stopped, because they access the database directly. `add` creates jobs for the
local owner (the Octavo account of this machine), and `ls` lists only that account's jobs unless --all-owners is given.
The other commands accept jobs of any account, because the user of this machine is the administrator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Cursor, find_named
from octavo.cli.output import local_time, print_items, print_json
from octavo.cli.remote import act
from octavo.core.errors import BadInput
from octavo.core.types import JobStatus

if TYPE_CHECKING:
    from octavo.core.http import Page
    from octavo.core.types import JSON
    from octavo.database import Connection
    from octavo.jobs.queue import EnqueuedJob, NewJob
    from octavo.jobs.views import EventView
    from octavo.records.jobs import ImportState, JobView, StageView

MOST_ADDED = 1_000_000
BATCH = 1000
LONGEST_DELAY_SECONDS = 366 * 24 * 3600
MOST_LISTED = 500
FEW = 10
ALL = "all"
# Waiting jobs are counted up to this number.
COUNTED = 1000

app = typer.Typer(help="List, add, retry and cancel jobs.", no_args_is_help=True)

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Job ids, or at least four characters of each.")]
Limit = Annotated[int, typer.Option(min=1, max=MOST_LISTED, help="Maximum number of jobs.")]


# Commands ----------------------------------------------------------------------------------------------------------


@app.command()
def add(  # noqa: PLR0917 - each is an option of the command
    kind: Annotated[str, typer.Argument(help="Kind of job, such as demo.")],
    count: Annotated[int, typer.Option(min=1, max=MOST_ADDED, help="Number of jobs.")] = 1,
    given: Annotated[str, typer.Option("--input", metavar="JSON", help="Input of each job, as a JSON object.")] = "{}",
    priority: Annotated[int, typer.Option(min=0, max=9, help="Priority from 0 (runs first) to 9 (runs last).")] = 5,
    key: Annotated[str | None, typer.Option(help="Add nothing if a job with this key already exists.")] = None,
    delay: Annotated[
        float, typer.Option(min=0, max=LONGEST_DELAY_SECONDS, help="Seconds to wait before the first attempt.")
    ] = 0,
    cap_key: Annotated[str | None, typer.Option(help="Name of the job group that --cap limits.")] = None,
    cap: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of jobs in the group that run in parallel.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Queue jobs. If there is an error, none is queued."""
    if key and count > 1:
        raise BadInput("--key cannot be combined with --count: a key belongs to one job.")
    if (cap_key is None) != (cap is None):
        raise BadInput("--cap-key and --cap must be used together.")
    work = read_object(given)
    check_input(kind, work)

    async def run(connection: Connection) -> list[EnqueuedJob]:
        from octavo.jobs.queue import NewJob
        from octavo.owners import local_owner

        owner = await local_owner(connection)

        def new_job() -> NewJob:
            limits: dict[str, Any] = {"delay_seconds": delay or None, "cap_key": cap_key, "cap": cap}
            return NewJob(kind, owner, work, key, priority=priority, **limits)

        return await enqueue_all(connection, new_job, count)

    added = act(run, before=sync_kinds)
    if as_json:
        return typer.echo(json.dumps([{"id": str(one.id), "made": one.made} for one in added]))
    if count > 1:
        return typer.echo(f"Added {count} jobs of kind {kind}.")
    return typer.echo(f"{'Added' if added[0].made else 'Already exists:'} job {added[0].id}.")


@app.command()
def ls(
    status: Annotated[JobStatus | None, typer.Option(help="Only jobs with this status.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    all_owners: Annotated[
        bool, typer.Option("--all-owners", help="List the jobs of all owners, not only yours.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    if kind is not None:
        check_kind(kind)

    async def run(connection: Connection) -> Page[JobView]:
        from octavo.jobs.views import list_jobs
        from octavo.owners import local_owner

        owner = None if all_owners else await local_owner(connection)
        return await list_jobs(connection, owner, status=status, kind=kind, cursor=cursor, limit=limit)

    print_page(act(run), as_json)


@app.command()
def show(
    job: Annotated[str, typer.Argument(metavar="ID", help="Job id, or part of it.")], as_json: AsJson = False
) -> None:
    """Show one job: its status, the reason why it is waiting, and its history."""

    async def run(connection: Connection) -> tuple[JobView, list[EventView]]:
        from octavo.jobs.views import list_events_of_job, show_job

        (wanted,) = await find_jobs(connection, [job])
        return await show_job(connection, None, wanted), await list_events_of_job(connection, None, wanted)

    found, events = act(run)
    if as_json:
        return typer.echo(as_json_text(found))
    return print_job(found, events)


@app.command()
def retry(
    jobs: Ids,
    from_stage: Annotated[
        str | None,
        typer.Option(help="Repeat this stage and all later ones. `octavo jobs show ID --json` lists the stages."),
    ] = None,
    start_over: Annotated[bool, typer.Option("--start-over", help="Repeat all stages.")] = False,
    as_json: AsJson = False,
) -> None:
    """Queue failed, cancelled or paused jobs again. Finished stages are not repeated."""
    if from_stage is not None and start_over:
        raise BadInput("--from-stage and --start-over cannot be combined.")
    stage = "" if start_over else from_stage

    async def run(connection: Connection) -> int:
        from octavo.jobs.queue import retry_jobs

        return await retry_jobs(connection, None, await find_jobs(connection, jobs), from_stage=stage)

    report_changed("Queued again", act(run), as_json)


@app.command()
def cancel(jobs: Ids, as_json: AsJson = False) -> None:
    """Cancel jobs, and the jobs that depend on them, immediately."""

    async def run(connection: Connection) -> int:
        from octavo.jobs.queue import cancel_jobs

        return await cancel_jobs(connection, None, await find_jobs(connection, jobs))

    report_changed("Cancelled", act(run), as_json)


@app.command()
def prioritise(jobs: Ids, as_json: AsJson = False) -> None:
    """Move unfinished jobs ahead of their owner's imports."""

    async def run(connection: Connection) -> int:
        from octavo.jobs.queue import prioritise_jobs

        return await prioritise_jobs(connection, None, await find_jobs(connection, jobs))

    report_changed("Moved up", act(run), as_json)


@app.command("pause-imports")
def pause_imports(as_json: AsJson = False) -> None:
    """Pause your imports. Running jobs continue, and documents that you add by hand are still processed."""
    change_imports("pause_imports", as_json)


@app.command("resume-imports")
def resume_imports(as_json: AsJson = False) -> None:
    """Resume your imports."""
    change_imports("resume_imports", as_json)


def change_imports(action: Literal["pause_imports", "resume_imports"], as_json: bool) -> None:
    async def run(connection: Connection) -> ImportState:
        from octavo.jobs import queue
        from octavo.owners import local_owner

        return await getattr(queue, action)(connection, await local_owner(connection))

    state = act(run)
    if as_json:
        return print_json({"paused_at": state.paused_at, "waiting": state.waiting})
    waiting = f"{state.waiting:,}{'+' if state.waiting == COUNTED else ''} waiting"
    return typer.echo(f"Imports {'are paused' if state.paused_at else 'are not paused'}, {waiting}.")


class AfterDiscard(StrEnum):
    NOTHING = "nothing"
    RESTART = "restart"
    FAIL_PARENT = "fail_parent"


@app.command("dead-letters")
def dead_letters(
    requeue: Annotated[list[str] | None, typer.Option(metavar="ID|all", help="Queue these again.")] = None,
    discard: Annotated[list[str] | None, typer.Option(metavar="ID|all", help="Discard these permanently.")] = None,
    then: Annotated[
        AfterDiscard,
        typer.Option(
            help="What to do after --discard. restart: delete the results of the job and run it again; fail_parent: "
            "mark the analysis that the job belongs to as failed."
        ),
    ] = AfterDiscard.NOTHING,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List the jobs that failed for good, in all accounts. Can also queue them again or discard them permanently."""
    if requeue and discard:
        raise BadInput("--requeue and --discard cannot be combined.")
    if requeue or discard:
        return change_dead_letters(requeue or discard or [], then, again=bool(requeue), as_json=as_json)

    async def run(connection: Connection) -> Page[JobView]:
        from octavo.jobs import views

        return await views.dead_letters(connection, cursor=cursor, limit=limit)

    return print_page(act(run), as_json)


def change_dead_letters(jobs: Sequence[str], then: AfterDiscard, *, again: bool, as_json: bool) -> None:
    everything = ALL in jobs

    async def run(connection: Connection) -> int:
        from octavo.jobs.queue import requeue_dead_letters
        from octavo.ops.activity import discard

        wanted = await (all_dead_letters(connection) if everything else find_jobs(connection, jobs))
        return await (requeue_dead_letters(connection, wanted) if again else discard(connection, wanted, then.value))

    report_changed("Queued again" if again else "Discarded", act(run), as_json)


# Arguments ---------------------------------------------------------------------------------------------------------


def read_object(text: str) -> dict[str, JSON]:
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"--input is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise BadInput('--input is JSON, but not an object such as {"stages": 3}.')
    return value  # pyright: ignore[reportUnknownVariableType] - JSON keys are always strings


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid in JSON")


def check_kind(kind: str) -> None:
    from octavo.pipeline import known_kinds

    known_kinds()[kind]


def check_input(kind: str, given: dict[str, JSON]) -> None:
    from octavo.pipeline import known_kinds

    check = known_kinds()[kind].check_input
    if check:
        check(given)


# The database ------------------------------------------------------------------------------------------------------


async def sync_kinds(connection: Connection) -> None:
    """Store the known job kinds in the database.

    Workers do this when they start, but perhaps none has started yet.
    """
    from octavo.jobs import kinds
    from octavo.pipeline import known_kinds

    await kinds.sync_kinds(connection, known_kinds())


async def enqueue_all(connection: Connection, new_job: Callable[[], NewJob], count: int) -> list[EnqueuedJob]:
    import psycopg

    from octavo.jobs.queue import enqueue

    added: list[EnqueuedJob] = []
    try:
        for begin in range(0, count, BATCH):
            added += await enqueue(connection, [new_job() for _ in range(min(BATCH, count - begin))])
    except psycopg.DataError as error:
        raise BadInput(f"The database rejected the job: {error.diag.message_primary}.") from None
    return added


async def find_jobs(connection: Connection, typed: Sequence[str]) -> list[UUID]:
    """Find the jobs that the user named, by full or partial ids."""
    from octavo.jobs.views import name_jobs

    return await find_named(typed, lambda part: name_jobs(connection, part, FEW), "job", "octavo jobs ls")


async def all_dead_letters(connection: Connection) -> list[UUID]:
    from octavo.jobs.views import dead_letters

    found: list[UUID] = []
    cursor: str | None = None
    while True:
        page = await dead_letters(connection, cursor=cursor, limit=MOST_LISTED)
        found += [job.id for job in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


# Output ------------------------------------------------------------------------------------------------------------


def as_json_text(value: JobView | Page[JobView]) -> str:
    """Format a job, or a page of jobs, as the JSON that the API returns."""
    from pydantic import TypeAdapter

    from octavo.core.http import Page
    from octavo.records.jobs import JobView

    form: TypeAdapter[Any] = TypeAdapter(JobView if isinstance(value, JobView) else Page[JobView])
    return form.dump_json(value, indent=2).decode()


def report_changed(what: str, changed: int, as_json: bool) -> None:
    typer.echo(json.dumps({"changed": changed}) if as_json else f"{what}: {changed}.")


def print_page(page: Page[JobView], as_json: bool) -> None:
    if as_json:
        return typer.echo(as_json_text(page))
    if not page.items:
        return typer.echo("No jobs.")
    head = ["ID", "KIND", "STATUS", "STAGE", "PROGRESS", "ATTEMPT", "CREATED", ""]
    print_table([head, *(row_of(job) for job in page.items)])
    if page.next_cursor:
        typer.echo(f"Next page: --cursor {page.next_cursor}")
    return None


def row_of(job: JobView) -> list[str]:
    created = local_time(job.created_at)
    return [
        str(job.id),
        job.kind,
        job.status,
        stage_of(job),
        progress_of(job),
        str(job.attempt),
        created,
        line_of(job),
    ]


def print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_job(job: JobView, events: Sequence[EventView]) -> None:
    facts = {
        "Job": f"{job.id}, {job.kind}",
        "Status": job.status,
        "Reason": line_of(job),
        "Stage": stage_of(job),
        "Progress": progress_of(job),
        "Attempts": f"{job.attempt} ({job.failures} of {job.max_attempts} failures since the last finished stage)",
        "Document": str(job.document_id) if job.document_id else None,
    }
    print_table([[f"{name}:", value] for name, value in facts.items() if value])
    if job.stages:
        typer.echo("\nFinished stages")
        print_table([row_of_stage(job.kind, stage) for stage in job.stages])
    typer.echo("\nHistory")
    print_table([row_of_event(job.kind, event) for event in events])


def stage_of(job: JobView) -> str:
    """Describe the current stage of a job. If the job has ended successfully, describe its last stage."""
    from octavo.records.jobs import finished_words, stage_words

    if job.stage is None and job.status != JobStatus.PROCESSING:
        return ""
    return finished_words(job.kind, job.stage or "") if job.status == JobStatus.COMPLETE else stage_words(job)


def row_of_stage(kind: str, stage: StageView) -> list[str]:
    from octavo.records.jobs import finished_words

    seconds = (stage.finished_at - stage.started_at).total_seconds()
    return ["", finished_words(kind, stage.stage), stage.part or "", f"attempt {stage.attempt}", f"{seconds:.1f} s"]


def row_of_event(kind: str, event: EventView) -> list[str]:
    from octavo.records.jobs import finished_words

    stage = event.detail.get("stage")
    words = {"stage": finished_words(kind, stage)} if isinstance(stage, str) else {}
    values = {**event.detail, **words}.items()
    detail = (f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in values)
    return ["", local_time(event.at), event.kind, " ".join(detail)]


def line_of(job: JobView) -> str:
    """Return a short text about a job: its error, the reason why it is waiting, or the time left."""
    from octavo.jobs.views import explain_waiting

    if job.error:
        return f"{job.error.message} ({job.error.code})"
    if job.waiting_because:
        return explain_waiting(job.waiting_because.reason, job.waiting_because.facts, None)
    return f"{job.eta.low_seconds:.0f} to {job.eta.high_seconds:.0f} s left" if job.eta else ""


def progress_of(job: JobView) -> str:
    done, total = job.progress.done, job.progress.total
    return f"{done}/{total}" if total is not None else str(done or "")


# Recurring jobs -----------------------------------------------------------------------------------------------------


schedules_app = typer.Typer(help="List, run, enable and disable recurring jobs. Times are UTC.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the schedule.")]


@schedules_app.command("ls")
def list_schedules(as_json: AsJson = False) -> None:
    """List all schedules with their last and next run."""
    from octavo.jobs import kinds

    found = act(kinds.list_schedules)
    if as_json:
        return print_items(found)
    if not found:
        typer.echo("No schedules yet. The first worker creates them.")
    for one in found:
        state = f"next {one.next_run_at:%Y-%m-%d %H:%M} UTC" if one.enabled else "disabled"
        last = f"last {one.last_run_at:%Y-%m-%d %H:%M} UTC, {one.last_status}" if one.last_run_at else "never ran"
        typer.echo(f"{one.name:<20} {one.cron:<16} {state}; {last}")
    return None


@schedules_app.command("run")
def run_now(name: Name, as_json: AsJson = False) -> None:
    """Run a schedule now, without waiting for its next due time."""
    from octavo.jobs.kinds import run_now as start_now

    job = act(lambda connection: start_now(connection, name))
    typer.echo(json.dumps({"job_id": str(job)}) if as_json else f"Job {job} is queued.")


@schedules_app.command("on")
def switch_on(name: Name, as_json: AsJson = False) -> None:
    """Enable a schedule."""
    _switch(name, enabled=True, as_json=as_json)


@schedules_app.command("off")
def switch_off(name: Name, as_json: AsJson = False) -> None:
    """Disable a schedule."""
    _switch(name, enabled=False, as_json=as_json)


def _switch(name: str, *, enabled: bool, as_json: bool) -> None:
    from octavo.jobs.kinds import enable

    act(lambda connection: enable(connection, name, enabled=enabled))
    if as_json:
        return typer.echo(json.dumps({"name": name, "enabled": enabled}))
    return typer.echo(f"{name} is {'enabled' if enabled else 'disabled'}.")
