"""Sends one event to one subscriber.

Done once it is written down that it was sent: a worker that dies between the two sends it again, with the same id.
"""

from __future__ import annotations

from octavo.core.types import JSON
from octavo.database import Connection
from octavo.deliver.channels import known_channels
from octavo.deliver.steps import Sender, note_success, read_input
from octavo.deliver.subscribers import KIND as NAME
from octavo.jobs.kinds import JobKind
from octavo.jobs.run import Run
from octavo.pipeline.tools import Tools


async def deliver_event(run: Run[Tools]) -> JSON:
    tools = run.tools
    sender = Sender(tools.database, known_channels(tools.settings, tools.fetch), tools.settings.public_url)
    prepared = await sender.prepare(run.job, read_input(run.input))
    if prepared is None:
        return {"skipped": True}
    channel, delivery = prepared

    async def send() -> JSON:
        return await sender.send(channel, delivery, run.job)

    async def save(connection: Connection, made: JSON) -> None:
        await note_success(connection, delivery, run.job, made)

    return await run.stage("sent", send, save=save)


KIND = JobKind(NAME, deliver_event, time_limit_seconds=60, max_attempts=12, check_input=read_input)
