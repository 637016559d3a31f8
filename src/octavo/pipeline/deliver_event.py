"""Job kind that sends one event to one recipient.

If a worker dies after sending the event but before recording the delivery, the event is sent again with the same id.
"""

from __future__ import annotations

from octavo.core.types import JSON
from octavo.database import Connection
from octavo.deliver.deliveries import Sender, known_channels, read_input, record_success
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
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
        await record_success(connection, delivery, run.job, made)

    return await run.stage("sent", send, save=save)


KIND = JobKind("deliver", deliver_event, time_limit_seconds=60, max_attempts=12, check_input=read_input)
