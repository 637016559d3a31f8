"""The schema from `database/schema/`, and the schema of a database as text that does not change from run to run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from octavo.database import connect
from octavo.database.embedded.cluster import NEWEST, find_binaries
from octavo.database.migrator import Migration, known_migrations
from tests.support.tree import SOURCE

SCHEMA = SOURCE / "octavo/database/schema"
FUNCTION = re.compile(r"^CREATE (?:OR REPLACE )?FUNCTION (\w+)", re.MULTILINE)
INCLUDED = re.compile(r"^\\ir (\S+)$", re.MULTILINE)
# Settings of the dump itself, its own version, and random marks that differ between runs.
NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*|\s*)$")
# PostgreSQL 18 gives these names, 16 does not.
NAMED_NOT_NULL = re.compile(r" CONSTRAINT \w+_not_null NOT NULL")
# Rows that come with the schema, without the times of their making.
FIXED = (
    b"SELECT * FROM job_kinds ORDER BY name",
    b"SELECT * FROM job_transitions ORDER BY before, after",
    b"SELECT * FROM analysis_transitions ORDER BY before, after",
    b"SELECT id, title, content, system, execution_order, version FROM prompts ORDER BY id",
    b"SELECT shift FROM engine_clock",
    b"SELECT id FROM relay",
)


def schema_files() -> list[Path]:
    """In the order in which `all.sql` includes them."""
    return [SCHEMA / name for name in INCLUDED.findall((SCHEMA / "all.sql").read_text())]


def migrations_before(name: str) -> tuple[Migration, ...]:
    """Those of the version before a migration."""
    known = known_migrations()
    return known[: [one.name for one in known].index(name)]


def read_schema() -> str:
    return "\n".join(file.read_text() for file in schema_files())


def dump_schema(connection_info: str, major: int = NEWEST) -> str:
    program = find_binaries(major).program("pg_dump")
    options = [
        "--schema-only",
        "--exclude-table=events_2*",
        "--no-owner",
        "--no-privileges",
        "--dbname",
        connection_info,
    ]
    dump = subprocess.run([program, *options], capture_output=True, text=True, check=True).stdout
    lines = [NAMED_NOT_NULL.sub(" NOT NULL", line) for line in dump.splitlines() if not NOISE.match(line)]
    return "\n".join(lines) + "\n"


async def fixed_rows(connection_info: str) -> list[list[tuple[object, ...]]]:
    async with await connect(connection_info) as connection:
        return [await (await connection.execute(query)).fetchall() for query in FIXED]
