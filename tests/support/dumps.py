"""All that an installation keeps, to be compared: whoever was refused must have changed nothing of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from octavo.storage import Bucket
from tests.support.visitors import House

TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relpersistence = 'p' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    ORDER BY c.relname
"""
# Using a key leaves this trace, whatever the key was used for.
TRACES = "last_used_at"

Dump = Mapping[str, list[str]]


async def dump(house: House) -> Dump:
    """Every row of every table but the counts of requests, and the name and size of every object."""
    tables = [row[0] for row in await house.rows(TABLES)]
    every = " UNION ALL ".join(f"SELECT '{name}', (to_jsonb(t) - '{TRACES}')::text FROM {name} t" for name in tables)
    found: dict[str, list[str]] = defaultdict(list)
    for table, row in await house.rows(every):
        found[table].append(row)
    bucket: Bucket = house.app.state.services.bucket
    found["the bucket"] = [f"{info.key} {info.bytes}" async for info in bucket.list()]
    return {name: sorted(rows) for name, rows in found.items()}
