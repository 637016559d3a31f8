"""Results of conversions: XML in the bucket, and a revision that says what is in it. Corrections make the next."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.convert.contract import Conversion
from octavo.convert.corrections import Correction, correct
from octavo.convert.mapping import Mapping
from octavo.convert.records import conversion_from_json, conversion_to_record
from octavo.convert.xml import render, validate
from octavo.core.errors import BadInput, NotFound
from octavo.core.ids import new_id
from octavo.core.json import JSON
from octavo.database import Connection, Database, load_queries
from octavo.intake.errors import Outdated
from octavo.intake.mappings import StoredMapping, find_mapping
from octavo.library.conversions import show_conversion
from octavo.storage import Bucket, Stored

QUERIES = load_queries("conversions")


@dataclass(frozen=True, slots=True)
class Made:
    """A result that is in the bucket and that no row knows yet."""

    stored: Stored
    record: dict[str, JSON]


class Author(NamedTuple):
    """Who made a revision; `user` is None for a person who came with a key."""

    made_by: str
    user: UUID | None = None


ENGINE = Author("engine")


async def store_result(bucket: Bucket, folder: str, conversion: Conversion, mapping: StoredMapping) -> Made:
    """The XML, which is valid, or nothing."""
    document = await asyncio.to_thread(_rendered, conversion, mapping.read())
    return Made(await bucket.put(f"{folder}/result.xml", document), conversion_to_record(conversion))


def _rendered(conversion: Conversion, mapping: Mapping) -> bytes:
    document = render(conversion, mapping)
    validate(document, mapping)
    return document


async def save_revision(
    connection: Connection, conversion: UUID, made: Made, result_days: int, author: Author = ENGINE
) -> list[str]:
    """In the caller's transaction; answers the keys of objects that nobody needs any more."""
    file = {"id": conversion, "kind": "result_xml"}
    old = [key for (key,) in await (await connection.execute(QUERIES.forget_file, file)).fetchall()]
    stored = {"key": made.stored.key, "bytes": made.stored.bytes, "sha256": made.stored.sha256}
    await connection.execute(QUERIES.insert_object, stored)
    await connection.execute(QUERIES.keep_file, file | {"key": made.stored.key})
    by = {"made_by": author.made_by, "user": author.user}
    values = {"id": conversion, "record": Jsonb(made.record), "result_days": result_days} | by
    await connection.execute(QUERIES.add_revision, values)
    unused = await connection.execute(QUERIES.delete_unused_objects, {"keys": old})
    return [key for (key,) in await unused.fetchall()]


@dataclass(frozen=True, slots=True)
class Corrections:
    """What people put right. Each correction is a revision with who and when; the XML is rendered and checked anew."""

    database: Database
    bucket: Bucket
    result_days: int

    async def correct(self, owner: UUID, conversion: UUID, user: UUID | None, corrections: list[Correction]) -> None:
        """All of them or none. Raises `BadInput` for a value that is none of its field's type."""
        async with self.database.connection() as connection:
            found = await show_conversion(connection, owner, conversion)
            mapping = await find_mapping(connection, owner, found.mapping)
        current = conversion_from_json(found.complete_record, mapping.read())
        corrected = correct(current, mapping.read(), corrections)
        folder = f"conversions/{conversion}/{new_id()}"
        made = await store_result(self.bucket, folder, corrected, mapping)
        try:
            async with self.database.transaction() as connection:
                row = await (await connection.execute(QUERIES.lock, {"owner": owner, "id": conversion})).fetchone()
                if row is None:
                    raise NotFound
                if row[0] != found.revision:
                    raise Outdated
                unused = await save_revision(connection, conversion, made, self.result_days, Author("person", user))
        except BadInput:
            await self.bucket.delete([made.stored.key])
            raise
        await self.bucket.delete(unused)
