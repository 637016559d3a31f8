"""Finds mappings by name: the mappings that an account added, and those that ship with Octavo."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import PurePath
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.convert.errors import BadMapping, MappingTaken, ShippedMapping, TooManyMappings, UnknownMapping
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.shipped_mappings import (
    load_shipped,
    parse_mapping,
    shipped_names,
    shipped_text,
    summarise,
)
from octavo.core.errors import NotFound
from octavo.core.types import new_id
from octavo.database import Connection, load_queries
from octavo.records.conversions import MappingSummary

QUERIES = load_queries("conversions")
MOST_MAPPINGS = 500
DEFAULT_MAPPING = "pt_simon_invoice_v1"


@dataclass(frozen=True, slots=True)
class StoredMapping:
    """A mapping file, which contains rules for converting a type of document.

    `created_at` is None for a mapping that ships with Octavo.
    """

    name: str
    file: str
    text: str
    created_at: datetime | None = None

    @property
    def sha256(self) -> str:
        """The checksum of the mapping's exact text."""
        return sha256(self.text.encode()).hexdigest()

    def read(self) -> Mapping:
        """Parse the mapping, without compiling its patterns.

        Raises `BadMapping` if the mapping was accepted by an older version of Octavo but is no longer valid. The result
        has the stored name. It differs from the name in the text if the mapping was renamed when two accounts were
        merged.
        """
        return replace(parse_mapping(self.text, self.file), name=self.name)

    async def read_in_thread(self) -> Mapping:
        return await asyncio.to_thread(self.read)

    def xml_schema(self) -> bytes:
        """Return the XML Schema for the output of conversions with this mapping."""
        from octavo.convert.rules.result_xml import (
            schema_of,  # imported here, so that the web server starts without lxml
        )

        return schema_of(self.read())


async def list_mappings(connection: Connection, owner: UUID) -> list[MappingSummary]:
    """List the shipped mappings, then the account's own mappings."""
    own = await (await connection.execute(QUERIES.own_mappings, {"owner": owner})).fetchall()
    shipped = [summarise(load_shipped(name)) for name in shipped_names()]
    return await asyncio.to_thread(lambda: [*shipped, *(_summary(*row) for row in own)])


def _summary(
    name: str, file: str, text: str | None, created_at: datetime, summary: dict[str, Any] | None
) -> MappingSummary:
    """Return the summary that was stored with the mapping.

    Older versions of Octavo stored no summary. In that case, the mapping is parsed. If it is invalid, the summary
    contains the error.
    """
    if summary is not None:
        return MappingSummary.model_validate(summary | {"created_at": created_at})
    try:
        found = summarise(parse_mapping(text or "", file))
    except BadMapping as error:
        return MappingSummary(name=name, title=name, fields=[], required=[], created_at=created_at, error=error.line)
    return found.model_copy(update={"created_at": created_at})


async def find_mapping(connection: Connection, owner: UUID, name: str) -> StoredMapping:
    """Find a mapping by name. Raises `UnknownMapping` with a list of the shipped mappings."""
    if name in shipped_names():
        return _shipped(name)
    async with connection.cursor(row_factory=class_row(StoredMapping)) as cursor:
        await cursor.execute(QUERIES.own_mapping, {"owner": owner, "name": name})
        found = await cursor.fetchone()
    if found is None:
        raise UnknownMapping(f"{name[:80]!r} is not one of your mappings or of {', '.join(shipped_names())}.")
    return found


async def mapping_of_conversion(connection: Connection, owner: UUID, conversion: UUID, name: str) -> StoredMapping:
    """Return the mapping that a conversion was made with, from the text stored with the conversion.

    Older versions of Octavo did not store the text of shipped mappings. If the text is missing, the mapping is found by
    name.
    """
    async with connection.cursor(row_factory=class_row(StoredMapping)) as cursor:
        await cursor.execute(QUERIES.kept_mapping, {"id": conversion})
        found = await cursor.fetchone()
    return found or await find_mapping(connection, owner, name)


async def delete_mapping(connection: Connection, owner: UUID, name: str) -> None:
    """Delete an account's mapping. Conversions made with it keep its text. Raises `ShippedMapping` or `NotFound`."""
    if name in shipped_names():
        raise ShippedMapping(f"Name: {name}.")
    row = await (await connection.execute(QUERIES.delete_mapping, {"owner": owner, "name": name})).fetchone()
    if row is None:
        raise NotFound


async def add_mapping(
    connection: Connection, owner: UUID, summary: MappingSummary, file: str, text: str
) -> StoredMapping:
    """Add a mapping that was checked in the sandbox. Adding the same text again does nothing.

    Raises `MappingTaken` or `TooManyMappings`.
    """
    stored = StoredMapping(summary.name, file, text)
    kept = Jsonb(summary.model_dump(mode="json", include={"name", "title", "fields", "required"}))
    values = {"id": new_id(), "owner": owner, "name": stored.name, "file": file, "text": text, "summary": kept}
    row = await (await connection.execute(QUERIES.count_mappings, {"owner": owner})).fetchone()
    if row and row[0] >= MOST_MAPPINGS:
        raise TooManyMappings(f"The limit is {MOST_MAPPINGS}.")
    if stored.name in shipped_names():
        raise MappingTaken(f"{stored.name} ships with Octavo.")
    if await (await connection.execute(QUERIES.add_mapping, values)).fetchone():
        return stored
    existing = await find_mapping(connection, owner, stored.name)
    if existing.text != stored.text:
        raise MappingTaken(f"Name: {stored.name}.")
    return existing


def _shipped(name: str) -> StoredMapping:
    return StoredMapping(name, str(PurePath(name).with_suffix(".yaml")), shipped_text(name))
