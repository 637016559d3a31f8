"""Uses patterns, labels and tables to find the values of a mapping's fields in a document, and runs the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property

from octavo.convert.mappings.mapping import FIELD_TYPES, Check, Field, Mapping, Otherwise
from octavo.convert.rules import patterns
from octavo.convert.rules.candidates import Candidate, CandidateFinder, LabelHit, choose, field_labels
from octavo.convert.rules.embedded_invoice import EmbeddedInvoice, as_day, open_embedded
from octavo.convert.rules.tables import CONFIDENCE as TABLE_CONFIDENCE
from octavo.convert.rules.tables import Table, find_by_rules, find_table
from octavo.convert.values import CheckResult, Conversion, Status, Suggestion, Value
from octavo.facts.confidence import REVIEW, is_checked
from octavo.facts.confidence import confidence as confidence_of
from octavo.facts.dates import writes_month_first
from octavo.facts.finding import Reading, read_document
from octavo.facts.layout import Line, every_value, lines_of, locate_text, locate_value, text_in_columns
from octavo.facts.typed_values import usual_decimal
from octavo.facts.words import Notation, Place, Sheet

_NEAR, _COMMON, _GUESS = 0.85, 0.6, 0.4
_CONFIRMED, _DOUBTED = 0.3, 0.75
_DOLLARS = {"CAD", "AUD", "NZD", "HKD", "SGD", "MXN"}
_NOT_ON_PAGE = 0.8
_LEAST_EVIDENCE = 2
_TOP_SHARE = 0.35
_MOST_TITLE = 80


def convert(sheets: Sequence[Sheet], mapping: Mapping, attachments: Sequence[tuple[str, bytes]] = ()) -> Conversion:
    """Find the values of all fields.

    In the result, `missing` lists the required fields without a value, and the tables whose header was found but
    whose rows were not.
    """
    document = _Document(sheets, mapping)
    embedded = open_embedded(mapping, attachments)
    values = list(document.from_embedded(embedded)) if embedded else list(document.values())
    made = finish(mapping, values, source="embedded" if embedded else "rules")
    missing = made.missing if embedded else (*made.missing, *document.unread_tables(made))
    fits = document.fits() and (embedded is not None or document.has_evidence(made))
    return replace(made, missing=missing, fits=fits)


def finish(mapping: Mapping, values: Sequence[Value], source: str) -> Conversion:
    """Run the checks, set the status of each value, and return the conversion.

    The status depends on the confidence and the check results. A failed check is accepted if a person confirmed all
    values that it uses.
    """
    checks = tuple(
        replace(one, accepted=one.holds is False and _is_confirmed(check, values))
        for check, one in zip(mapping.checks, _run_checks(mapping, values), strict=True)
    )
    settled = tuple(_settle(one, mapping.checks, checks) for one in values)
    names = {one.name for one in values if not one.table} | {one.table for one in values if one.table}
    missing = tuple(field.name for field in mapping.fields if field.required and field.name not in names)
    return Conversion(mapping.name, settled, checks, missing, source)


def _run_checks(mapping: Mapping, values: Sequence[Value]) -> tuple[CheckResult, ...]:
    lookup = _values_by_name(values)
    return tuple(CheckResult(check.text, check.holds(lookup.get)) for check in mapping.checks)


def _is_confirmed(check: Check, values: Sequence[Value]) -> bool:
    """Whether a person confirmed all values that a check uses."""
    names = set(check.names)
    return all(one.is_confirmed for one in values if _check_name(one) in names)


def _check_name(value: Value) -> str:
    return f"{value.table}.{value.name}" if value.table else value.name


def _values_by_name(values: Sequence[Value]) -> dict[str, str]:
    """Map the names of fields to their values, and `table.column` to the sum of the column."""
    found = {one.name: one.value for one in values if not one.table}
    sums: dict[str, Decimal] = {}
    for one in values:
        try:
            number = Decimal(one.value) if one.table else None
        except InvalidOperation:
            continue
        if number is not None:
            sums[f"{one.table}.{one.name}"] = sums.get(f"{one.table}.{one.name}", Decimal(0)) + number
    return found | {name: str(total) for name, total in sums.items()}


def _outcomes(value: Value, checks: Sequence[Check], checked: Sequence[CheckResult]) -> list[bool | None]:
    name = _check_name(value)
    both = zip(checks, checked, strict=True)
    return [result.holds for check, result in both if name in check.names and not result.accepted]


def _settle(value: Value, checks: Sequence[Check], checked: Sequence[CheckResult]) -> Value:
    """Set the status of a value, such as `checked` or `needs_review`.

    A confirmed value stays confirmed, even if a check fails.
    """
    if value.status == Status.CONFIRMED:
        return value
    outcomes = _outcomes(value, checks, checked)
    if value.confidence < REVIEW or False in outcomes:
        return replace(value, status=Status.NEEDS_REVIEW)
    if True in outcomes:
        return replace(value, status=Status.CHECKED)
    return value if value.status != Status.NEEDS_REVIEW else replace(value, status=Status.FOUND)


def _weigh(value: Value, checks: Sequence[Check], checked: Sequence[CheckResult]) -> Value:
    """Raise the confidence of a value if one of its checks passes. Otherwise, lower it if a check fails."""
    outcomes = _outcomes(value, checks, checked)
    confidence = min(value.confidence, 0.99) if value.confidence < 1 else 1.0
    if True in outcomes:
        confidence = 1 - (1 - confidence) * _CONFIRMED
    elif False in outcomes:
        confidence *= _DOUBTED
    return replace(value, confidence=round(confidence, 3))


class _Document:
    """Converts one document with one mapping."""

    def __init__(self, sheets: Sequence[Sheet], mapping: Mapping) -> None:
        self._sheets = sheets
        self._mapping = mapping
        self._lines = lines_of(sheets)
        self._finder = field_labels(mapping)

    @cached_property
    def _notation(self) -> Notation:
        options = self._mapping.options
        texts = [run.text for line in self._lines for run in line.runs]
        month_first = writes_month_first(texts)
        if month_first is None:
            month_first = self._common_currency() == "USD"
        return Notation(options.decimal or usual_decimal(texts), month_first, options.date_formats)

    @cached_property
    def _hits(self) -> dict[tuple[int, int], list[LabelHit]]:
        return {
            (line.number, index): hits
            for line in self._lines
            for index, run in enumerate(line.runs)
            if (hits := self._finder.find(run))
        }

    @cached_property
    def _text(self) -> patterns.PageText:
        return patterns.prepare(text_in_columns(self._sheets, self._lines), self._mapping.options)

    def fits(self) -> bool:
        """Whether the document contains all keywords of the mapping and none of its excluded keywords."""
        mapping = self._mapping
        if not mapping.keywords and not mapping.exclude_keywords:
            return True
        return patterns.fits(mapping, text_in_columns(self._sheets, self._lines))

    @cached_property
    def _reading(self) -> Reading:
        return read_document(self._sheets, self._mapping.fact_labels)

    def has_evidence(self, made: Conversion) -> bool:
        """Whether there is enough evidence that the mapping is meant for documents of this type.

        - A mapping with `evidence`: The document must be recognised as an invoice.
        - A mapping with keywords, or with fewer than two required fields: No more evidence is needed.
        - Other mappings: At least two required values must be found by their labels or patterns, not guessed. If no
          required value is found at all, returns true, and the caller decides.
        """
        if self._mapping.evidence:
            return self._reading.is_invoice
        required = {one.name for one in self._mapping.singles if one.required}
        if self._mapping.keywords or len(required) < _LEAST_EVIDENCE:
            return True
        found = [one for one in made.values if one.name in required and not one.table]
        sure = [one for one in found if one.confidence > _COMMON]
        return not found or len(sure) >= _LEAST_EVIDENCE

    # By embedded XML

    def from_embedded(self, embedded: EmbeddedInvoice) -> Iterator[Value]:
        """Yield the values of the embedded invoice. Values that are not in their type's standard form are left out."""
        for value, kind in self._exact_values(embedded):
            if FIELD_TYPES[kind].accepts(value.value):
                yield value

    def _exact_values(self, embedded: EmbeddedInvoice) -> Iterator[tuple[Value, str]]:
        for field in self._mapping.fields:
            if field.is_table:
                for number, row in enumerate(embedded.rows(field.embedded), 1):
                    for column in field.columns:
                        if text := embedded.cell(row, column.embedded):
                            yield self._exact(column.name, text, column.type, field.name, number), column.type
            elif text := embedded.single(field.embedded):
                yield self._exact(field.name, text, field.type), field.type

    def _exact(self, name: str, text: str, kind: str, table: str | None = None, row: int | None = None) -> Value:
        value = as_day(text) if kind == "date" else patterns.as_type(text, kind, Notation(".")) or text
        place = locate_value(self._lines, value, kind, self._notation)
        field = self._mapping.field(name)
        # A required value should also be printed on the page.
        sure = 1.0 if place or table or not (field and field.required) else _NOT_ON_PAGE
        return Value(name, value, sure, place, Status.CHECKED if place else Status.FOUND, table, row)

    # By rules

    def values(self) -> Iterator[Value]:
        tables = {field.name: self._table(field) for field in self._mapping.tables}
        taken = {number for table in tables.values() for number in table.taken}
        hits = {place: found for place, found in self._hits.items() if place[0] not in taken}
        finder = CandidateFinder(self._lines, hits, self._notation)
        facts = {one.name: value for one in self._mapping.singles if (value := self._fact(one))}
        others = [one for one in self._mapping.singles if not one.fact or one.patterns]
        candidates = {field.name: list(self._candidates(field, finder)) for field in others}
        rows = [value for name, table in tables.items() for value in _rows(name, table)]
        rows += [value for one in self._mapping.tables if one.fact and not one.rules for value in self._items(one)]
        chosen = choose(candidates, self._mapping.checks, _values_by_name([*rows, *facts.values()]))
        made: list[Value] = []
        for field in self._mapping.singles:
            found = chosen.get(field.name) or (None if field.fact else self._other(field, chosen, taken))
            if found:
                made.append(Value(field.name, found.value, found.confidence, found.place))
            elif field.name in facts:
                made.append(facts[field.name])
            elif field.value is not None:
                place = locate_value(self._lines, field.value, field.type, self._notation)
                made.append(Value(field.name, field.value, 1.0, place))
        yield from self._weighed([*made, *rows])

    def _weighed(self, values: Sequence[Value]) -> Iterator[Value]:
        """Adjust the confidence of values found by the mapping's own rules: raise it if a check passes, lower it if one
        fails. Values that come from facts keep their confidence, because it was measured.
        """
        checks = _run_checks(self._mapping, values)
        measured = {one.name for one in self._mapping.fields if one.fact}
        for one in values:
            yield one if (one.table or one.name) in measured else _weigh(one, self._mapping.checks, checks)

    def _fact(self, field: Field) -> Value | None:
        choice = self._reading.values.get(field.fact) if field.fact else None
        if choice is None or not FIELD_TYPES[field.type].accepts(choice.value):
            return None
        return _measured(field.name, choice.value, choice.mention.place, field.fact or "", choice.evidence)

    def _items(self, field: Field) -> Iterator[Value]:
        items = self._reading.items
        for number, row in enumerate(items.rows, 1):
            evidence = items.evidence(row)
            for column in field.columns:
                cell = row.cells.get(column.name)
                if cell and FIELD_TYPES[column.type].accepts(cell.value):
                    made = _measured(column.name, cell.value, cell.place, f"items.{column.name}", evidence)
                    yield replace(made, table=field.name, row=number)

    def unread_tables(self, made: Conversion) -> Iterator[str]:
        """Yield the names of tables whose header was found but whose rows were not. A person should review them."""
        for field in self._mapping.tables:
            if field.fact and not field.rules and self._reading.items.is_unread and field.name not in made.missing:
                yield field.name

    def _table(self, field: Field) -> Table:
        if field.fact and not field.rules:
            return Table(taken=set(self._reading.items.lines))
        if field.rules:
            return find_by_rules(self._text, field, self._notation)
        return find_table(self._lines, field, self._notation, self._ends_table)

    def _ends_table(self, line: Line) -> bool:
        """Whether a line ends a table.

        True if it contains an amount and a text that starts with the label of an amount field, such as "Total".
        """
        amounts = {field.name for field in self._mapping.singles if field.type == "amount"}
        hits = (self._hits.get((line.number, index), ()) for index in range(len(line.runs)))
        if not any(hit.field in amounts and hit.start == 0 for found in hits for hit in found):
            return False
        return any(True for _ in every_value([line], "amount", self._notation))

    def _candidates(self, field: Field, finder: CandidateFinder) -> Iterator[Candidate]:
        if field.patterns:
            found = patterns.find_by_patterns(self._text, field, self._notation)
            if found and found.place:
                yield Candidate(found.value, found.place, patterns.CONFIDENCE)
        yield from finder.of(field)

    def _other(self, field: Field, chosen: dict[str, Candidate], taken: set[int]) -> Candidate | None:
        """Find a value that labels and patterns did not find: next to another value, or with the mapping's fallback.

        Returns None if there is no such value.
        """
        beside = chosen.get(field.near or "")
        found = self._beside(field, beside.place) if beside else None
        if found or field.otherwise is None:
            return found
        match field.otherwise:
            case Otherwise.FIRST:
                return next((Candidate(value, place, _GUESS) for place, value in self._every(field, set())), None)
            case Otherwise.LARGEST:
                found_all = [(place, value) for place, value in self._every(field, taken) if "." in value]
                best = max(found_all, key=lambda one: Decimal(one[1]), default=None)
                return Candidate(best[1], best[0], _GUESS) if best else None
            case Otherwise.COMMON:
                return self._common(field)
            case Otherwise.TOP:
                return self._top()

    def _every(self, field: Field, taken: set[int]) -> Iterator[tuple[Place, str]]:
        return every_value([line for line in self._lines if line.number not in taken], field.type, self._notation)

    def _beside(self, field: Field, place: Place) -> Candidate | None:
        """Find the nearest value of the field's type on the same line as a position. Returns None if there is none."""
        lines = [line for line in self._lines if line.page == place.page and _is_level(line, place)]
        found = list(every_value(lines, field.type, self._notation))
        if not found:
            return None
        where, value = min(found, key=lambda one: abs(one[0].box.left - place.box.left))
        return Candidate(self._known_dollar(value, where), where, _NEAR)

    def _common(self, field: Field) -> Candidate | None:
        found = list(self._every(field, set()))
        if not found:
            return None
        value, _ = Counter(value for _, value in found).most_common(1)[0]
        place = next(place for place, one in found if one == value)
        return Candidate(self._known_dollar(value, place), place, _COMMON)

    def _known_dollar(self, value: str, place: Place) -> str:
        """Return the currency of a value.

        A plain $ sign means USD, unless the document names exactly one other dollar currency.
        """
        if value != "USD" or place.quote != "$":
            return value
        named = {one for _, one in every_value(self._lines, "currency", self._notation)} & _DOLLARS
        return named.pop() if len(named) == 1 else value

    def _common_currency(self) -> str | None:
        texts = (run.text for line in self._lines for run in line.runs)
        found = Counter(one.value for text in texts for one in FIELD_TYPES["currency"].find(text, Notation()))
        return found.most_common(1)[0][0] if found else None

    def _top(self) -> Candidate | None:
        """Guess the sender's name: the largest text, other than labels, at the top of the first page."""
        if not self._lines:
            return None
        border = self._sheets[0].height * _TOP_SHARE
        runs = [
            run
            for line in self._lines
            if line.page == self._lines[0].page and line.box.bottom <= border
            for index, run in enumerate(line.runs)
            if (line.number, index) not in self._hits and _is_name(run.text)
        ]
        best = max(runs, key=lambda run: (round(run.box.height), -run.line), default=None)
        return Candidate(best.text, best.place(0, len(best.text)), _GUESS) if best else None


def _is_level(line: Line, place: Place) -> bool:
    return line.box.top <= place.box.middle <= line.box.bottom


def _is_name(text: str) -> bool:
    return len(text) <= _MOST_TITLE and sum(map(str.isalpha, text)) > len(text) / 2


def _rows(name: str, table: Table) -> Iterator[Value]:
    for number, row in enumerate(table.rows, 1):
        for column, cell in row.items():
            yield Value(column, cell.value, TABLE_CONFIDENCE, cell.place, table=name, row=number)


def _measured(name: str, value: str, place: Place, fact: str, evidence: frozenset[str]) -> Value:
    status = Status.CHECKED if is_checked(evidence) else Status.FOUND
    return Value(name, value, confidence_of(fact, evidence), place, status, calibrated=True)


_VERIFIED, _UNVERIFIED = 0.7, 0.3


@dataclass(frozen=True, slots=True)
class MissingField:
    """A field without a value, in the format that is sent to a model."""

    name: str
    type: str
    labels: tuple[str, ...]


def missing_fields(conversion: Conversion, mapping: Mapping) -> list[MissingField]:
    """Return the fields without a value, except tables. Required fields come first."""
    missing = [field for field in mapping.singles if conversion.single(field.name) is None]
    missing.sort(key=lambda field: not field.required)
    return [MissingField(field.name, field.type, (*field.labels, *field.weak_labels)[:5]) for field in missing]


def with_suggestions(
    conversion: Conversion, mapping: Mapping, sheets: Sequence[Sheet], suggestions: Sequence[Suggestion]
) -> Conversion:
    """Add suggestions for fields that have no value. Values that were already found are not changed."""
    added = list(_added(conversion, mapping, lines_of(sheets), suggestions))
    if not added:
        return conversion
    order = {field.name: index for index, field in enumerate(mapping.fields)}
    values = sorted((*conversion.values, *added), key=lambda one: order[one.table or one.name])
    return finish(mapping, values, source=f"{conversion.source} and model")


def _added(
    conversion: Conversion, mapping: Mapping, lines: Sequence[Line], suggestions: Sequence[Suggestion]
) -> Iterator[Value]:
    taken = {one.name for one in conversion.values if not one.table}
    for one in suggestions:
        field = mapping.field(one.name)
        if field is None or field.is_table or one.name in taken or not FIELD_TYPES[field.type].accepts(one.value):
            continue
        taken.add(one.name)
        yield _value(field, one, lines)


def _value(field: Field, one: Suggestion, lines: Sequence[Line]) -> Value:
    """Make a value from a suggestion. Its confidence is low, so that a person reviews it.

    The value has a position only if the document contains the quote and the quote contains the value.
    """
    place = locate_text(lines, one.quote, one.page) or locate_text(lines, one.quote)
    is_there = place is not None and _contains_value(field, one, place.quote)
    return Value(field.name, one.value, _VERIFIED if is_there else _UNVERIFIED, place if is_there else None)


def _contains_value(field: Field, one: Suggestion, quote: str) -> bool:
    if field.type in {"text", "identifier"}:
        return one.value in quote
    notations = (Notation(), Notation(month_first=True), Notation(","), Notation("."))
    find = FIELD_TYPES[field.type].find
    return any(match.value == one.value for notation in notations for match in find(quote, notation))
