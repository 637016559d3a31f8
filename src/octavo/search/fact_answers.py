"""Answers questions such as "What is Coolblue's invoice number?" from the facts of the documents.

The question must be short, name the document and ask for one fact, and that fact must be certain. The citation is the
line of text that contains the fact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.calls import LOCAL
from octavo.core.formatting import format_full_date, format_money
from octavo.database import Connection, fetch_rows, load_queries
from octavo.facts.confidence import REVIEW
from octavo.facts.words import fold
from octavo.language.text_positions import find_quote
from octavo.language.vocabulary import STOPWORDS
from octavo.library.facts import chosen_facts
from octavo.records.documents import FactView
from octavo.records.search import Citation, Statement
from octavo.search.citations import Answer
from octavo.search.query import Filters

QUERIES = load_queries("search")
MOST_WORDS, MOST_ANSWERS, MOST_CANDIDATES = 16, 5, 50
LEAST_WORD, MOST_LINE = 3, 240
# The words with which people ask for a fact. The first matching pattern is used, so that "due date" is not a date.
_ASKED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?<!\w)(?:{words})(?!\w)"))
    for name, words in (
        ("iban", r"iban|bank account|kontoverbindung|bankverbindung"),
        ("vat_id", r"vat (?:id|no|nr|number)|tax (?:id|number)|ust-?id\w*|btw-?nummer|numero de tva"),
        ("doi", r"doi"),
        ("isbn", r"isbn"),
        ("order_id", r"order (?:id|no|nr|number)|bestellnummer|auftragsnummer|bestelnummer|numero de commande"),
        ("account_id", r"customer (?:id|no|nr|number)|account (?:id|no|nr|number)|kundennummer|klantnummer"),
        ("due_date", r"due(?: date)?|payable by|pay by|faellig\w*|fallig\w*|zahlungsziel|vervaldatum|echeance"),
        (
            "number",
            (r"(?:invoice|document|bill|receipt|reference) (?:id|no|nr|number)|number of the (?:invoice|bill|receipt)"
            r"|rechnungsnummer|belegnummer|factuurnummer|numero de (?:la )?facture|numero (?:di )?fattura"),
        ),
        ("date", r"(?:invoice |document |issue )?date|dated|when|rechnungsdatum|datum|wann|quand"),
        (
            "amount",
            (r"how much|total(?: amount)?|amount|sum|cost|price|betrag|gesamtbetrag|summe|wie viel|wieviel|combien"
            r"|montant|hoeveel|bedrag|totaal|importo|importe"),
        ),
        ("sender", r"who (?:sent|issued|wrote)|seller|sender|issuer|supplier|absender|verkaufer|lieferant|wer hat"),
        ("recipient", r"recipient|addressed to|billed to|empfanger|buyer|customer"),
        ("author", r"author|who wrote|written by|autor"),
    )
)  # fmt: skip
_SEVERAL = re.compile(r"(?<!\w)(?:all|each|every|compare|list|why|how many|alle|jede\w*|warum|toutes|tous|and)(?!\w)")
# Documents of any kind can have these facts, so the question must also name a kind of document or a sender.
_VAGUE = frozenset({"date", "due_date", "amount", "sender", "recipient"})
_KIND = re.compile(
    r"invoice|\bbill|receipt|rechnung|beleg|quittung|facture|factuur|fattura|factura|letter|brief|lettre|contract|vertrag"
    r"|statement|order|bestellung"
)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """The fact that a question asks for, and the words that name the document.

    `needs_sender` is true if the question must name the sender, because it does not name a type of document.
    """

    name: str
    words: tuple[str, ...]
    needs_sender: bool = False


def read_question(question: str) -> FactQuestion | None:
    """Return the fact that a question asks for. Returns None if it is not a short question about one fact."""
    text = fold(question)
    if len(text.split()) > MOST_WORDS or _SEVERAL.search(text):
        return None
    for name, pattern in _ASKED:
        match = pattern.search(text)
        if match:
            rest = _WORD.findall(
                f"{text[: match.start()]} {text[match.end() :]}".replace("\u2019s", "").replace("'s", "")
            )
            words = [one for one in rest if len(one) >= LEAST_WORD and not any(one in known for known in _IGNORED)]
            return FactQuestion(name, tuple(dict.fromkeys(words)), name in _VAGUE and not _KIND.search(text))
    return None


_IGNORED = (
    *(STOPWORDS.get(language, frozenset()) for language in ("en", "de", "fr", "nl", "es", "it")),
    frozenset({"what", "which", "was", "the", "tell", "show", "please", "ist", "die", "der", "pay", "paid", "did"}),
)


async def answer_from_facts(
    connection: Connection, owner: UUID, question: str, filters: Filters | None = None
) -> Answer | None:
    """Answer a question about a fact. Returns None for other questions, or if no document has a certain answer."""
    asked = read_question(question)
    chosen = (filters or Filters()).as_json()
    if not asked or not (asked.words or chosen):
        return None
    values = {"owner": owner, "chosen": Jsonb(chosen), "limited": bool(chosen)}
    values |= {"words": list(asked.words), "most": MOST_CANDIDATES}
    rows = await fetch_rows(connection, QUERIES.named_documents, values)
    rows = [row for row in rows if row["of_sender"] or not asked.needs_sender]
    best = max((row["score"] for row in rows), default=0)
    named = {row["id"]: row["title"] for row in rows if row["score"] == best}
    if not named or len(named) > MOST_ANSWERS or (best == 0 and not chosen):
        return None
    found = await chosen_facts(connection, list(named), [asked.name, "currency"])
    sure = {key: facts for key, facts in found.items() if asked.name in facts and _is_sure(facts[asked.name])}
    return await _answer(connection, asked.name, sure, named) if sure else None


def _is_sure(fact: FactView) -> bool:
    return fact.source != "metadata" and (fact.status != "found" or fact.confidence >= REVIEW)


async def _answer(
    connection: Connection, name: str, found: dict[UUID, dict[str, FactView]], titles: dict[UUID, str]
) -> Answer | None:
    statements: list[Statement] = []
    citations: list[Citation] = []
    values: dict[str, None] = {}
    for document, facts in found.items():
        citation = await _cite(connection, document, titles[document], facts[name], len(citations) + 1)
        if citation:
            citations.append(citation)
        elif facts[name].source != "person":
            continue
        value = shown_value(facts[name], facts.get("currency"))
        values[value] = None
        text = f"{_LABELS.get(name, name)}: {value} ({titles[document]})"
        numbers = [citation.number] if citation else []
        statements.append(Statement(text, numbers, verified=bool(citation)))
    if not statements:
        return None
    short = " / ".join(values)
    return Answer(found=True, statements=statements, citations=citations, made_by=LOCAL, cost_usd=0.0, short=short)


_LABELS = {
    "iban": "IBAN",
    "vat_id": "VAT id",
    "doi": "DOI",
    "isbn": "ISBN",
    "order_id": "Order number",
    "account_id": "Customer number",
    "due_date": "Due",
    "number": "Number",
    "date": "Date",
    "amount": "Amount",
    "sender": "Sender",
    "recipient": "Recipient",
    "author": "Author",
}


def shown_value(fact: FactView, currency: FactView | None = None) -> str:
    """Format the value of a fact for people, for example 19 April 2014 or € 717.97."""
    if fact.name in {"date", "due_date"} and re.fullmatch(r"\d{4}-\d\d-\d\d", fact.normalized or ""):
        return format_full_date(date.fromisoformat(fact.normalized or ""))
    if fact.name == "amount" and fact.normalized:
        return format_money(float(fact.normalized), currency.normalized if currency else None)
    return fact.value


async def _cite(connection: Connection, document: UUID, title: str, fact: FactView, number: int) -> Citation | None:
    """Cite the line of a chunk that contains the fact, on the fact's page if the page is known."""
    values = {"document": document, "page": fact.page}
    for row in await fetch_rows(connection, QUERIES.chunks_of_page, values):
        found = find_quote(fact.quote or fact.value, row["content"]) or find_quote(fact.value, row["content"])
        if found:
            line = _line_of(row["content"], found.start, found.end)
            page = fact.page or row["page_from"]
            return Citation(number, document, title, row["id"], page, line, verified=True)
    return None


def _line_of(content: str, start: int, end: int) -> str:
    first = content.rfind("\n", 0, start) + 1
    last = content.find("\n", end)
    line = content[first : len(content) if last < 0 else last].strip()
    return line if len(line) <= MOST_LINE else content[start:end]
