"""Lets people correct conversions: values, positions and table rows. People can also accept failed checks.

Each correction is saved as a new revision with its author, time, changes and validated XML. Corrections are kept longer
than the conversion. If the same content is converted again, they are applied to the new conversion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.convert.conversions import Revision, StoredConversion, find_result, list_revisions, show_conversion
from octavo.convert.errors import Expired, Outdated
from octavo.convert.mappings.mapping import FIELD_TYPES, Field
from octavo.convert.mappings.mapping import Mapping as MappingRules
from octavo.convert.mappings.stored_mappings import StoredMapping, mapping_of_conversion
from octavo.convert.results import Author, save_revision, store_result
from octavo.convert.values import Conversion, Status, Value, conversion_from_json, type_of, value_from_row
from octavo.core.errors import BadInput, NotFound
from octavo.core.texts import Texts
from octavo.core.types import JSON, new_id
from octavo.database import Connection, Database, fetch_rows, load_queries, read_clock
from octavo.facts.finding import Fact
from octavo.facts.sheet import NAMES
from octavo.facts.words import Box, Place
from octavo.library.facts import save_facts
from octavo.records.documents import FactView
from octavo.storage import Bucket

QUERIES = load_queries("conversions")
FORMS = Texts(
    {
        "date": "Use a date such as 2026-11-15.",
        "amount": "Use an amount such as 1234.50.",
        "number": "Use a number such as 12.5.",
        "currency": "Use a currency code such as EUR.",
    }
)
MOST_ROWS = 5000
_CELL = re.compile(r"(?P<table>\w+)\[(?P<row>\d{1,5})\]\.(?P<name>\w+)")
_CERTAIN = 1.0

# Reads the words inside a box on a page of a stored file.
ReadQuote = Callable[[str, int, Box], Awaitable[str]]
Change = dict[str, JSON]


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of one value. `name` is a field, or a cell such as `lines[2].amount`.

    If `value` is None, the value is removed. `page` and `box` are the correct position, if the person selected it.
    """

    name: str
    value: str | None
    page: int | None = None
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class RowChange:
    """A table row to add, remove or move. Rows are counted from 1.

    `add` inserts a row with `values` at `row`, or at the end if `row` is None. `move` moves `row` to the position `to`.
    """

    table: str
    action: Literal["add", "remove", "move"]
    row: int | None = None
    to: int | None = None
    values: Mapping[str, str] | None = None


class Editor(NamedTuple):
    """The person who corrects a conversion, and the time of the correction."""

    name: str
    at: str


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected conversion and the changes that were made to it."""

    conversion: Conversion
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class Corrections:
    """Saves and undoes the corrections that people make to conversions."""

    database: Database
    bucket: Bucket
    result_days: int
    correction_days: int = 365
    read_quote: ReadQuote | None = None

    async def correct(
        self,
        owner: UUID,
        conversion: UUID,
        user: UUID | None,
        corrections: Sequence[Correction],
        *,
        rows: Sequence[RowChange] = (),
        accept: Sequence[str] = (),
        restore: Sequence[str] = (),
        person: str | None = None,
    ) -> None:
        """Save all corrections and row changes as one revision, or raise `BadInput` and save nothing.

        Values are corrected first. Then the row changes are made, in the given order. `accept` lists failed checks
        whose values are nevertheless correct; these values are marked as confirmed. `restore` lists corrected fields to
        reset to the values that were originally found.
        """
        found, mapping, author, at = await self._load(owner, conversion, user, person)
        read = await mapping.read_in_thread()
        places = await self._places(owner, conversion, corrections)
        before = conversion_from_json(found.complete_record, read)
        originals = await self._originals(owner, before, conversion, read, restore) if restore else []
        made = correct(
            before,
            read,
            corrections,
            rows=rows,
            accept=accept,
            originals=originals,
            places=places,
            editor=Editor(author.name, at),
        )
        await self._save(owner, found, mapping, author, made)

    async def undo(self, owner: UUID, conversion: UUID, user: UUID | None, person: str | None = None) -> list[Change]:
        """Restore the revision before the current one as a new revision. Returns the changes that were undone."""
        found, mapping, author, _ = await self._load(owner, conversion, user, person)
        async with self.database.connection() as connection:
            made = {one.number: one for one in await list_revisions(connection, owner, conversion)}
        before = made.get(found.revision - 1)
        if before is None or not found.complete_record:
            raise BadInput("Nothing to undo.")
        read = await mapping.read_in_thread()
        restored = conversion_from_json(before.record.encode(), read)
        await self._save(owner, found, mapping, author, Corrected(restored, [{"undo": found.revision}]))
        return json.loads(made[found.revision].changes or "[]")

    async def _load(
        self, owner: UUID, conversion: UUID, user: UUID | None, person: str | None
    ) -> tuple[StoredConversion, StoredMapping, Author, str]:
        async with self.database.connection() as connection:
            found = await show_conversion(connection, owner, conversion)
            mapping = await mapping_of_conversion(connection, owner, conversion, found.mapping)
            row = await (await connection.execute(QUERIES.person_name, {"user": user})).fetchone()
            at = (await read_clock(connection)).isoformat(timespec="seconds")
        return found, mapping, Author("person", user, row[0] if row else person), at

    async def _originals(
        self, owner: UUID, current: Conversion, conversion: UUID, mapping: MappingRules, paths: Sequence[str]
    ) -> list[Value]:
        async with self.database.connection() as connection:
            revisions = await list_revisions(connection, owner, conversion)
        found = {path: original_value(revisions, current, mapping, path) for path in paths}
        unchanged = next((path for path, value in found.items() if value is None), None)
        if unchanged is not None:
            raise BadInput(f"{unchanged[:80]}: there is no earlier value to restore.")
        return [value for value in found.values() if value]

    async def _places(self, owner: UUID, conversion: UUID, corrections: Sequence[Correction]) -> dict[str, Place]:
        """Return the positions that a person selected for corrected values, with the words at these positions.

        The keys are the names of the values. Corrections without a selected position are left out.
        """
        pointed = [one for one in corrections if one.page and one.box]
        if not pointed:
            return {}
        async with self.database.connection() as connection:
            try:
                key = (await find_result(connection, owner, conversion, "source")).key
            except Expired:
                key = None
        places: dict[str, Place] = {}
        for one in pointed:
            if one.page and one.box:
                quote = await self.read_quote(key, one.page, one.box) if key and self.read_quote else ""
                places[one.name] = Place(one.page, one.box, quote)
        return places

    async def _save(
        self, owner: UUID, found: StoredConversion, mapping: StoredMapping, author: Author, made: Corrected
    ) -> None:
        folder = f"conversions/{found.id}/{new_id()}"
        result = await store_result(self.bucket, folder, made.conversion, mapping)
        try:
            async with self.database.transaction() as connection:
                row = await (await connection.execute(QUERIES.lock, {"owner": owner, "id": found.id})).fetchone()
                if row is None:
                    raise NotFound
                if row[0] != found.revision:
                    raise Outdated
                unused = await save_revision(connection, found.id, result, self.result_days, author, made.changes)
                await keep_correction(connection, found.id, self.correction_days)
                await share_facts(connection, found.id, made.conversion, await mapping.read_in_thread())
        except BadInput:
            await self.bucket.delete([result.stored.key])
            raise
        await self.bucket.delete(unused)


async def keep_correction(connection: Connection, conversion: UUID, days: int, earlier: Sequence[Change] = ()) -> None:
    """Save the original and the corrected values as a training sample for `days` days.

    `earlier` lists the changes that were made to an earlier conversion of the same content.
    """
    values = {"id": conversion, "days": days, "earlier": Jsonb(list(earlier))}
    await connection.execute(QUERIES.keep_correction, values)


async def share_facts(connection: Connection, conversion: UUID, made: Conversion, mapping: MappingRules) -> None:
    """Save the values as facts of the document, such as its date or sender.

    They replace the facts from an earlier revision or conversion. A value that a person confirmed becomes a confirmed
    fact. A value that needs review is not saved.
    """
    rows = await fetch_rows(connection, QUERIES.document_of, {"id": conversion})
    if rows:
        facts = facts_of_conversion(made, mapping)
        await save_facts(connection, rows[0]["id"], rows[0]["revision"], facts, f"mapping:{mapping.name}")


# Pure functions ----------------------------------------------------------------------------------------------------


def correct(
    conversion: Conversion,
    mapping: MappingRules,
    corrections: Sequence[Correction],
    *,
    rows: Sequence[RowChange] = (),
    accept: Sequence[str] = (),
    originals: Sequence[Value] = (),
    places: Mapping[str, Place] | None = None,
    editor: Editor | None = None,
) -> Corrected:
    """Apply corrections to a conversion. Raises `BadInput` if a correction is invalid.

    A value that a person accepts unchanged keeps its position. A new value has a position only if the person selected
    one. `originals` contains the extracted values to restore in place of earlier corrections.
    """
    values = {one.path: one for one in conversion.values}
    changes: list[Change] = [
        {"name": one.path, "before": _text(values.get(one.path)), "after": one.value} for one in originals
    ]
    values |= {one.path: one for one in originals}
    for correction in corrections:
        before = values.get(correction.name)
        value = _corrected_value(correction, mapping, before, (places or {}).get(correction.name), editor)
        changes.append({"name": correction.name, "before": before and before.value, "after": value and value.value})
        if value is None:
            values.pop(correction.name, None)
        else:
            values[correction.name] = value
    every = list(values.values())
    for one in rows:
        every = _change_rows(every, mapping, one, editor, changes)
    for text in accept:
        every = _accept(every, mapping, text, editor)
        changes.append({"check": text, "accepted": True})
    return Corrected(_finish(conversion, mapping, every), changes)


def original_value(
    revisions: Sequence[Revision], current: Conversion, mapping: MappingRules, path: str
) -> Value | None:
    """Return the value that was found for a field before any correction. Returns None if it equals the current value.

    For a table cell, also returns None if rows of its table were added, removed or moved: the cell may be in another
    row.
    """
    first = conversion_from_json(revisions[0].record.encode(), mapping)
    now = next((one.value for one in current.values if one.path == path), None)
    value = next((one for one in first.values if one.path == path and one.value != now), None)
    if value is None or value.table is None:
        return value
    changes = [change for one in revisions for change in json.loads(one.changes or "[]")]
    same_rows = len(first.table(value.table)) == len(current.table(value.table))
    return value if same_rows and not any(one.get("table") == value.table for one in changes) else None


def _finish(conversion: Conversion, mapping: MappingRules, values: Sequence[Value]) -> Conversion:
    from octavo.convert.rules.engine import finish

    order = {field.name: index for index, field in enumerate(mapping.fields)}
    ordered = sorted(values, key=lambda one: (order[one.table or one.name], one.row or 0))
    return replace(finish(mapping, ordered, source="person"), model_lookup=conversion.model_lookup)


def _accept(values: Sequence[Value], mapping: MappingRules, text: str, editor: Editor | None) -> list[Value]:
    """Mark all values that a failed check uses as confirmed, because a person accepted the check."""
    check = next((one for one in mapping.checks if one.text == text), None)
    if check is None:
        raise BadInput(f"{mapping.name} has no check {text[:80]!r}.")
    names = set(check.names)
    return [
        one
        if one.is_confirmed or (f"{one.table}.{one.name}" if one.table else one.name) not in names
        else replace(_confirmed(one.name, one.value, one.place, one.table, one.row, editor), page=one.page)
        for one in values
    ]


def _corrected_value(
    correction: Correction, mapping: MappingRules, before: Value | None, place: Place | None, editor: Editor | None
) -> Value | None:
    cell = _CELL.fullmatch(correction.name)
    table, name = (cell["table"], cell["name"]) if cell else (None, correction.name)
    if correction.value is None:
        _check_type(mapping, correction.name, name, table, "")
        return None
    _check_type(mapping, correction.name, name, table, correction.value)
    row = max(int(cell["row"]), 1) if cell else None
    if place is None and before and before.value == correction.value and correction.page in {None, before.on_page}:
        place = before.place
    made = _confirmed(name, correction.value, place, table, row, editor)
    return made if place else replace(made, page=correction.page)


def _confirmed(
    name: str, value: str, place: Place | None, table: str | None, row: int | None, editor: Editor | None
) -> Value:
    by, at = editor or (None, None)
    return Value(name, value, _CERTAIN, place, Status.CONFIRMED, table, row, by=by, at=at)


def _check_type(mapping: MappingRules, path: str, name: str, table: str | None, value: str) -> None:
    kind = type_of(mapping, name, table)
    if kind is None:
        raise BadInput(f"{mapping.name} has no field {path[:80]!r}.")
    if value and not FIELD_TYPES[kind].accepts(value):
        raise BadInput(f"{path}: {value[:80]!r} is not a valid {kind}. {FORMS.get(kind, '')}".rstrip())


def _change_rows(
    values: Sequence[Value], mapping: MappingRules, wanted: RowChange, editor: Editor | None, changes: list[Change]
) -> list[Value]:
    """Add, remove or move one row, and renumber the rows of its table."""
    field = next((one for one in mapping.tables if one.name == wanted.table), None)
    if field is None:
        raise BadInput(f"{mapping.name} has no table {wanted.table[:80]!r}.")
    numbers = sorted({one.row for one in values if one.table == field.name and one.row})
    rows = [[one for one in values if one.table == field.name and one.row == number] for number in numbers]
    changes.append(_apply(rows, field, mapping, wanted, editor))
    others = [one for one in values if one.table != field.name]
    return [*others, *(replace(cell, row=number) for number, row in enumerate(rows, 1) for cell in row)]


def _apply(
    rows: list[list[Value]], field: Field, mapping: MappingRules, wanted: RowChange, editor: Editor | None
) -> Change:
    change: Change = {"table": field.name, "action": wanted.action}
    if wanted.action == "add":
        given = {name: text for name, text in (wanted.values or {}).items() if text}
        if not given:
            raise BadInput("Enter at least one value for the new row.")
        if len(rows) >= MOST_ROWS:
            raise BadInput(f"A table can have at most {MOST_ROWS:,} rows.")
        for name, text in given.items():
            _check_type(mapping, name, name, field.name, text)
        at = min(wanted.row or len(rows) + 1, len(rows) + 1)
        rows.insert(at - 1, [_confirmed(name, text, None, field.name, at, editor) for name, text in given.items()])
        after: JSON = {name: text for name, text in given.items()}  # noqa: C416 - typed
        return change | {"row": at, "after": after}
    if wanted.row is None or not 1 <= wanted.row <= len(rows):
        raise BadInput(f"{field.name} has no row {wanted.row}.")
    taken = rows.pop(wanted.row - 1)
    if wanted.action == "remove":
        before: JSON = {one.name: one.value for one in taken}
        return change | {"row": wanted.row, "before": before}
    to = max(min(wanted.to or 1, len(rows) + 1), 1)
    rows.insert(to - 1, taken)
    return change | {"row": wanted.row, "to": to}


def _text(value: Value | None) -> str | None:
    return value.value if value else None


def carry_over(conversion: Conversion, mapping: MappingRules, found: Any, corrected: Any) -> Corrected | None:  # noqa: ANN401
    """Apply the corrections of an earlier conversion of the same content.

    `found` and `corrected` are the records of the earlier conversion's first and last revisions. Each corrected
    value keeps the name of the person who corrected it and the time of the correction. Fields that this mapping does
    not have are skipped. Returns None if nothing changes.
    """
    old, new = (_values_of(record, mapping) for record in (found, corrected))
    values = {one.path: one for one in conversion.values}
    for table in [field.name for field in mapping.tables]:
        if _rows_of(old, table) != _rows_of(new, table) or any(one.is_confirmed for one in new if one.table == table):
            values = {path: one for path, one in values.items() if one.table != table}
            values |= {one.path: one for one in new if one.table == table}
    kept = {one.path for one in new}
    for one in old:
        if not one.table and one.path not in kept:
            values.pop(one.path, None)
    values |= {one.path: one for one in new if not one.table and one.is_confirmed}
    if list(values.values()) == list(conversion.values):
        return None
    before = {one.path: one for one in conversion.values}
    changes: list[Change] = [
        {"name": path, "before": _text(before.get(path)), "after": _text(values.get(path))}
        for path in dict.fromkeys([*before, *values])
        if before.get(path) != values.get(path)
    ]
    return Corrected(_finish(conversion, mapping, list(values.values())), [{"carried": True}, *changes])


def facts_of_conversion(made: Conversion, mapping: MappingRules) -> list[Fact]:
    """Return the conversion's values that are also facts of the document, such as its date.

    Values that need review are skipped.
    """
    facts: list[Fact] = []
    for field in mapping.singles:
        value, name = made.single(field.name), fact_name(field)
        if value is None or value.needs_review or name is None:
            continue
        quote = value.place.quote if value.place else ""
        source = "person" if value.is_confirmed else "mapping"
        facts.append(Fact(name, value.value, quote, value.confidence, source, str(value.status), value.place))
    return facts


def fact_name(field: Field) -> str | None:
    """Return the name of the document's fact, such as `date`, that corresponds to a field.

    The name is set by the mapping; by default, it is the name of the field. Returns None if there is no fact with this
    name.
    """
    return next((name for name in (field.fact, field.name) if name in NAMES), None)


def confirm_facts(conversion: Conversion, mapping: MappingRules, facts: Sequence[FactView]) -> Corrected | None:
    """Apply the facts that a person confirmed for the document to the fields of a conversion.

    Returns None if nothing changes.
    """
    said = {one.name: one for one in facts if one.source == "person" and one.status == "confirmed"}
    values = {one.path: one for one in conversion.values}
    changes: list[Change] = []
    for field in mapping.singles:
        fact, before = said.get(fact_name(field) or ""), values.get(field.name)
        wanted = (
            (text for text in (fact.value, fact.normalized) if text and FIELD_TYPES[field.type].accepts(text))
            if fact
            else ()
        )
        text = next(iter(wanted), None)
        if fact is None or text is None or (before and before.is_confirmed):
            continue
        place = Place(fact.page, Box(*fact.box), fact.quote) if fact.page and fact.box else None
        if before and before.value == text:
            place = before.place
        values[field.name] = _confirmed(field.name, text, place, None, None, None)
        changes.append({"name": field.name, "before": _text(before), "after": text})
    if not changes:
        return None
    return Corrected(_finish(conversion, mapping, list(values.values())), [{"facts": True}, *changes])


def _values_of(record: Any, mapping: MappingRules) -> list[Value]:  # noqa: ANN401
    """Return the values in a record. Values that are invalid in this mapping are left out.

    Values can be invalid if the record was made with another version of the mapping.
    """
    values: list[Value] = []
    for row in record["values"]:
        try:
            values.append(value_from_row(row, mapping))
        except (ValueError, TypeError):
            continue
    return values


def _rows_of(values: Sequence[Value], table: str) -> dict[str, str]:
    return {one.path: one.value for one in values if one.table == table}
