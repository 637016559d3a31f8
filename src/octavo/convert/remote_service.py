"""Calls a remote conversion service, which replaces Octavo's own rules. Only the operator can set its address.

The service receives the PDF as the body of a POST request, with the mapping's name in the `X-Mapping` header. It
returns XML that matches the mapping's schema.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from octavo.ai.circuits import gate_of_service
from octavo.convert.errors import GatewayPaused, GatewayStopped
from octavo.convert.mappings.stored_mappings import StoredMapping
from octavo.convert.rules.result_xml import SchemaMismatch, read_xml
from octavo.convert.values import Conversion
from octavo.core.errors import (
    GatewayFailed,
    GatewayRefused,
    GatewayTimedOut,
    NetworkFailed,
    OctavoError,
    RateLimited,
    TimedOut,
    TooLarge,
)
from octavo.core.http import requested_wait
from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.database import Connection, load_queries
from octavo.fetch import FetchLimits, FetchResponse, GuardedClient
from octavo.fetch.urls import parse_url
from octavo.jobs.job_run import LeaseLost, Run
from octavo.storage import Bucket

QUERIES = load_queries("conversions")
JOBS = load_queries("jobs")
RESULT_BYTES = 16 << 20
_PROBE_EXTRA_SECONDS = 10
_OK, _REDIRECT, _TOO_MANY, _FAILURE = 200, 300, 429, 500
_MOST_DETAIL = 200


@dataclass(frozen=True, slots=True)
class RemoteService:
    run: Run[Any]
    settings: Settings
    bucket: Bucket

    async def convert(self, key: str, mapping: StoredMapping) -> Conversion:
        """Convert one file. Raises errors with the codes GW_4XX, GW_5XX and GW_TIMEOUT."""
        await self._wait_for_circuit()
        limit = self.settings.conversion_gateway_bytes
        try:
            body = await self.bucket.read(key, limit=limit)
        except TooLarge:
            raise TooLarge(f"The conversion service accepts at most {limit:,} bytes.") from None
        response = await self._post(body, mapping.name)
        try:
            return read_xml(response.body, await mapping.read_in_thread(), "gateway")
        except SchemaMismatch as error:
            raise GatewayFailed(
                f"The response is not valid XML for the mapping {mapping.name}: {error}"[:_MOST_DETAIL]
            ) from None

    @property
    def _address(self) -> str:
        return self.settings.conversion_gateway_url or ""

    async def _wait_for_circuit(self) -> None:
        seconds = self.settings.conversion_gateway_seconds + _PROBE_EXTRA_SECONDS
        values = {"gate": gate_of_service(self._address), "seconds": seconds}
        async with self.run.database.transaction() as connection:
            row = await (await connection.execute(QUERIES.gateway_pause, values)).fetchone()
        if row and row[0] and self.settings.conversion_gateway_policy == "fail":
            raise GatewayStopped
        if row and row[0]:
            error = GatewayPaused()
            error.retry_after_seconds = row[0]
            raise error

    async def _post(self, body: bytes, mapping: str) -> FetchResponse:
        """Send one request. It is recorded as an event with the address, the status and the duration."""
        target = parse_url(self._address)
        allow = frozenset({f"{target.host}:{target.port}"})
        headers = {"Content-Type": "application/pdf", "Accept": "application/xml", "X-Mapping": mapping}
        limits = FetchLimits(RESULT_BYTES, self.settings.conversion_gateway_seconds)
        started = time.monotonic()
        try:
            async with aclosing(GuardedClient(allow)) as client:
                response = await client.post(self._address, body, headers, limits)
        except (NetworkFailed, TimedOut, TooLarge) as error:
            await self._report(None, started, well=False)
            raise _as_gateway(error) from None
        await self._report(response.status, started, well=response.status < _FAILURE)
        if problem := _problem(response):
            raise problem
        return response

    async def _report(self, status: int | None, started: float, *, well: bool) -> None:
        """Record the result of a request, but only if this worker still holds the lease of the job.

        A worker that has lost its lease must not write.
        """
        duration = round((time.monotonic() - started) * 1000)
        detail: JSON = {"address": self._address, "status": status, "duration_ms": duration}
        async with self.run.database.transaction() as connection:
            await self._hold_lease(connection)
            await connection.execute(QUERIES.report_gateway_call, {"job": self.run.job.id, "detail": Jsonb(detail)})
            most = self.settings.conversion_gateway_failures
            counted = {"gate": gate_of_service(self._address), "well": well, "most": most}
            await connection.execute(QUERIES.gateway_answered, counted)

    async def _hold_lease(self, connection: Connection) -> None:
        lease = {"job": self.run.job.id, "token": self.run.job.lease_token}
        row = await (await connection.execute(JOBS.hold_lease, lease)).fetchone()
        if row is None or not row[0]:
            raise LeaseLost


def _as_gateway(error: OctavoError) -> OctavoError:
    return GatewayTimedOut() if isinstance(error, TimedOut) else GatewayFailed(error.line)


def _problem(response: FetchResponse) -> OctavoError | None:
    if _OK <= response.status < _REDIRECT:
        return None
    if response.status >= _FAILURE:
        return GatewayFailed(f"It returned {response.status}.")
    if response.status == _TOO_MANY:
        error = RateLimited("The conversion service is busy.")
        error.retry_after_seconds = requested_wait(response.headers)
        return error
    return GatewayRefused(f"It returned {response.status}.")
