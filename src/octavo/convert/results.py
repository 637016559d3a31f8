"""Stores the results of conversions: the XML as a file, and the values as a revision in the database.

The web server imports this module, so the rules and lxml are imported only inside the functions that use them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.stored_mappings import StoredMapping
from octavo.convert.values import Conversion, conversion_to_record
from octavo.core.types import JSON
from octavo.database import Connection, load_queries
from octavo.storage import Bucket, Stored

QUERIES = load_queries("conversions")


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A conversion result whose XML file is already stored. No database row refers to the file yet."""

    stored: Stored
    record: dict[str, JSON]


class Author(NamedTuple):
    """The author of a revision: the rules, or a person. `user` is None for a person without an account."""

    made_by: str
    user: UUID | None = None
    person: str | None = None

    @property
    def name(self) -> str:
        return self.person or "A person"


ENGINE = Author("engine")


async def store_result(bucket: Bucket, folder: str, conversion: Conversion, mapping: StoredMapping) -> StoredResult:
    """Write the XML of a conversion, validate it against the mapping's schema, and store it."""
    document = await asyncio.to_thread(_validated_xml, conversion, await mapping.read_in_thread())
    return StoredResult(await bucket.put(f"{folder}/result.xml", document), conversion_to_record(conversion))


def render_xml(conversion: Conversion, mapping: Mapping, *, plain: bool = False) -> bytes:
    """Return the XML of a conversion. If `plain` is true, it does not include the positions of the values."""
    from octavo.convert.rules.result_xml import render

    return render(conversion, mapping, plain=plain)


def _validated_xml(conversion: Conversion, mapping: Mapping) -> bytes:
    from octavo.convert.rules.result_xml import validate

    document = render_xml(conversion, mapping)
    validate(document, mapping)
    return document


async def save_revision(
    connection: Connection,
    conversion: UUID,
    result: StoredResult,
    result_days: int,
    author: Author = ENGINE,
    changes: Sequence[JSON] | None = None,
) -> list[str]:
    """Save a revision in the caller's transaction. Returns the storage keys of files that are no longer used."""
    file = {"id": conversion, "kind": "result_xml"}
    old = [key for (key,) in await (await connection.execute(QUERIES.forget_file, file)).fetchall()]
    stored = {"key": result.stored.key, "bytes": result.stored.bytes, "sha256": result.stored.sha256}
    await connection.execute(QUERIES.insert_object, stored)
    await connection.execute(QUERIES.keep_file, file | {"key": result.stored.key})
    await add_revision(connection, conversion, result.record, result_days, author, changes)
    unused = await connection.execute(QUERIES.delete_unused_objects, {"keys": old})
    return [key for (key,) in await unused.fetchall()]


async def add_revision(
    connection: Connection,
    conversion: UUID,
    record: dict[str, JSON],
    result_days: int,
    author: Author = ENGINE,
    changes: Sequence[JSON] | None = None,
) -> None:
    """Add a revision that has these values but no XML file."""
    values = {
        "id": conversion,
        "record": Jsonb(record),
        "result_days": result_days,
        "made_by": author.made_by,
        "user": author.user,
        "person": author.name if author.made_by == "person" else None,
        "changes": None if changes is None else Jsonb(list(changes)),
    }
    await connection.execute(QUERIES.add_revision, values)
