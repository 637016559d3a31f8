"""Circuit breakers of model providers and of the conversion service.

Reads their state, and ends a pause early on request.
"""

from __future__ import annotations

from datetime import datetime

from octavo.ai.calls import LOCAL
from octavo.core.errors import NotFound
from octavo.core.settings import Settings
from octavo.database import Connection, fetch_rows, load_queries
from octavo.records.jobs import Circuit

QUERIES = load_queries("circuits")
CONVERSION = "conversion"
# The database function `fail_call` has the same number.
MODEL_FAILURES = 5
# The codes of the errors of a conversion service, and of models, begin with these letters.
_SERVICE_CODES, _MODEL_CODES = "GW_", "AI_"


def gate_of_service(address: str) -> str:
    """Return the database key for the circuit breaker of the conversion service at this address."""
    return f"{CONVERSION}:{address}"


async def list_circuits(connection: Connection, settings: Settings) -> list[Circuit]:
    """List the circuit breakers of the configured providers and conversion service."""
    gates = _gates(settings)
    rows = await fetch_rows(connection, QUERIES.circuits, {"gates": list(gates.values())})
    return [_as_circuit(name, row, settings) for name, row in zip(gates, rows, strict=True)]


async def try_now(connection: Connection, settings: Settings, name: str) -> None:
    """End the pause of a circuit breaker early. The next call is sent as a test, and waiting jobs are retried now."""
    gates = _gates(settings)
    if name not in gates:
        raise NotFound
    await connection.execute(QUERIES.try_now, {"gate": gates[name]})
    codes = _SERVICE_CODES if name == CONVERSION else _MODEL_CODES
    await connection.execute(QUERIES.wake_jobs, {"codes": codes})


def _gates(settings: Settings) -> dict[str, str]:
    gates = {provider: provider for provider in settings.providers if provider != LOCAL}
    if settings.conversion_gateway_url:
        gates[CONVERSION] = gate_of_service(settings.conversion_gateway_url)
    return gates


def _as_circuit(name: str, row: dict[str, object], settings: Settings) -> Circuit:
    converts = name == CONVERSION
    return Circuit(
        name=name,
        failures=int(str(row["failures"])),
        limit=settings.conversion_gateway_failures if converts else MODEL_FAILURES,
        policy=settings.conversion_gateway_policy if converts else "next model",
        open_until=row["open_until"] if isinstance(row["open_until"], datetime) else None,
        half_open=bool(row["half_open"]),
    )
