"""API calls for jobs, imports and events. Administrators can also see the state of the installation.

If the connection breaks, the stream of events is resumed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote
from uuid import UUID

from octavo.client.calls import MOST_LISTED, Call, Calls, Stream, given
from octavo.client.transport import (
    NotOctavo,
    Repeat,
    Request,
    RetryPolicy,
    Transport,
    Unreachable,
    may_retry,
    read_page,
    read_problem,
    read_record,
)
from octavo.core.http import EVENT_STREAM, Page, ServerSentEvent, read_events
from octavo.records.jobs import (
    Activity,
    ChangeCount,
    Circuit,
    ImportState,
    JobView,
    LiveEvent,
    OperationsHealth,
    WorkerView,
)

# The server sends a heartbeat every 15 seconds.
SILENCE_SECONDS = 45.0
# A stream that lasted this long counts as a success, so the retries start again.
LASTED_SECONDS = 5.0

AfterDiscard = Literal["nothing", "restart", "fail_parent"]


@dataclass(frozen=True, slots=True)
class Event(LiveEvent):
    """One server-sent event. To get the events that follow it, pass its `cursor`."""

    cursor: str


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in order. `cursor` is the position after the last one."""

    items: list[LiveEvent]
    cursor: str


class JobCalls(Calls):
    """API calls for jobs, imports and events."""

    @Call
    async def list_jobs(
        self,
        *,
        status: str | None = None,
        kind: str | None = None,
        document: UUID | None = None,
        cursor: str | None = None,
        limit: int = MOST_LISTED,
    ) -> Page[JobView]:
        """List jobs, newest first."""
        return await self._list(
            JobView, "/jobs", status=status, kind=kind, document_id=document, cursor=cursor, limit=limit
        )

    @Call
    async def show_job(self, job: UUID) -> JobView:
        return await self._get(JobView, f"/jobs/{job}")

    @Call
    async def cancel_job(self, job: UUID) -> JobView:
        return await self._post(JobView, f"/jobs/{job}/cancel", repeat=Repeat.NEVER)

    @Call
    async def retry_job(self, job: UUID, from_stage: str | None = None) -> JobView:
        """Retry a failed or cancelled job. It continues where it stopped, unless `from_stage` is another stage."""
        return await self._post(JobView, f"/jobs/{job}/retry", given(from_stage=from_stage))

    @Call
    async def prioritise_job(self, job: UUID) -> JobView:
        """Move an unfinished job into the interactive lane, so that it runs before imports."""
        return await self._post(JobView, f"/jobs/{job}/prioritise", repeat=Repeat.SAFE)

    @Call
    async def import_state(self) -> ImportState:
        """Return whether imports are paused, and how many of their jobs are waiting."""
        return await self._get(ImportState, "/imports")

    @Call
    async def pause_imports(self) -> ImportState:
        """Pause imports. Running jobs continue."""
        return await self._post(ImportState, "/imports/pause", repeat=Repeat.SAFE)

    @Call
    async def resume_imports(self) -> ImportState:
        return await self._post(ImportState, "/imports/resume", repeat=Repeat.SAFE)

    # Events --------------------------------------------------------------------------------------------------------

    @Call
    async def list_events(self, *, after: str | None = None, limit: int | None = None) -> EventPage:
        """List the events after a cursor. Without a cursor, return only the cursor of the latest event."""
        return await self._get(EventPage, "/events", format="json", after=after, limit=limit)

    @Call
    async def latest_event(self) -> str:
        """Return the cursor of the latest event. Pass it to `events` to get only later events."""
        return (await self.list_events()).cursor

    @Stream
    async def events(self, *, after: str | None = None) -> AsyncGenerator[Event]:
        """Yield all new events, or all events after a cursor, until the generator is closed.

        Each event is yielded once, in order. If the connection breaks, the stream resumes after the last event. Raises
        `RemoteProblem` with the code TOO_FAR_BEHIND if too many events were missed.
        """
        async with aclosing(follow(self._transport, self._transport.retry_policy, after)) as events:
            async for event in events:
                if event.name == "message":
                    yield read_record(Event, {**read_data(event), "cursor": event.id})

    # Administration ------------------------------------------------------------------------------------------------

    @Call
    async def list_dead_letters(self, *, cursor: str | None = None, limit: int = MOST_LISTED) -> Page[JobView]:
        """List the jobs that failed for good, newest first (administrators only)."""
        return await self._list(JobView, "/admin/dead-letters", cursor=cursor, limit=limit)

    @Call
    async def requeue_dead_letter(self, job: UUID, from_stage: str | None = None) -> JobView:
        """Requeue a job that failed for good. It continues where it stopped, unless `from_stage` is another stage."""
        return await self._post(JobView, f"/admin/dead-letters/{job}/requeue", given(from_stage=from_stage))

    @Call
    async def requeue_dead_letters(self, jobs: Sequence[UUID]) -> int:
        """Requeue jobs that failed for good. If one cannot be requeued, none are. Returns the number of jobs."""
        body = {"ids": [str(one) for one in jobs]}
        return (await self._post(ChangeCount, "/admin/dead-letters/requeue", body)).changed

    @Call
    async def discard_dead_letter(self, job: UUID, then: AfterDiscard = "nothing") -> JobView:
        """Discard a job that failed for good.

        `then` says what happens next: `nothing`, `restart` (run the job again from the beginning), or `fail_parent`
        (mark the analysis that the job belongs to as failed).
        """
        path = f"/admin/dead-letters/{job}/discard"
        return await self._post(JobView, path, {"then": then}, repeat=Repeat.NEVER)

    @Call
    async def discard_dead_letters(self, jobs: Sequence[UUID], then: AfterDiscard = "nothing") -> int:
        """Discard jobs that failed for good. If one cannot be discarded, none are. Returns the number of jobs."""
        body = {"ids": [str(one) for one in jobs], "then": then}
        found = await self._post(ChangeCount, "/admin/dead-letters/discard", body, repeat=Repeat.NEVER)
        return found.changed

    @Call
    async def list_workers(self) -> list[WorkerView]:
        return (await self._list(WorkerView, "/admin/workers")).items

    @Call
    async def read_health(self) -> OperationsHealth:
        """Return the checks of the installation, and the number of workers and jobs (administrators only)."""
        return await self._get(OperationsHealth, "/admin/health")

    @Call
    async def read_activity(self) -> Activity:
        """Return the queue by job kind, the workers, the durations of stages, and the costs (administrators only)."""
        return await self._get(Activity, "/admin/activity")

    @Call
    async def list_circuits(self) -> list[Circuit]:
        """List the circuit breakers of model providers and of the conversion service."""
        return (await self._list(Circuit, "/admin/circuits")).items

    @Call
    async def try_circuit(self, name: str) -> list[Circuit]:
        """Let the next call through as a test, although this circuit breaker is open."""
        request = Request("POST", f"/admin/circuits/{quote(name, safe='')}/try", Repeat.SAFE)
        return read_page(Circuit, await self._transport.call(request)).items

    @Call
    async def is_alive(self) -> bool:
        """Whether the web server responds."""
        return bool(await self._get(dict[str, str], "/healthz"))

    @Call
    async def readiness(self) -> dict[str, Any]:
        """Return the server's readiness checks. Raises an error if the server is not ready."""
        return await self._get(dict[str, Any], "/readyz")

    @Call
    async def read_metrics(self) -> str:
        """Return the metrics for Prometheus."""
        return (await self._read("/metrics")).decode()


def read_data(event: ServerSentEvent) -> Any:  # noqa: ANN401 - any JSON
    try:
        return event.json()
    except ValueError:
        raise NotOctavo(f"The event {event.id} is not JSON.") from None


async def follow(transport: Transport, retry_policy: RetryPolicy, after: str | None) -> AsyncGenerator[ServerSentEvent]:
    """Yield every event after a cursor exactly once. A stream that ends is reopened after the last received event."""
    cursor, retries = after, retry_policy.begin()
    while True:
        headers = {"accept": EVENT_STREAM} | ({"last-event-id": cursor} if cursor else {})
        request = Request("GET", "/events", headers=headers)
        began = time.monotonic()
        try:
            async with transport.open(request, silence_seconds=SILENCE_SECONDS) as response:
                if not response.is_success:
                    await response.aread()
                    if not await may_retry(request, response, retries):
                        raise read_problem(response)
                    continue
                async with aclosing(read_events(response.aiter_bytes())) as events:
                    async for event in events:
                        cursor = event.id or cursor
                        yield event
            broken = Unreachable(f"{transport.address} closes every event stream.")
        except Unreachable as error:
            broken = error
        if time.monotonic() - began > LASTED_SECONDS:
            retries = retry_policy.begin()
        if not await retries.pause():
            raise broken
