"""The schema of a migrated database as text that does not change from run to run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from octavo.database.embedded.binaries import NEWEST, find_binaries
from tests.support.postgres import run_server

HEAD = "-- The sum of all migrations, written by `make docs`; a test compares it with a migrated database.\n\n"
# Settings of the dump itself, its own version, and random marks that differ between runs.
NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*|\s*)$")
# PostgreSQL 18 gives these names, 16 does not.
NAMED_NOT_NULL = re.compile(r" CONSTRAINT \w+_not_null NOT NULL")


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
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    with run_server(NEWEST) as server:
        Path(sys.argv[1]).write_text(dump_schema(server.template))
