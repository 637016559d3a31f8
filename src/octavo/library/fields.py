"""Custom fields: values that an owner records about documents in addition to the facts, such as a project.

Values are stored as text, with one format for each type, so that they can be compared: 42.5, 2026-11-15, 12.50 EUR.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from urllib.parse import urlsplit
from uuid import UUID

import psycopg

from octavo.core.errors import BadInput, NotFound
from octavo.core.types import new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.facts.confidence import REVIEW
from octavo.facts.words import fold
from octavo.library.collections import clean_label
from octavo.library.errors import NameTaken
from octavo.library.facts import list_facts
from octavo.owners.audit import record
from octavo.records.automation import FieldType, FieldView
from octavo.records.documents import FactView

QUERIES = load_queries("fields")
MOST_FIELDS, MOST_CHOICES, MOST_VALUE = 100, 200, 500
MOST_DIGITS = 30
_MONEY = re.compile(r"([A-Za-z]{3})?\s*(-?[0-9]+(?:\.[0-9]{1,4})?)\s*([A-Za-z]{3})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


async def list_fields(connection: Connection, owner: UUID) -> list[FieldView]:
    return [FieldView(**row) for row in await fetch_rows(connection, QUERIES.list_fields, {"owner": owner})]


async def show_field(connection: Connection, owner: UUID, field: UUID) -> FieldView:
    for one in await list_fields(connection, owner):
        if one.id == field:
            return one
    raise NotFound


async def add_field(
    connection: Connection, owner: UUID, name: str, type_: FieldType, choices: Sequence[str] = ()
) -> FieldView:
    if len(await list_fields(connection, owner)) >= MOST_FIELDS:
        raise BadInput(f"The limit is {MOST_FIELDS} fields.")
    made = new_id()
    values = {"id": made, "owner": owner, "name": _clean_name(name), "type": type_}
    values |= {"choices": _clean_choices(type_, choices)}
    try:
        async with connection.transaction():
            await connection.execute(QUERIES.insert_field, values)
    except psycopg.errors.UniqueViolation:
        raise NameTaken(_clean_name(name)) from None
    await record(connection, owner, "field.add", made)
    return await show_field(connection, owner, made)


async def edit_field(
    connection: Connection, owner: UUID, field: UUID, *, name: str | None = None, choices: Sequence[str] | None = None
) -> FieldView:
    """Rename a field and update the rules that use it, or replace its choices.

    Values that are no longer allowed are kept until they are changed.
    """
    known = await show_field(connection, owner, field)
    kept = _clean_choices(known.type, choices) if choices is not None else None
    values = {"id": field, "owner": owner, "name": _clean_name(name) if name is not None else None, "choices": kept}
    try:
        async with connection.transaction():
            await connection.execute(QUERIES.edit_field, values)
    except psycopg.errors.UniqueViolation:
        raise NameTaken(name) from None
    edited = await show_field(connection, owner, field)
    if edited.name != known.name:
        await connection.execute(QUERIES.rename_in_rules, {"owner": owner, "old": known.name, "new": edited.name})
    await record(connection, owner, "field.edit", field)
    return edited


async def delete_field(connection: Connection, owner: UUID, field: UUID) -> None:
    """Delete a field and its values on all documents."""
    values = {"id": field, "owner": owner}
    if await (await connection.execute(QUERIES.delete_field, values)).fetchone() is None:
        raise NotFound
    await record(connection, owner, "field.delete", field)


def _clean_name(name: str) -> str:
    label = clean_label(name, "field")
    if ":" in label:
        raise BadInput("The name of a field cannot contain a colon.")
    return label


def _clean_choices(type_: FieldType, choices: Sequence[str]) -> list[str]:
    kept = list(dict.fromkeys(clean_label(one, "choice") for one in choices))
    if (type_ == "choice") != bool(kept):
        raise BadInput("`choices` are required for the type choice, and not allowed for other types.")
    return kept


# Values -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldValues:
    """Checked values of custom fields, keyed by field id. None clears a value. `names` are the names of the fields."""

    values: Mapping[UUID, str | None]
    names: Mapping[UUID, str]


async def check_values(connection: Connection, owner: UUID, given: Mapping[str, str | None]) -> FieldValues:
    """Check the values of custom fields, and convert them to the format in which they are stored.

    Raises `BadInput` for unknown fields and invalid values.
    """
    rows = await fetch_rows(connection, QUERIES.named_fields, {"owner": owner, "names": list(given)})
    known = {row["name"].lower(): row for row in rows}
    values: dict[UUID, str | None] = {}
    for name, value in given.items():
        field = known.get(name.lower())
        if field is None:
            raise BadInput(f"There is no field {name!r}. Add it first.")
        values[field["id"]] = read_value(name, field["type"], value, field["choices"]) if value else None
    return FieldValues(values, {row["id"]: row["name"] for row in rows})


async def save_values(connection: Connection, documents: Sequence[UUID], given: FieldValues) -> None:
    """Set and clear values of documents that the caller has locked."""
    texts = {field: value for field, value in given.values.items() if value is not None}
    cleared = [field for field, value in given.values.items() if value is None]
    ids = list(documents)
    if texts:
        values = {"documents": ids, "fields": list(texts), "texts": list(texts.values())}
        await connection.execute(QUERIES.set_fields, values)
    if cleared:
        await connection.execute(QUERIES.clear_fields, {"documents": ids, "fields": cleared})


def read_value(name: str, type_: FieldType, value: str, choices: Sequence[str] = ()) -> str:
    """Check the value of a custom field, and return it in the format in which it is stored.

    For example, dates are stored as 2026-11-15. Raises `BadInput` if the value does not match the type of the field.
    """
    text = " ".join(value.split())
    if not text or len(text) > MOST_VALUE:
        raise BadInput(f"{name}: must have 1 to {MOST_VALUE} characters.")
    if type_ == "choice":
        return _read_choice(name, text, choices)
    reader = _READERS.get(type_)
    return reader(name, text) if reader else text


def _read_number(name: str, text: str) -> str:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or abs(number.adjusted()) > MOST_DIGITS or len(number.as_tuple().digits) > MOST_DIGITS:
        raise BadInput(f"{name}: must be a number such as 42 or 42.5.")
    return format(number.normalize(), "f")


def _read_date(name: str, text: str) -> str:
    try:
        return date.fromisoformat(text if _DATE.fullmatch(text) else "").isoformat()
    except ValueError:
        raise BadInput(f"{name}: must be a date such as 2026-11-15.") from None


def _read_money(name: str, text: str) -> str:
    match = _MONEY.fullmatch(text)
    if not match or (match[1] and match[3]) or len(match[2]) > MOST_DIGITS:
        raise BadInput(f"{name}: must be an amount with a currency, such as 12.50 EUR.")
    amount, currency = Decimal(match[2]), match[1] or match[3]
    return f"{amount:.2f} {currency.upper()}" if currency else f"{amount:.2f}"


def _read_choice(name: str, text: str, choices: Sequence[str]) -> str:
    known = {one.lower(): one for one in choices}
    if text.lower() not in known:
        raise BadInput(f"{name}: must be one of {', '.join(choices)}.")
    return known[text.lower()]


def _read_link(name: str, text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.netloc or " " in text:
        raise BadInput(f"{name}: must be a link that begins with https:// or http://.")
    return text


_READERS: dict[FieldType, Callable[[str, str], str]] = {
    "number": _read_number,
    "date": _read_date,
    "money": _read_money,
    "link": _read_link,
}


# Suggestions --------------------------------------------------------------------------------------------------------

# The facts that a field can be about, by words in its name, in the languages of the pages. The first fact that matches
# decides, so that "Due date" is not about the date.
_ABOUT: tuple[tuple[str, str], ...] = (
    ("due_date", "due deadline fallig falligkeit falligkeitsdatum echeance vencimiento"),
    ("order_id", "order bestellung bestellnummer auftrag auftragsnummer commande pedido"),
    ("account_id", "account konto kundennummer vertragsnummer compte cuenta"),
    ("register_id", "register registernummer registre registro"),
    ("vat_id", "vat ust ustid umsatzsteuer tva iva"),
    ("iban", "iban"),
    ("doi", "doi"),
    ("isbn", "isbn"),
    ("recipient", "recipient customer client addressee empfanger kunde destinataire cliente destinatario"),
    (
        "sender",
        "sender supplier vendor issuer company absender lieferant firma fournisseur expediteur proveedor remitente",
    ),
    ("author", "author autor verfasser auteur"),
    ("amount", "amount total sum price cost betrag summe preis montant importe"),
    ("period", "period zeitraum periode periodo"),
    ("number", "number no nr reference nummer rechnungsnummer numero"),
    ("date", "date dated datum rechnungsdatum fecha"),
    ("currency", "currency wahrung devise moneda"),
    ("language", "language sprache langue idioma"),
    ("kind", "kind type art tipo"),
)
_NAMED = frozenset({"recipient", "sender", "author"})
# A field with such a word is about a detail of a person or a company, which is not a fact.
_DETAILS = frozenset(
    (
        "number",
        "no",
        "nr",
        "nummer",
        "numero",
        "id",
        "address",
        "adresse",
        "email",
        "phone",
        "telefon",
        "country",
        "land",
    )
)
_BY_TYPE: dict[FieldType, str] = {"money": "amount", "person": "author"}
_WORD = re.compile(r"[^\W_]+")


async def suggest_facts(connection: Connection, owner: UUID, document: UUID) -> list[FactView]:
    """Return the facts of a document, each with the empty custom fields for which its value is suggested."""
    facts, fields = await list_facts(connection, owner, document), await list_fields(connection, owner)
    if not fields or not facts:
        return facts
    rows = await fetch_rows(connection, QUERIES.fields_of, {"documents": [document]})
    filled = {row["name"] for row in rows}
    return suggest_values([one for one in fields if one.name not in filled], facts)


def suggest_values(fields: Sequence[FieldView], facts: Sequence[FactView]) -> list[FactView]:
    """Return the facts, each with the fields for which its value is suggested. Uncertain facts are not suggested."""
    sure = {one.name: one for one in reversed(facts) if one.status != "found" or one.confidence >= REVIEW}
    found: dict[str, dict[str, str]] = {name: {} for name in sure}
    for field in fields:
        for name in _facts_about(field):
            value = _value_for(field, sure.get(name), sure.get("currency"))
            if value is not None:
                found[name][field.name] = value
                break
    return [replace(one, suggests=found[one.name]) if sure.get(one.name) is one else one for one in facts]


def _facts_about(field: FieldView) -> Sequence[str]:
    words = set(_WORD.findall(fold(field.name)))
    for name, known in _ABOUT:
        if words.intersection(known.split()):
            return () if name in _NAMED and words & _DETAILS else (name,)
    if field.type == "choice":
        return [name for name, _ in _ABOUT]
    return (_BY_TYPE[field.type],) if field.type in _BY_TYPE else ()


def _value_for(field: FieldView, fact: FactView | None, currency: FactView | None) -> str | None:
    """Return the value of a fact in the field's format, or None if the value is not valid for the field."""
    if fact is None:
        return None
    text = fact.value
    if fact.name in {"amount", "date", "due_date"} and fact.normalized:
        text = fact.normalized
        if fact.name == "amount" and currency and field.type == "money":
            text = f"{text} {currency.normalized or currency.value}"
    try:
        return read_value(field.name, field.type, text, field.choices)
    except BadInput:
        return None
