"""Stores the results of conversions and their corrections: XML in the bucket, and a revision with the values.

The web server imports this module, so the rules and lxml are imported only inside the functions that use them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.convert.conversion_json import conversion_from_json, conversion_to_record, type_of
from octavo.convert.conversions import show_conversion
from octavo.convert.errors import Outdated
from octavo.convert.mappings.field_types import FIELD_TYPES
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.stored_mappings import StoredMapping, find_mapping
from octavo.convert.values import Conversion, Status, Value
from octavo.core.errors import BadInput, NotFound
from octavo.core.ids import new_id
from octavo.core.types import JSON
from octavo.database import Connection, Database, load_queries
from octavo.storage import Bucket, Stored

QUERIES = load_queries("conversions")
FORMS = {"date": "Write 2024-08-15.", "amount": "Write 1234.50.", "number": "Write 12.5.", "currency": "Write EUR."}
_CELL = re.compile(r"(?P<table>\w+)\[(?P<row>\d{1,5})\]\.(?P<name>\w+)")
_CERTAIN = 1.0


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result whose XML is in the bucket, but which no row refers to yet."""

    stored: Stored
    record: dict[str, JSON]


class Author(NamedTuple):
    """The author of a revision. `user` is None if the correction was made with an API key."""

    made_by: str
    user: UUID | None = None


ENGINE = Author("engine")


async def store_result(bucket: Bucket, folder: str, conversion: Conversion, mapping: StoredMapping) -> StoredResult:
    """Validate the XML against the mapping's schema, then store it."""
    document = await asyncio.to_thread(_validated_xml, conversion, await mapping.read_in_thread())
    return StoredResult(await bucket.put(f"{folder}/result.xml", document), conversion_to_record(conversion))


def render_xml(conversion: Conversion, mapping: Mapping, *, plain: bool = False) -> bytes:
    """The XML of a conversion. `plain` leaves out the places of the values."""
    from octavo.convert.rules.result_xml import render

    return render(conversion, mapping, plain=plain)


def _validated_xml(conversion: Conversion, mapping: Mapping) -> bytes:
    from octavo.convert.rules.result_xml import validate

    document = render_xml(conversion, mapping)
    validate(document, mapping)
    return document


async def save_revision(
    connection: Connection, conversion: UUID, result: StoredResult, result_days: int, author: Author = ENGINE
) -> list[str]:
    """Save a revision in the caller's transaction. Returns the keys of objects that are no longer used."""
    file = {"id": conversion, "kind": "result_xml"}
    old = [key for (key,) in await (await connection.execute(QUERIES.forget_file, file)).fetchall()]
    stored = {"key": result.stored.key, "bytes": result.stored.bytes, "sha256": result.stored.sha256}
    await connection.execute(QUERIES.insert_object, stored)
    await connection.execute(QUERIES.keep_file, file | {"key": result.stored.key})
    by = {"made_by": author.made_by, "user": author.user}
    values = {"id": conversion, "record": Jsonb(result.record), "result_days": result_days} | by
    await connection.execute(QUERIES.add_revision, values)
    unused = await connection.execute(QUERIES.delete_unused_objects, {"keys": old})
    return [key for (key,) in await unused.fetchall()]


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of one value. `name` is a field, or a cell such as `lines[2].amount`.

    If `value` is None, the value is removed.
    """

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Corrections:
    """Saves corrections by people. Each becomes a revision with its author, its time and its own validated XML."""

    database: Database
    bucket: Bucket
    result_days: int

    async def correct(self, owner: UUID, conversion: UUID, user: UUID | None, corrections: list[Correction]) -> None:
        """Save all of the corrections or none.

        Raises `BadInput` for a value that does not fit the type of its field.
        """
        async with self.database.connection() as connection:
            found = await show_conversion(connection, owner, conversion)
            mapping = await find_mapping(connection, owner, found.mapping)
        read = await mapping.read_in_thread()
        corrected = correct(conversion_from_json(found.complete_record, read), read, corrections)
        folder = f"conversions/{conversion}/{new_id()}"
        result = await store_result(self.bucket, folder, corrected, mapping)
        try:
            async with self.database.transaction() as connection:
                row = await (await connection.execute(QUERIES.lock, {"owner": owner, "id": conversion})).fetchone()
                if row is None:
                    raise NotFound
                if row[0] != found.revision:
                    raise Outdated
                unused = await save_revision(connection, conversion, result, self.result_days, Author("person", user))
        except BadInput:
            await self.bucket.delete([result.stored.key])
            raise
        await self.bucket.delete(unused)


def correct(conversion: Conversion, mapping: Mapping, corrections: Sequence[Correction]) -> Conversion:
    """Apply corrections. A value that a person accepts keeps its place; another value has no place.

    Raises `BadInput`.
    """
    from octavo.convert.rules.engine import finish

    values = {one.path: one for one in conversion.values}
    for correction in corrections:
        value = _corrected_value(correction, mapping, values.get(correction.name))
        if value is None:
            values.pop(correction.name, None)
        else:
            values[correction.name] = value
    order = {field.name: index for index, field in enumerate(mapping.fields)}
    ordered = sorted(values.values(), key=lambda one: (order[one.table or one.name], one.row or 0))
    return replace(finish(mapping, ordered, source="person"), model_lookup=conversion.model_lookup)


def _corrected_value(correction: Correction, mapping: Mapping, before: Value | None) -> Value | None:
    cell = _CELL.fullmatch(correction.name)
    table, name = (cell["table"], cell["name"]) if cell else (None, correction.name)
    kind = type_of(mapping, name, table)
    if kind is None:
        raise BadInput(f"{mapping.name} has no field {correction.name[:80]!r}.")
    if correction.value is None:
        return None
    if not FIELD_TYPES[kind].accepts(correction.value):
        reason = f"{correction.name}: {correction.value[:80]!r} is not a valid {kind}."
        raise BadInput(f"{reason} {FORMS.get(kind, '')}".rstrip())
    row = max(int(cell["row"]), 1) if cell else None
    place = before.place if before and before.value == correction.value else None
    return Value(name, correction.value, _CERTAIN, place, Status.CONFIRMED, table, row)
