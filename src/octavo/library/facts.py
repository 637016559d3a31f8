"""The facts of documents in the database: read them, replace them, and save corrections by people.

Each fact records where it comes from: processing, a conversion, or a model. Each of these sources replaces only its own
facts, and corrections by people are never replaced. The fields of a document (title, author, date, kind, …) are copied
from its best facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.core.errors import BadInput, NotFound
from octavo.core.types import JSON, first_day, new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.facts.dates import read_date
from octavo.facts.finding import Fact
from octavo.facts.sheet import COMPOSED, NAMES, compose_title
from octavo.facts.typed_values import FINDERS
from octavo.facts.words import Notation, fold
from octavo.library.collections import clean_label
from octavo.library.documents import show_document
from octavo.records.documents import FactView, SavedView

QUERIES = load_queries("facts")
PROCESSING, DESCRIPTION = "processing", "description"
# The names for which a document can have several facts.
SEVERAL = frozenset({"iban", "vat_id", "doi", "isbn", "order_id", "account_id", "register_id", "party"})
# The fields of a document, and the facts that they follow.
FOLLOWED = {"title": "title", "author": "author", "document_date": "date"}
MOST_FACTS = 60
MOST_VALUE, MOST_QUOTE = 500, 1000
_SPACES = re.compile(r"\s+")


# Reading ------------------------------------------------------------------------------------------------------------


async def list_facts(connection: Connection, owner: UUID, document: UUID) -> list[FactView]:
    """Return the facts of a document in the order of `NAMES`.

    For a name that allows only one fact, the best fact is returned.
    """
    await show_document(connection, owner, document)
    found: dict[tuple[str, str | None], FactView] = {}
    for row in await fetch_rows(connection, QUERIES.facts, {"document": document}):
        one = _as_view(row)
        found.setdefault((one.name, one.normalized if one.name in SEVERAL else None), one)
    return sorted(found.values(), key=lambda one: NAMES.index(one.name))


async def chosen_facts(
    connection: Connection, documents: Sequence[UUID], names: Sequence[str] = NAMES
) -> dict[UUID, dict[str, FactView]]:
    """Return the best fact for each document and name, in one query."""
    found: dict[UUID, dict[str, FactView]] = {one: {} for one in documents}
    values = {"documents": list(documents), "names": list(names)}
    for row in await fetch_rows(connection, QUERIES.chosen, values):
        document = row.pop("document_id")
        found[document][row["name"]] = _as_view(row)
    return found


def _as_view(row: dict[str, Any]) -> FactView:
    rest: dict[str, Any] = dict(row)
    if rest["box"]:
        rest["box"] = tuple(rest["box"])
    rest["confidence"] = round(rest["confidence"], 3)
    return FactView(**rest)


@dataclass(frozen=True, slots=True)
class Facets:
    """The kinds and languages of an account's documents with their counts, most frequent first."""

    kinds: dict[str, int]
    languages: dict[str, int]


async def list_facets(connection: Connection, owner: UUID) -> Facets:
    found: dict[str, dict[str, int]] = {"kind": {}, "language": {}}
    for row in await fetch_rows(connection, QUERIES.facets, {"owner": owner}):
        found[row["name"]][row["value"]] = row["documents"]
    return Facets(found["kind"], found["language"])


# Writing ------------------------------------------------------------------------------------------------------------


async def save_facts(
    connection: Connection, document: UUID, revision: int, facts: Sequence[Fact], made_by: str = PROCESSING
) -> int:
    """Replace all facts previously saved by `made_by`, in the caller's transaction. Returns the number of saved facts.

    `made_by` is `processing`, `description` or `mapping:<name>`. Facts without a valid value are omitted.
    """
    deleted = await connection.execute(QUERIES.delete_facts, {"document": document, "made_by": made_by})
    names = {row[0] for row in await deleted.fetchall()}
    rows = fact_rows(facts)
    if rows:
        values = {"document": document, "made_by": made_by, "revision": revision, "facts": Jsonb(rows)}
        await connection.execute(QUERIES.insert_facts, values)
    names.update(row["name"] for row in rows)
    # A document that was processed before there were facts has fields without facts; processing replaces these.
    touched = NAMES if made_by == PROCESSING else sorted(names)
    if not touched:
        return 0
    await connection.execute(QUERIES.follow, {"documents": [document], "names": list(touched)})
    await compose_titles(connection, [document], touched)
    return len(rows)


async def compose_titles(connection: Connection, documents: Sequence[UUID], changed: Collection[str]) -> None:
    """Recompose the titles that were composed from facts with the names in `changed`.

    Other titles are not changed.
    """
    if not {*COMPOSED, "kind"}.intersection(changed):
        return
    found = await chosen_facts(connection, documents, (*COMPOSED, "kind"))
    texts = {str(one): compose_title(*_as_values(facts)) for one, facts in found.items()}
    titles = [{"document": one, "value": text, "normalized": fold(text)} for one, text in texts.items() if text]
    rows = await fetch_rows(connection, QUERIES.replace_composed_titles, {"titles": Jsonb(titles)}) if titles else []
    if rows:
        values = {"documents": [row["document_id"] for row in rows], "names": ["title"]}
        await connection.execute(QUERIES.follow, values)


def _as_values(facts: Mapping[str, FactView]) -> tuple[str, dict[str, str]]:
    """Return the document's kind, and the values from which its title is composed.

    Dates, amounts and currencies are normalised.
    """
    exact = {name: one.value if name in {"number", "sender"} else one.normalized or "" for name, one in facts.items()}
    return exact.pop("kind", ""), exact


def fact_rows(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """Build the database rows of the facts that have a valid value."""
    rows: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for fact in facts[:MOST_FACTS]:
        value = _clean(fact.value)
        normalized = normalise(fact.name, value)
        if not value or normalized is None or fact.name not in NAMES:
            continue
        number = seen[fact.name] = seen.get(fact.name, -1) + 1
        place = fact.place if fact.place and fact.place.page > 0 else None
        rows.append({
            "name": fact.name,
            "number": number,
            "value": value,
            "normalized": normalized,
            "page": place.page if place else None,
            "box": [round(side, 2) for side in place.box] if place else None,
            "quote": _clean(fact.quote, MOST_QUOTE),
            "confidence": fact.confidence,
            "source": fact.source,
            "status": fact.status,
        })  # fmt: skip
    return rows


async def say_facts(connection: Connection, documents: Sequence[UUID], said: Mapping[str, str | None]) -> None:
    """Save the facts that a person entered for documents. A value of None removes the fact.

    The caller must have locked the documents.
    """
    for name, value in said.items():
        text = _clean(value or "") or None
        normalized = normalise(name, text) if text else None
        if text and normalized is None:
            raise BadInput(f"{name}: {_REQUIRED[name]}")
        values = {"documents": list(documents), "name": name, "value": text, "normalized": normalized}
        await connection.execute(QUERIES.say, values)
        if text:
            await connection.execute(QUERIES.keep_place, {"documents": list(documents), "name": name})
    if said:
        await connection.execute(QUERIES.follow, {"documents": list(documents), "names": list(said)})
        await compose_titles(connection, documents, said)


_DATE = "must be a date such as 2026-11-15."
_REQUIRED = {
    "date": _DATE,
    "due_date": _DATE,
    "amount": "must be a number such as 717.97.",
    "currency": "must be a code of three letters such as EUR.",
    "language": "must be a language code such as en or pt-BR.",
}


# Saved views --------------------------------------------------------------------------------------------------------


async def list_views(connection: Connection, owner: UUID) -> list[SavedView]:
    """Return an account's saved views, sorted by name."""
    return [SavedView(**row) for row in await fetch_rows(connection, QUERIES.views, {"owner": owner})]


async def save_view(
    connection: Connection, owner: UUID, name: str, filters: Mapping[str, JSON], sort: str
) -> SavedView:
    """Save filters and a sort order as a view. A view with the same name is replaced."""
    label = clean_label(name, "view")
    values = {"id": new_id(), "owner": owner, "name": label, "filter": Jsonb({**filters}), "sort": sort}
    (row,) = await fetch_rows(connection, QUERIES.save_view, values)
    return SavedView(**row)


async def delete_view(connection: Connection, owner: UUID, view: UUID) -> None:
    if not await fetch_rows(connection, QUERIES.delete_view, {"owner": owner, "id": view}):
        raise NotFound


# Normal forms -------------------------------------------------------------------------------------------------------


def normalise(name: str, value: str) -> str | None:
    """Normalise a value for comparing and sorting, for example to 2018-03-05, 529.87, EUR, or a name in lower case.

    Returns None if the value is invalid for a fact that must be a date, an amount, a currency or a language.
    """
    return _FORMS.get(name, fold)(_clean(value))


def _clean(text: str, most: int = MOST_VALUE) -> str:
    return _SPACES.sub(" ", text.replace("\0", " ")).strip()[:most].rstrip()


_REGION = 2


def _code(text: str, pattern: str) -> str | None:
    return text if re.fullmatch(pattern, text) else None


def _decimal(text: str) -> str | None:
    if re.fullmatch(r"-?\d{1,15}(\.\d{1,6})?", text):
        return text
    found = FINDERS["amount"](text, Notation())
    value = found[0].value if found else ""
    return _code(value, r"-?\d{1,15}(\.\d{1,6})?")


def _day(text: str) -> str | None:
    return text if first_day(text) else read_date(text, Notation())


def _currency(text: str) -> str | None:
    found = FINDERS["currency"](text, Notation())
    return found[0].value if found else _code(text.upper(), r"[A-Z]{3}")


def _language(text: str) -> str | None:
    """Normalise a language tag: en, pt-BR, zh-Hant."""
    primary, *rest = text.replace("_", "-").split("-")
    tag = "-".join((primary.lower(), *(part.upper() if len(part) == _REGION else part.title() for part in rest)))
    return _code(tag, r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


def _identifier(text: str) -> str:
    return re.sub(r"[\s.-]", "", text).upper()


def _kind(text: str) -> str:
    return re.sub(r"\W+", "_", fold(text)).strip("_")


_FORMS: dict[str, Callable[[str], str | None]] = {
    "date": _day,
    "due_date": _day,
    "amount": _decimal,
    "currency": _currency,
    "language": _language,
    "iban": _identifier,
    "vat_id": _identifier,
    "isbn": _identifier,
    "kind": _kind,
}
