"""A conversion service elsewhere instead of our own rules. Its address is the operator's, and nobody else's to choose.

It gets the PDF as the body of a POST, with the name of the mapping as `X-Mapping`, and answers the mapping's XML.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass

from psycopg.types.json import Jsonb

from octavo.convert.contract import Conversion
from octavo.convert.xml_reading import NotOfMapping, read_xml
from octavo.core.errors import (
    ErrorClass,
    GatewayFailed,
    GatewayRefused,
    GatewayTimedOut,
    NetworkFailed,
    OctavoError,
    RateLimited,
    TimedOut,
    TooLarge,
)
from octavo.core.json import JSON
from octavo.database import Connection, load_queries
from octavo.fetch import Fetched, FetchLimits, GuardedClient
from octavo.fetch.urls import parse_url
from octavo.intake.mappings import StoredMapping
from octavo.jobs.run import LeaseLost, Run
from octavo.pipeline.tools import Tools

QUERIES = load_queries("conversions")
JOBS = load_queries("jobs")
RESULT_BYTES = 16 << 20
_PROBE_MORE_SECONDS = 10
_OK, _REDIRECT, _TOO_MANY, _FAILURE = 200, 300, 429, 500
_MOST_DETAIL = 200


class GatewayAway(GatewayFailed):
    """The conversion service fails again and again, so it is left alone for a while. It goes on by itself."""

    error_class = ErrorClass.NETWORK
    status = 503


async def convert_elsewhere(run: Run[Tools], key: str, mapping: StoredMapping) -> Conversion:
    """Raises errors with the codes GW_4XX, GW_5XX and GW_TIMEOUT."""
    settings = run.tools.settings
    call = _Call(run, settings.conversion_gateway_url or "", settings.conversion_gateway_seconds)
    await call.wait_for_circuit()
    try:
        body = await run.tools.bucket.read(key, limit=settings.conversion_gateway_bytes)
    except TooLarge:
        raise TooLarge(f"The conversion service takes {settings.conversion_gateway_bytes:,} bytes.") from None
    answer = await call.post(body, mapping.name)
    try:
        return read_xml(answer.body, mapping.read(), "gateway")
    except NotOfMapping as error:
        raise GatewayFailed(f"Its answer is not the XML of {mapping.name}: {error}"[:_MOST_DETAIL]) from None


@dataclass(frozen=True, slots=True)
class _Call:
    run: Run[Tools]
    address: str
    seconds: float

    async def wait_for_circuit(self) -> None:
        values = {"address": self.address, "seconds": self.seconds + _PROBE_MORE_SECONDS}
        async with self.run.database.transaction() as connection:
            row = await (await connection.execute(QUERIES.gateway_pause, values)).fetchone()
        if row and row[0]:
            error = GatewayAway()
            error.retry_after_seconds = row[0]
            raise error

    async def post(self, body: bytes, mapping: str) -> Fetched:
        """One try; told as an event with the address, the status and how long it took, whatever it was."""
        target = parse_url(self.address)
        allow = frozenset({f"{target.host}:{target.port}"})
        headers = {"Content-Type": "application/pdf", "Accept": "application/xml", "X-Mapping": mapping}
        started = time.monotonic()
        try:
            async with aclosing(GuardedClient(allow)) as client:
                answer = await client.post(self.address, body, headers, FetchLimits(RESULT_BYTES, self.seconds))
        except (NetworkFailed, TimedOut, TooLarge) as error:
            await self._tell(None, started, well=False)
            raise _as_gateway(error) from None
        await self._tell(answer.status, started, well=answer.status < _FAILURE)
        if problem := _problem(answer):
            raise problem
        return answer

    async def _tell(self, status: int | None, started: float, *, well: bool) -> None:
        """Under the lease: a worker that lost its job says nothing more about it."""
        duration = round((time.monotonic() - started) * 1000)
        detail: JSON = {"address": self.address, "status": status, "duration_ms": duration}
        async with self.run.database.transaction() as connection:
            await self._hold(connection)
            await connection.execute(QUERIES.tell_of_gateway, {"job": self.run.job.id, "detail": Jsonb(detail)})
            await connection.execute(QUERIES.gateway_answered, {"address": self.address, "well": well})

    async def _hold(self, connection: Connection) -> None:
        lease = {"job": self.run.job.id, "token": self.run.job.lease_token}
        row = await (await connection.execute(JOBS.hold_lease, lease)).fetchone()
        if row is None or not row[0]:
            raise LeaseLost


def _as_gateway(error: OctavoError) -> OctavoError:
    return GatewayTimedOut() if isinstance(error, TimedOut) else GatewayFailed(error.line)


def _problem(answer: Fetched) -> OctavoError | None:
    if _OK <= answer.status < _REDIRECT:
        return None
    if answer.status >= _FAILURE:
        return GatewayFailed(f"It answered {answer.status}.")
    if answer.status == _TOO_MANY:
        error = RateLimited("The conversion service is busy.")
        after = answer.headers.get("retry-after", "")
        error.retry_after_seconds = float(after) if after.isdecimal() else None
        return error
    return GatewayRefused(f"It answered {answer.status}.")
