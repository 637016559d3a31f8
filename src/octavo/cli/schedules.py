"""`octavo schedules`: lists, runs, enables and disables recurring jobs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from octavo.cli.local import act
from octavo.cli.options import AsJson
from octavo.cli.output import print_items

app = typer.Typer(help="List, run, enable and disable recurring jobs. Times are UTC.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of the schedule.")]


@app.command("ls")
def list_all(as_json: AsJson = False) -> None:
    """List all schedules with their last and next run."""
    from octavo.jobs.schedules import list_schedules

    found = act(list_schedules)
    if as_json:
        return print_items(found)
    if not found:
        typer.echo("No schedules yet. The first worker creates them.")
    for one in found:
        state = f"next {one.next_run_at:%Y-%m-%d %H:%M} UTC" if one.enabled else "disabled"
        last = f"last {one.last_run_at:%Y-%m-%d %H:%M} UTC, {one.last_status}" if one.last_run_at else "never ran"
        typer.echo(f"{one.name:<20} {one.cron:<16} {state}; {last}")
    return None


@app.command("run")
def run_now(name: Name, as_json: AsJson = False) -> None:
    """Run a schedule now, regardless of its next due time."""
    from octavo.jobs.schedules import run_now as start_now

    job = act(lambda connection: start_now(connection, name))
    typer.echo(json.dumps({"job_id": str(job)}) if as_json else f"Job {job} is queued.")


@app.command("on")
def switch_on(name: Name, as_json: AsJson = False) -> None:
    """Enable a schedule."""
    _switch(name, enabled=True, as_json=as_json)


@app.command("off")
def switch_off(name: Name, as_json: AsJson = False) -> None:
    """Disable a schedule."""
    _switch(name, enabled=False, as_json=as_json)


def _switch(name: str, *, enabled: bool, as_json: bool) -> None:
    from octavo.jobs.schedules import enable

    act(lambda connection: enable(connection, name, enabled=enabled))
    if as_json:
        return typer.echo(json.dumps({"name": name, "enabled": enabled}))
    return typer.echo(f"{name} is {'enabled' if enabled else 'disabled'}.")
