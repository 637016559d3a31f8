"""Finds mappings by name: those that an owner added, and those that ship with Octavo."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import PurePath
from uuid import UUID

from psycopg.rows import class_row

from octavo.convert.errors import MappingTaken, UnknownMapping
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.shipped_mappings import mapping_from_text, shipped_names, shipped_text
from octavo.core.ids import new_id
from octavo.database import Connection, load_queries
from octavo.intake.names import clean_filename

QUERIES = load_queries("conversions")
DEFAULT_MAPPING = "pt_simon_invoice_v1"


@dataclass(frozen=True, slots=True)
class StoredMapping:
    """The file of a mapping. `created_at` is None for a mapping that ships with Octavo."""

    name: str
    file: str
    text: str
    created_at: datetime | None = None

    @property
    def sha256(self) -> str:
        """The checksum of the mapping's exact text."""
        return sha256(self.text.encode()).hexdigest()

    def read(self) -> Mapping:
        return mapping_from_text(self.text, self.file)

    def xml_schema(self) -> bytes:
        """The XML Schema of the XML that conversions with this mapping produce."""
        from octavo.convert.rules.result_xml import (
            schema_of,  # imported here, so that the web server starts without lxml
        )

        return schema_of(self.read())


async def list_mappings(connection: Connection, owner: UUID) -> list[StoredMapping]:
    """List the shipped mappings, then the owner's mappings."""
    async with connection.cursor(row_factory=class_row(StoredMapping)) as cursor:
        await cursor.execute(QUERIES.own_mappings, {"owner": owner})
        own = await cursor.fetchall()
    return [*map(_shipped, shipped_names()), *own]


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


async def add_mapping(connection: Connection, owner: UUID, file: str, text: str) -> StoredMapping:
    """Validate and add a mapping. Adding the same text again does nothing. Raises `BadMapping` or `MappingTaken`."""
    label = clean_filename(file)
    mapping = await asyncio.to_thread(mapping_from_text, text, label)
    stored = StoredMapping(mapping.name, label, text)
    values = {"id": new_id(), "owner": owner, "name": stored.name, "file": stored.file, "text": text}
    if stored.name in shipped_names():
        raise MappingTaken(f"{stored.name} ships with Octavo.")
    if await (await connection.execute(QUERIES.add_mapping, values)).fetchone():
        return stored
    existing = await find_mapping(connection, owner, stored.name)
    if existing.text != text:
        raise MappingTaken(f"Name: {stored.name}.")
    return existing


def _shipped(name: str) -> StoredMapping:
    return StoredMapping(name, str(PurePath(name).with_suffix(".yaml")), shipped_text(name))
