"""Chooses the net, tax and total amounts of a document. Amounts that add up are preferred, and labels break ties.

For example, "Gesamtbetrag der Zuschläge 0,00" (German: total surcharges) has the label of a total. The document also
contains 473.00, 56.87 and their sum 529.87, so 529.87 is chosen as the total.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from octavo.facts.mentions import Mention, NearText, PageRuns
from octavo.facts.typed_values import FINDERS
from octavo.facts.words import Notation, RoleHit

Roles = dict[str, float]
_CENT = Decimal("0.011")
_CENT_DIGITS = 2
_MOST_VALUES = 250
_MOST_SUMS = 40
_WHOLE = 1.0  # added to the score of a sum over several tax rates
_MOST_RATE = Decimal("0.45")
# Words that do not change the meaning of a label.
_FILLER = re.compile(
    r"(?<![^\W\d_])(?:eur|usd|gbp|chf|in|the|this|for|of|der|die|des|den|dieser|de|la|le|les|del|della|di|du|da|do|van"
    r"|het|en)(?![^\W\d_])"
)
_SENTENCE = 9  # words; a label is shorter
_PERCENT = re.compile(r"(?<![\d.,])(\d{1,2}(?:[.,]\d{1,3})?)\s?%")
_ADDS_UP, _RATE, _LINES, _CONFLICT = 2.0, 0.8, 1.2, 0.8
_WHOLE_LABEL, _HALF_LABEL = 0.7, 0.4
_ROLES = ("net", "tax", "total", "due", "line_sum", "other")


@dataclass(frozen=True, slots=True)
class Choice:
    """The value that was chosen for a fact.

    `evidence` names the reasons for the choice, which determine its confidence.
    """

    value: str
    mention: Mention
    evidence: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Money:
    total: Choice | None = None
    net: Choice | None = None
    tax: Choice | None = None
    due: Choice | None = None
    line_sum: Choice | None = None
    charges: Choice | None = None
    currency: Choice | None = None


@dataclass(slots=True)
class Amount:
    """All occurrences of one amount in a document.

    `roles` maps each role, such as net or total, to a score for how well the labels fit it.
    """

    value: Decimal
    mentions: list[Mention] = field(default_factory=list[Mention])
    roles: Roles = field(default_factory=dict[str, float])
    by_role: dict[str, tuple[float, Mention]] = field(default_factory=dict[str, tuple[float, Mention]])

    @property
    def is_item(self) -> bool:
        """Whether the amount is printed only in the table of items."""
        return self.roles.keys() == {"item"}

    @property
    def can_be_extra(self) -> bool:
        """Whether the amount can be an extra charge such as shipping.

        True if it is not an item and has no clear label as net amount, total or sum of the items.
        """
        return not self.is_item and all(
            self.roles.get(role, 0.0) < _WHOLE_LABEL for role in ("net", "total", "line_sum")
        )

    def add(self, mention: Mention, roles: Sequence[tuple[str, float]]) -> None:
        self.mentions.append(mention)
        for role, score in roles:
            if score >= self.by_role.get(role, (0.0, mention))[0]:
                self.by_role[role] = score, mention
            self.roles[role] = max(self.roles.get(role, 0.0), score)

    def fit(self, *roles: str) -> float:
        """Return how well the labels of the amount fit one of these roles.

        The result is negative if they fit only other roles.
        """
        own = max((self.roles.get(role, 0.0) for role in roles), default=0.0)
        others = max((score for role, score in self.roles.items() if role not in roles), default=0.0)
        return own if own >= 0.3 else own - _CONFLICT * others  # noqa: PLR2004

    def best(self, *roles: str) -> Mention:
        found = [self.by_role[role] for role in roles if role in self.by_role]
        return max(found, key=lambda one: one[0])[1] if found else self.mentions[-1]


def choose_money(page: PageRuns, line_sum: Decimal | None, in_items: set[int]) -> Money:
    """Choose the total and the other amounts of an invoice.

    `line_sum` is the sum of the items. `in_items` contains the numbers of the lines that contain items.
    """
    amounts = collect_amounts(page, in_items)
    if not amounts:
        return Money(currency=_currency(page, None))
    rates = _rates(page)
    sums = _settled_sums(list(_sums(amounts, rates)), line_sum)
    best = max(sums, key=lambda one: one.score(line_sum), default=None)
    single = max(amounts.values(), key=lambda one: _single_score(one, line_sum))
    if best and best.score(line_sum) >= max(_single_score(single, line_sum) + 0.3, 2.0):
        money = _from_sum(best, sums, amounts, line_sum)
    else:
        money = _from_single(single, amounts, line_sum)
    lines = _line_sum(amounts, line_sum)
    return replace(money, line_sum=lines, currency=_currency(page, money.total))


def collect_amounts(page: PageRuns, in_items: set[int]) -> dict[Decimal, Amount]:
    """Collect the amounts in the document by value, with the roles that their labels suggest, such as total.

    Amounts in item rows get only the role `item`. If there are very many amounts, only those with the best labels are
    returned.
    """
    found: dict[Decimal, Amount] = {}
    for mention in page.every("amount"):
        if not is_money(page, mention):
            continue
        value = Decimal(mention.value)
        amount = found.setdefault(value, Amount(value))
        roles = [("item", 0.9)] if mention.run.line in in_items else list(_roles(page, mention))
        amount.add(mention, roles)
    if len(found) > _MOST_VALUES:
        kept = sorted(found.values(), key=lambda one: -max(one.roles.values(), default=0.0))[:_MOST_VALUES]
        found = {one.value: one for one in kept}
    return found


def is_money(page: PageRuns, mention: Mention) -> bool:
    """Whether a number can be an amount of money: it has two decimals, or a currency next to it.

    If other amounts in the document have decimals, a number without decimals must be separate from other text, as in
    "53 EUR".
    """
    fraction = mention.value.partition(".")[2]
    if len(fraction) >= _CENT_DIGITS:
        return len(fraction) == _CENT_DIGITS
    start, end = max(mention.start - 5, 0), mention.end + 5
    signs = FINDERS["currency"](mention.run.text[start:end], Notation())
    if not signs:
        return False
    return (not fraction and page.notation.decimal is None) or not any(map(str.isalnum, _around(mention)))


def _around(mention: Mention) -> str:
    """Return the text before and after a number, without currencies."""
    parts = (mention.run.text[: mention.start], mention.run.text[mention.end :])
    return " ".join(_without_currencies(part) for part in parts)


def _without_currencies(text: str) -> str:
    for one in reversed(FINDERS["currency"](text, Notation())):
        text = text[: one.start] + " " + text[one.end :]
    return text


def _roles(page: PageRuns, mention: Mention) -> Iterator[tuple[str, float]]:
    before = page.before(mention, "amount")
    left = before or page.left_of(mention, "amount", most=6)
    row = classify(page, left) if left else None
    above = page.above(mention, "amount")
    column = classify(page, above) if above else None
    is_last = not any(
        is_money(page, one) and (one.index, one.start) > (mention.index, mention.start)
        for one in _on_line(page, mention)
    )
    if row and (is_last or before):
        yield row[0], row[1]
    if column and column[0] != "other":
        # The header of a column counts less than the label of a row, but more if the row is a sum.
        yield column[0], column[1] * (0.75 if row and row[0] != "other" and not before else 0.5)
    elif row and not is_last and not before:
        yield row[0], row[1] * 0.4


def _on_line(page: PageRuns, mention: Mention) -> Iterator[Mention]:
    for index, run in enumerate(page.lines[mention.run.line].runs):
        yield from page.of_run("amount", run, index)


def classify(page: PageRuns, near: NearText) -> tuple[str, float] | None:
    """Return the role of an amount, such as total, according to a text near it, and a score.

    The score depends on how much of the text the label covers. Returns None if the text contains no known label.
    """
    hits = page.hits("amounts", near.folded)
    if not hits:
        return None
    found = {hit.role for hit in hits}
    words = near.folded.split()
    fillers = [*page.hits("kinds", near.folded), *_FILLER.finditer(near.folded)]
    spans = [(one.start, one.end) if isinstance(one, RoleHit) else one.span() for one in fillers]
    free = sum(near.folded[start:end].isalpha() * (end - start) for start, end in spans)
    letters = max(sum(map(str.isalpha, near.folded)) - free, 1)
    covered = sum(sum(map(str.isalpha, near.folded[hit.start : hit.end])) for hit in hits) / letters
    for pattern in (page.vocabulary.without_tax, page.vocabulary.with_tax):
        covered += sum(len(one[0]) for one in pattern.finditer(near.folded)) / letters
    strength = 1.0 if covered >= _WHOLE_LABEL else 0.7 if covered >= _HALF_LABEL else 0.4
    if len(words) > _SENTENCE:
        strength = min(strength, 0.3)
    return _role(page, found, near.folded), strength


def _role(page: PageRuns, found: set[str], folded: str) -> str:
    if "other" in found:
        return "other"
    if "line_sum" in found:
        return "line_sum"
    if page.vocabulary.without_tax.search(folded):
        return "net"
    if page.vocabulary.with_tax.search(folded) and found & {"total", "due"}:
        return "total"
    return next(role for role in ("net", "tax", "due", "total") if role in found)


def _rates(page: PageRuns) -> set[Decimal]:
    texts = [*page.texts, *(" ".join(run.text for run in line.runs) for line in page.lines)]
    return {Decimal(rate.replace(",", ".")) / 100 for text in texts for rate in _PERCENT.findall(text)}


@dataclass(frozen=True, slots=True)
class Sum:
    """Amounts of the document that add up: net + tax = total or, with an extra charge such as shipping, net + tax +
    extra = total.
    """

    net: Amount
    tax: Amount
    total: Amount
    has_rate: bool
    extra: Amount | None = None
    is_whole: bool = False

    @property
    def is_trivial(self) -> bool:
        return self.tax.value == 0

    @property
    def labels(self) -> float:
        return self.net.fit("net", "line_sum") + self.tax.fit("tax") + 1.3 * self.total.fit("total", "due")

    def score(self, line_sum: Decimal | None) -> float:
        lines = _LINES if line_sum is not None and line_sum in {self.net.value, self.total.value} else 0.0
        size = 0.02 * min(len(str(abs(self.total.value))), 10)
        twice = 0.05 * min(len(self.total.mentions), 4)
        adds_up = 0.6 if self.is_trivial else _ADDS_UP - (0.5 if self.extra else 0.0)
        adds_up += _WHOLE if self.is_whole else 0.0
        return self.labels + adds_up + (_RATE if self.has_rate and not self.is_trivial else 0.0) + lines + size + twice


def _sums(amounts: Mapping[Decimal, Amount], rates: set[Decimal]) -> Iterator[Sum]:
    totals = [one for one in amounts.values() if one.fit("total", "due") >= 0.3]  # noqa: PLR2004
    parts = [one for one in amounts.values() if not one.is_item]
    for net in parts:
        if net.value == 0:
            continue
        for tax in parts:
            if abs(tax.value) > abs(net.value) * _MOST_RATE:
                continue
            # A minus sign at the end of the previous line is lost, so a positive tax may belong to a negative net.
            signed = -tax.value if net.value < 0 < tax.value else tax.value
            has_rate = any(abs(abs(net.value) * rate - abs(tax.value)) <= Decimal("0.02") for rate in rates if rate)
            for total in _near(net.value + signed, amounts):
                # Without tax, net and total are one amount. A subtotal is then no total.
                if tax.value or amounts[total].fit("total", "due") >= 0:
                    yield Sum(net, tax, amounts[total], has_rate)
            if net.fit("net") > 0 and tax.fit("tax") > 0:
                yield from _with_extra(net, tax, totals, amounts, has_rate=has_rate)


def _settled_sums(sums: Sequence[Sum], line_sum: Decimal | None) -> list[Sum]:
    """Drop each sum with an extra amount if a sum without one has the same total.

    Also sets `is_whole` for sums that combine several tax rates.
    """
    plain = sorted((one for one in sums if not one.extra), key=lambda one: -one.score(line_sum))
    explained = {one.total.value for one in plain if not one.is_trivial and one.labels > 0.5}  # noqa: PLR2004
    top = [one for one in plain[:_MOST_SUMS] if not one.is_trivial]
    parts = {(one.net.value, one.total.value) for one in top}
    whole = {
        (first[0] + second[0], first[1] + second[1]) for first in parts for second in parts if first[0] < second[0]
    }
    marked = [replace(one, is_whole=(one.net.value, one.total.value) in whole) for one in plain]
    return [*marked, *(one for one in sums if one.extra and one.total.value not in explained)]


def _with_extra(
    net: Amount, tax: Amount, totals: Sequence[Amount], amounts: Mapping[Decimal, Amount], *, has_rate: bool
) -> Iterator[Sum]:
    """Yield sums that add up only with one additional amount, such as shipping, a second tax, or a discount."""
    for total in totals:
        rest = total.value - net.value - tax.value
        extra = amounts.get(rest) or amounts.get(-rest)
        own = {net.value, tax.value, total.value}
        if rest and extra and extra.value not in own and extra.can_be_extra:
            yield Sum(net, tax, total, has_rate, extra)


def _near(value: Decimal, amounts: Mapping[Decimal, Amount]) -> Iterator[Decimal]:
    for cent in (Decimal(0), Decimal("0.01"), Decimal("-0.01")):
        if value + cent in amounts:
            yield value + cent
            return


def _single_score(one: Amount, line_sum: Decimal | None) -> float:
    """Score how likely an amount is to be the total, regardless of whether it is the sum of other amounts."""
    is_net = one.roles.get("net", 0.0) >= _WHOLE_LABEL and one.roles.get("total", 0.0) < 1
    lines = _LINES if line_sum is not None and one.value == line_sum and not is_net else 0.0
    size = 0.02 * min(len(str(abs(one.value))), 10) + (0.1 if one.value > 0 else 0.0)
    return 1.3 * max(one.fit("total"), 0.9 * one.fit("due")) + lines + size


def _from_sum(best: Sum, sums: Sequence[Sum], amounts: Mapping[Decimal, Amount], line_sum: Decimal | None) -> Money:
    evidence: set[str] = set()
    if not best.is_trivial:
        evidence.add("sum")
    if best.has_rate and not best.is_trivial:
        evidence.add("rate")
    if best.extra:
        evidence.add("extra")
    if line_sum is not None and line_sum in {best.net.value, best.total.value}:
        evidence.add("lines")
    rivals = [one for one in sums if one.total.value != best.total.value and not one.is_trivial]
    if any(one.score(line_sum) > best.score(line_sum) - 0.7 for one in rivals):
        evidence.add("rival")
    shared = frozenset(evidence)
    net = Choice(str(best.net.value), best.net.best("net"), shared | _label(best.net, "net"))
    lost_sign = best.net.value < 0 < best.tax.value
    tax_value = -best.tax.value if lost_sign else best.tax.value
    tax = Choice(str(tax_value), best.tax.best("tax"), shared | _label(best.tax, "tax"))
    total = _total(best.total, shared, amounts)
    charges = None
    if best.extra:
        rest = Decimal(total.value) - best.net.value - best.tax.value
        charges = Choice(str(rest), best.extra.best("other"), shared)
    return Money(total, net, tax, _due(total, amounts), charges=charges)


def _from_single(best: Amount, amounts: Mapping[Decimal, Amount], line_sum: Decimal | None) -> Money:
    if best.fit("total", "due") <= 0 and best.value != line_sum:
        return Money()
    evidence = {"lines"} if best.value == line_sum else set[str]()
    labelled = [one for one in amounts.values() if one.fit("total", "due") >= _WHOLE_LABEL]
    if any(one.value != best.value for one in labelled):
        evidence.add("rival")
    parts = {role: _only(amounts, role) for role in ("net", "tax")}
    net, tax = parts["net"], parts["tax"]
    if net and tax and abs(net.value + tax.value - best.value) > _CENT:
        evidence.add("contradiction")
    total = _total(best, frozenset(evidence), amounts)
    made = {
        role: Choice(str(one.value), one.best(role), frozenset({"label", "alone"}))
        for role, one in parts.items()
        if one
    }
    return Money(total, made.get("net"), made.get("tax"), _due(total, amounts))


def _only(amounts: Mapping[Decimal, Amount], role: str) -> Amount | None:
    found = sorted((one for one in amounts.values() if one.fit(role) >= _WHOLE_LABEL), key=lambda one: -one.fit(role))
    return found[0] if found else None


def _label(one: Amount, *roles: str) -> frozenset[str]:
    fit = one.fit(*roles)
    return frozenset({"label"} if fit >= _WHOLE_LABEL else {"weak label"} if fit >= 0.3 else set())  # noqa: PLR2004


def _total(best: Amount, evidence: frozenset[str], amounts: Mapping[Decimal, Amount]) -> Choice:
    del amounts
    return Choice(str(best.value), best.best("total", "due"), evidence | _label(best, "total", "due"))


def _due(total: Choice, amounts: Mapping[Decimal, Amount]) -> Choice | None:
    """Return the amount that is still to be paid, if it differs from the total, for example after a deposit.

    Returns None if no such amount is printed.
    """
    found = [one for one in amounts.values() if one.fit("due") >= _WHOLE_LABEL and str(one.value) != total.value]
    best = max(found, key=lambda one: one.fit("due"), default=None)
    if best is None:
        return None
    paid = Decimal(total.value) - best.value
    checked = {"sum"} if paid in amounts or -paid in amounts else set[str]()
    return Choice(str(best.value), best.best("due"), frozenset({"label", *checked}))


def _line_sum(amounts: Mapping[Decimal, Amount], line_sum: Decimal | None) -> Choice | None:
    """Return the printed sum of the items: an amount that equals their sum and is labelled as a sum of items.

    Returns None if there is no such amount.
    """
    equal = amounts.get(line_sum) if line_sum is not None else None
    if equal and "line_sum" in equal.roles:
        return Choice(str(equal.value), equal.best("line_sum"), frozenset({"lines", "label"}))
    return None


_COUNTRIES = {
    "USD": re.compile(
        r"\b(?i:united states)\b|\bUSA\b|\bU\.S\.|(?:,|\b[A-Z][a-z]+)\s(?:A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]"
        r"|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY])\s+\d{5}(?:-\d{4})?\b"
    ),
    "CAD": re.compile(r"(?i)\bcanada\b|\bontario\b|\bqu[e\u00e9]bec\b|\bgst/hst\b|[a-z]\.ca\b"),
    "AUD": re.compile(r"(?i)\baustralia\b|\.com\.au\b|\babn:?\s*\d"),
    "NZD": re.compile(r"(?i)\bnew zealand\b|\.co\.nz\b"),
    "HKD": re.compile(r"(?i)\bhong kong\b"),
    "SGD": re.compile(r"(?i)\bsingapore\b"),
    "MXN": re.compile(r"(?i)\bm[e\u00e9]xico\b|\bcfdi\b"),
}
_CURRENCY_LABEL = re.compile(
    r"(?:wahrung|currency|devise|monnaie|valuta|moneda|divisa|moeda|waluta|mata uang|all amounts in)\W{0,12}$"
)


def _currency(page: PageRuns, total: Choice | None) -> Choice | None:
    """Return the document's currency.

    A labelled currency has priority over the currency of the total, which has priority over the most common currency.
    """
    found = page.every("currency")
    if not found:
        return None
    counts: dict[str, list[Mention]] = {}
    for one in found:
        counts.setdefault(one.value, []).append(one)
    labelled = [one for one in found if _is_currency_label(page, one)]
    beside = _beside(page, found, total) if total else []
    for mentions, name in ((labelled, "label"), (beside, "beside total"), (max(counts.values(), key=len), "common")):
        if mentions:
            one = mentions[0]
            signs = {mention.value for mention in found if mention.place.quote != "$"}
            if one.place.quote == "$":
                return _dollars(page, one, name, signs & _COUNTRIES.keys())
            is_only = signs == {one.value} and (one.value in _COUNTRIES or len(counts) == 1)
            return Choice(one.value, one, frozenset({name, "only"} if is_only else {name}))
    return None


def _dollars(page: PageRuns, sign: Mention, name: str, named: set[str]) -> Choice:
    """Return the currency that "$" means.

    If the document names exactly one dollar currency, such as AUD, it is that currency. Otherwise, if the document
    mentions exactly one country, it is the currency of that country. Otherwise, it is the US dollar.
    """
    if len(named) == 1:
        return Choice(next(iter(named)), sign, frozenset({name, "only"}))
    countries = {code for code, pattern in _COUNTRIES.items() if any(map(pattern.search, page.texts))}
    if len(countries) == 1:
        return Choice(next(iter(countries)), sign, frozenset({name, "dollar", "country"}))
    return Choice(sign.value, sign, frozenset({name, "dollar"}))


def _is_currency_label(page: PageRuns, mention: Mention) -> bool:
    texts = (page.before(mention, "currency"), page.left_of(mention, "currency", most=1))
    return any(near and _CURRENCY_LABEL.search(near.folded) and "buchung" not in near.folded for near in texts)


def _beside(page: PageRuns, found: Sequence[Mention], total: Choice) -> list[Mention]:
    """Return the currencies on the line of the total, nearest first.

    If there are none, return the currencies in the header of the total's column.
    """
    line = [one for one in found if one.run.line == total.mention.run.line]
    if line:
        return sorted(line, key=lambda one: abs(one.box.left - total.mention.box.left))
    head = page.above(total.mention, "amount")
    return [one for one in found if head and one.run.page == total.mention.run.page and one.run.text in head.text]
