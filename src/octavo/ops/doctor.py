"""`octavo doctor`: looks at everything an installation stands on and says what is wrong and what to do.

Each check answers what it found in good order, or raises an error that says what is not.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import psycopg

from octavo.database import Connection, connect, read_state
from octavo.database.embedded import DataFolder
from octavo.database.migrator import refuse_unfit_server
from octavo.model.errors import NotPossibleHere, OctavoError, WrongDatabase
from octavo.model.settings import Settings
from octavo.ops.health import Check
from octavo.ops.instance import bucket_of, embedded_server, start_database, storage_place
from octavo.sandbox import Sandbox

LEAST_FREE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Patient:
    """What the checks look at; opened once for all of them."""

    settings: Settings
    connection: Connection


Examine = Callable[[Patient], Awaitable[str]]
CHECKS: dict[str, Examine] = {}


def check(name: str) -> Callable[[Examine], Examine]:
    """Register a check; two of one name would hide each other."""

    def register(examine: Examine) -> Examine:
        if name in CHECKS:
            raise ValueError(f"there is a check {name} already")
        CHECKS[name] = examine
        return examine

    return register


async def examine(settings: Settings) -> list[Check]:
    """Run every check, also after one that failed."""
    async with open_patient(settings) as patient:
        return [await _run(name, examine_one, patient) for name, examine_one in CHECKS.items()]


@asynccontextmanager
async def open_patient(settings: Settings) -> AsyncGenerator[Patient]:
    DataFolder(settings.data_dir).prepare()
    server = embedded_server(settings)
    connection_info = await start_database(settings, server)
    try:
        async with await connect(connection_info) as connection:
            yield Patient(settings, connection)
    finally:
        if server:
            server.release()


async def _run(name: str, examine_one: Examine, patient: Patient) -> Check:
    try:
        return Check(name, ok=True, detail=await examine_one(patient))
    except OctavoError as error:
        return Check(name, ok=False, detail=error.line)
    except psycopg.Error as error:
        return Check(name, ok=False, detail=str(error).strip().splitlines()[0])


@check("data folder")
async def data_folder(patient: Patient) -> str:
    folder = patient.settings.data_dir
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise NotPossibleHere(f"Only {free >> 20} MiB are free in {folder}; free some space.")
    return f"{folder}, {free >> 30} GiB free"


@check("database")
async def database(patient: Patient) -> str:
    await refuse_unfit_server(patient.connection)
    version = patient.connection.info.server_version
    return f"PostgreSQL {version // 10000}.{version % 10000}"


@check("schema")
async def schema(patient: Patient) -> str:
    state = await read_state(patient.connection)
    if state.missing:
        raise WrongDatabase(f"The schema is not up to date; `octavo migrate` adds {', '.join(state.missing)}.")
    return f"{state.applied} migrations applied, none missing"


@check("storage")
async def storage(patient: Patient) -> str:
    async with aclosing(bucket_of(patient.settings)) as bucket:
        await bucket.check()
        return f"{storage_place(patient.settings)}: written, read back and deleted"


@check("sandbox")
async def sandbox(patient: Patient) -> str:
    del patient
    async with Sandbox() as box:
        return (await box.layers()).summary
