"""`octavo top`: the queue, the workers, the durations of stages and the costs, updated live."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import make_table, open_console, print_json
from octavo.cli.remote import Target, call
from octavo.core.formatting import count_of, format_ago, format_dollars, format_span

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from octavo.client import Client
    from octavo.records.jobs import Activity, KindActivity, Spending

app = typer.Typer()
# A stage is listed if its jobs took at least this long. Others are too short to matter.
LEAST_SECONDS = 0.001


@app.command()
def top(
    every: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds between updates.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print the current state once, and exit.")] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the queue, the workers, the durations of stages and the costs, updated live. Press Ctrl-C to stop.

    Only for administrators. If the output is not a terminal, the current state is printed once.
    """
    console = open_console()

    async def run(client: Client) -> None:
        if as_json:
            print_json(await client.read_activity())
        elif once or not console.is_terminal:
            console.print(draw(console, await client.read_activity()))
        else:
            await follow(client, console, every)

    with contextlib.suppress(KeyboardInterrupt):
        call(Target(server, key), run)


async def follow(client: Client, console: Console, every: float) -> None:
    from rich.live import Live

    with Live("Loading…", console=console, auto_refresh=False, screen=True) as live:
        while True:
            live.update(draw(console, await client.read_activity()), refresh=True)
            await asyncio.sleep(every)


def draw(console: Console, activity: Activity) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(line, style="bold") for line in summarise(activity)]
    for title, head, rows in (
        ("No unfinished or recent jobs.", KINDS_HEAD, [kind_row(one) for one in activity.kinds]),
        ("No worker is running. Start one with `octavo worker`.", WORKERS_HEAD, worker_rows(activity)),
        ("", STAGES_HEAD, stage_rows(activity)),
        ("", SOURCES_HEAD, source_rows(activity.spending)),
    ):
        if rows:
            parts += [Text(), make_table(console, head, rows, flexible=(0,))]
        elif title:
            parts += [Text(), Text(title)]
    return Group(*parts)


def summarise(activity: Activity) -> list[str]:
    alive = [one for one in activity.workers if one.alive]
    # Workers report their numbers of jobs only with their heartbeats, so the jobs are counted.
    running = sum(one.running for one in activity.kinds)
    slots = f"{running:,} of {count_of(sum(one.slots for one in alive), 'slot')} in use"
    rate = (
        f"{activity.finished_last_minute:,} jobs in the last minute, {activity.finished_last_hour:,} in the last hour"
    )
    spending = activity.spending
    month = f"models: {format_dollars(spending.month_usd)} of {format_dollars(spending.budget_usd)} this month"
    answers = f"{spending.new_answers:,} new and {spending.reused_answers:,} reused answers in the last hour"
    return [
        f"{activity.at.astimezone():%H:%M:%S}  {count_of(len(alive), 'worker')}, {slots}  ·  {rate}",
        f"{month}, {answers}",
    ]


KINDS_HEAD = ("KIND", "QUEUED", "DELAYED", "RUNNING", "PAUSED", "FAILED", "OLDEST", "LAST MIN", "LAST HOUR")
WORKERS_HEAD = ("WORKER", "PID", "JOBS", "HEARTBEAT", "STATE")
STAGES_HEAD = ("STAGE, LAST HOUR", "JOBS", "MEAN", "95 %")
SOURCES_HEAD = ("COST, LAST HOUR", "ANSWERS", "COST")


def kind_row(one: KindActivity) -> list[str]:
    oldest = "" if one.oldest_wait_seconds is None else format_span(timedelta(seconds=one.oldest_wait_seconds))
    numbers = (one.queued, one.delayed, one.running, one.paused, one.failed)
    done = (one.finished_last_minute, one.finished_last_hour)
    return [one.kind, *(shown(number) for number in numbers), oldest, *(shown(number) for number in done)]


def shown(number: int) -> str:
    return f"{number:,}" if number else "·"


def worker_rows(activity: Activity) -> list[list[str]]:
    return [
        [
            one.host,
            str(one.pid),
            f"{one.running} of {one.slots}",
            format_ago(one.heartbeat_at, activity.at),
            "alive" if one.alive else "lost",
        ]
        for one in activity.workers
    ]


def stage_rows(activity: Activity) -> list[list[str]]:
    return [
        [f"{one.kind}: {one.stage}", f"{one.jobs:,}", f"{one.mean_seconds:.3f} s", f"{one.p95_seconds:.3f} s"]
        for one in activity.stages
        if one.p95_seconds >= LEAST_SECONDS
    ]


def source_rows(spending: Spending) -> list[list[str]]:
    return [[one.source_type, f"{one.answers:,}", format_dollars(one.cost_usd)] for one in spending.sources]
