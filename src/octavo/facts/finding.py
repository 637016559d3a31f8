"""Finds all facts in a document's words, each with its position, its confidence and the result of cross-checks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from octavo.facts.confidence import confidence, is_checked, tier
from octavo.facts.dates import find_months
from octavo.facts.items import Items, find_items
from octavo.facts.mentions import Mention, PageRuns
from octavo.facts.money import Choice, Money, choose_money
from octavo.facts.parties import find_parties
from octavo.facts.references import choose_references
from octavo.facts.typed_values import find_marked
from octavo.facts.words import Box, Labels, Place, Sheet, Word, fold, load_vocabulary

FOUND, CHECKED = "found", "checked"
# The facts that a mapping can request.
FACTS = (
    *("number", "date", "due_date", "order_id", "account_id", "amount", "net", "tax", "due", "line_sum", "charges"),
    *("currency", "sender", "recipient", "iban", "vat_id"),
)
TABLE_FACTS = ("items",)
KINDS = ("invoice",)
_MOST_PAGES = 50
_LETTER, _LINE = 6.0, 12.0  # the width of a letter and the height of a line of plain text, in points
_TOP_SHARE = 0.5
_MOST_OTHERS = 12


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about a document.

    `value` is in standard form: 2018-03-05, 529.87, EUR. `quote` is the printed text. `status` is `checked` if a
    cross-check supports the value, and `found` otherwise. `place` is None in a text without pages. `evidence` names the
    class of evidence for which the confidence was measured.
    """

    name: str
    value: str
    quote: str
    confidence: float
    source: str
    status: str
    place: Place | None = None
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The values and items found in a document, and the signs that it is an invoice, such as an invoice number."""

    values: dict[str, Choice] = field(default_factory=dict[str, Choice])
    items: Items = field(default_factory=Items)
    identifiers: tuple[tuple[str, Choice], ...] = ()
    signs: frozenset[str] = frozenset()

    @property
    def is_invoice(self) -> bool:
        """Whether the document is probably an invoice, because enough signs of one were found.

        The signs must include a total, or a number and a date. A document that does not call itself an invoice needs
        more signs. Papers, books and forms usually have at most two signs.
        """
        counts = "total" in self.signs or {"number", "date"} <= self.signs
        return counts and len(self.signs) >= (_LEAST_SIGNS if "word" in self.signs else _LEAST_WITHOUT_WORD)


_HEADING_WORDS, _MOST_HEADING = 9, 40
_LEAST_SIGNS, _LEAST_WITHOUT_WORD = 4, 5


def read_document(sheets: Sequence[Sheet], labels: Labels = ()) -> Reading:
    """Find the values and items of an invoice in a document's pages, and the signs that it is an invoice.

    `labels` contains additional labels, grouped by the name of the fact.
    """
    page = PageRuns(sheets[:_MOST_PAGES], load_vocabulary(labels))
    items = find_items(page)
    money = choose_money(page, items.sum if items.is_sum_printed else None, set(items.lines))
    references = choose_references(page, set(items.lines))
    parties = find_parties(page)
    chosen = {
        "number": references.number,
        "date": references.date,
        "due_date": references.due_date,
        "order_id": references.order,
        "account_id": references.account,
        "amount": money.total,
        "net": money.net,
        "tax": money.tax,
        "due": money.due,
        "line_sum": money.line_sum,
        "charges": money.charges,
        "currency": money.currency,
        "sender": parties.seller,
        "recipient": parties.buyer,
    }
    values = {name: one for name, one in chosen.items() if one}
    identifiers = tuple(_identifiers(page))
    for name in ("iban", "vat_id"):
        own = _own(page, [one for kind, one in identifiers if kind == name], values)
        if own:
            values[name] = own
    return Reading(values, items, identifiers, frozenset(_signs(page, values, items, money)))


def _identifiers(page: PageRuns) -> Iterator[tuple[str, Choice]]:
    for line in page.lines:
        for index, run in enumerate(line.runs):
            for one in find_marked(run.text):
                mention = Mention(one.value, run, index, one.start, one.end)
                evidence = {"checksum" if one.is_checked else "form"}
                if _OF_CUSTOMER.search(_before(page, mention)):
                    evidence.add("customer")
                yield one.name, Choice(one.value, mention, frozenset(evidence))


_OF_CUSTOMER = re.compile(
    r"\b(?:ihre|your|votre|vos|uw|su|vostra|client|cliente|klant|kunde|kunden|customer|buyer|acheteur)\b"
)


def _before(page: PageRuns, mention: Mention) -> str:
    """Return the text to the left of a value on the same line."""
    runs = page.lines[mention.run.line].runs
    left = runs[mention.index - 1].folded if mention.index else ""
    return f"{left} {mention.run.folded[: mention.start]}"[-60:]


def _own(page: PageRuns, found: Sequence[Choice], values: dict[str, Choice]) -> Choice | None:
    """Choose the sender's IBAN or VAT id from all candidates in the document. Returns None if there is none.

    Candidates with a valid checksum are preferred, then the candidate nearest to the sender's name. Candidates that
    belong to the recipient are ignored.
    """
    buyer, seller = values.get("recipient"), values.get("sender")
    own = [one for one in found if "customer" not in one.evidence]
    others = [one for one in own if not (buyer and _is_of(one.mention, buyer.mention))]
    if not others:
        return None
    names = _places_of(page, seller.value) if seller else []
    best = max(others, key=lambda one: ("checksum" in one.evidence, -_distance(one.mention.place, names)))
    evidence = set(best.evidence)
    if len({one.value for one in found}) > 1:
        evidence.add("several")
    if _distance(best.mention.place, names) < _BESIDE_NAME:
        evidence.add("beside the name")
    return Choice(best.value, best.mention, frozenset(evidence))


_BESIDE_NAME = 90.0  # points


def _places_of(page: PageRuns, name: str) -> list[Place]:
    wanted = fold(name)
    found: list[Place] = []
    for line in page.lines:
        for run in line.runs:
            start = run.folded.find(wanted)
            if start >= 0:
                found.append(run.place(start, start + len(wanted)))
    return found


def _distance(place: Place, names: Sequence[Place]) -> float:
    """Return the distance from a position to the nearest of these names.

    The vertical distance counts in full, and the horizontal distance counts for a third.
    """

    def away(name: Place) -> float:
        sideways = max(place.box.left - name.box.right, name.box.left - place.box.right, 0.0)
        return abs(place.box.middle - name.box.middle) + sideways / 3 if place.page == name.page else 10_000.0

    return min(map(away, names), default=10_000.0)


def _is_of(mention: Mention, party: Mention) -> bool:
    """Whether an identifier, such as a VAT id, is printed in the block of text below a party's name."""
    down = mention.box.top - party.box.top
    beside = mention.box.left < party.box.right + 60 and party.box.left < mention.box.right + 60
    return mention.run.page == party.run.page and 0 <= down < 9 * party.box.height and beside


def _signs(page: PageRuns, values: dict[str, Choice], items: Items, money: Money) -> Iterator[str]:
    """Yield the names of the signs that the document is an invoice, such as an invoice number."""
    if _names_itself(page):
        yield "word"
    total = money.total
    if total and total.evidence & {"label", "sum", "lines"}:
        yield "total"
    if total and "sum" in total.evidence and total.evidence & {"label", "rate", "lines"}:
        yield "sum"
    if items.is_sum_printed and len(items.rows) > 0:
        yield "items"
    for name, forms in (
        ("number", {"label", "composed", "heading", "label above"}),
        ("date", {"label", "with number", "composed", "word"}),
    ):
        if name in values and values[name].evidence & forms:
            yield name
    for name in ("due_date", "iban", "vat_id"):
        if name in values:
            yield name
    parties = [values[name] for name in ("sender", "recipient") if name in values]
    if any("label" in one.evidence or "address window" in one.evidence for one in parties):
        yield "party"


def _names_itself(page: PageRuns) -> bool:
    """Whether the document calls itself an invoice: a short text on the first two pages contains a word for invoice, or
    the label of an invoice number.
    """
    for line in page.lines:
        if line.page > 2:  # noqa: PLR2004
            return False
        for run in line.runs:
            start = run.folded[:_MOST_HEADING]
            if len(run.words) <= _HEADING_WORDS and page.hits("kinds", start):
                return True
            if any(hit.role == "number" for hit in page.hits("numbers", start)):
                return True
    return False


# Facts


def find_facts(sheets: Sequence[Sheet], labels: Labels = ()) -> list[Fact]:
    """Return all facts in a document.

    For documents other than invoices, only dates and identifiers are returned, because they can be recognised without
    context.
    """
    return facts_of(read_document(sheets, labels), sheets)


def facts_of(reading: Reading, sheets: Sequence[Sheet]) -> list[Fact]:
    found: list[Fact] = []
    has_places = any(sheet.number for sheet in sheets)
    if reading.is_invoice:
        strong = confidence("kind", frozenset({"label"}))
        found.append(Fact("kind", "invoice", "", strong, "rule", CHECKED))
    names = _INVOICE_FACTS if reading.is_invoice else _OTHER_FACTS
    found += [_fact(name, reading.values[name], has_places=has_places) for name in names if name in reading.values]
    seen = {(one.name, one.value) for one in found}
    for name, choice in reading.identifiers:
        if (name, choice.value) not in seen and len(seen) < len(found) + _MOST_OTHERS:
            seen.add((name, choice.value))
            found.append(_fact(name, choice, has_places=has_places))
    if not any(one.name == "date" for one in found):
        found += _months(sheets, has_places=has_places)
    return found


_INVOICE_FACTS = (
    *("number", "date", "due_date", "order_id", "account_id", "amount", "currency"),
    *("sender", "recipient", "iban", "vat_id"),
)
_OTHER_FACTS = ("date", "iban", "vat_id")


def _fact(name: str, choice: Choice, *, has_places: bool) -> Fact:
    place = choice.mention.place
    source = "layout" if name in {"sender", "recipient"} else "rule"
    status = CHECKED if is_checked(choice.evidence) else FOUND
    sure = confidence(name, choice.evidence)
    shown = place if has_places else None
    return Fact(name, choice.value, place.quote, sure, source, status, shown, tier(name, choice.evidence))


def _months(sheets: Sequence[Sheet], *, has_places: bool) -> Iterator[Fact]:
    """Find the first month without a day near the top of the first page. For "May 2017", the value is 2017-05."""
    if not sheets:
        return
    page = PageRuns(sheets[:1], load_vocabulary())
    for line in page.lines:
        for run in line.runs:
            for one in find_months(run.text, page.notation):
                place = run.place(one.start, one.end)
                if place.box.bottom <= sheets[0].height * _TOP_SHARE and len(run.words) <= 6:  # noqa: PLR2004
                    sure = confidence("date", frozenset({"month"}))
                    yield Fact("date", one.value, place.quote, sure, "rule", FOUND, place if has_places else None)
                    return


def sheets_of_text(text: str) -> list[Sheet]:
    """Put a text without pages on a single page, numbered 0, so that it can be searched like a printed page.

    The positions on this page are never shown.
    """
    words: list[Word] = []
    for row, line in enumerate(text.splitlines()):
        column = 0
        for part in line.split(" "):
            if part:
                left, top = column * _LETTER, row * _LINE
                words.append(Word(part, Box(left, top, left + len(part) * _LETTER * 0.95, top + _LINE * 0.8)))
            column += len(part) + 1
    lines = text.count("\n") + 1
    return [Sheet(0, 600.0, lines * _LINE, tuple(words))]
