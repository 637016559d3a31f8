"""Invoices that nobody has seen before: made from a number, with what is written in them known.

Languages, places, tables, forms of dates and amounts, and things that look like what is asked for differ. Some
labels are known to no mapping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import TypeVar

from tests.support.invoice_words import TONGUES
from tests.support.pdf import Line, Part, Pdf, Words

CENT = Decimal("0.01")
Option = TypeVar("Option")


@dataclass(frozen=True, slots=True)
class Invoice:
    """A made invoice and what is true of it."""

    name: str
    pdf: bytes
    number: str
    day: str
    total: str
    currency: str


def make_invoice(seed: int) -> Invoice:
    """The same number makes the same invoice, on every machine."""
    return _Maker(seed).make()


class _Maker:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed * 7919 + 17)
        self._seed = seed
        self._language = list(TONGUES)[seed // 2 % len(TONGUES)]  # so that each half has all of them
        self._tongue = TONGUES[self._language]
        self._parts: list[Part] = []
        self._shift = self._random.choice((0.0, 0.0, 0.7))
        self._size = self._random.choice((8.5, 9.5, 10.0, 11.0))
        self._code, self._sign = self._pick(self._tongue.currencies)
        self._sign_first = self._sign not in {"zł", "EUR", "PLN"} and self._random.random() < 0.6
        self._sign_everywhere = self._random.random() < 0.5
        self._colon = self._random.choice((":", ":", "", " :"))
        self._form = self._pick(self._tongue.days)
        self._loud = self._random.random() < 0.2
        self._in_words = self._random.random() < 0.3

    def _pick(self, options: Sequence[Option]) -> Option:
        return self._random.choice(options)

    def make(self) -> Invoice:
        tongue, random = self._tongue, self._random
        number = self._number()
        day = date(2018, 1, 1) + timedelta(days=random.randrange(2800))
        if self._form == "{d}th {name} {y}":
            day = day.replace(day=random.randrange(4, 20))
        facts = [
            (self._label(self._pick(tongue.number)), number),
            (self._label(self._pick(tongue.day)), self._day(day)),
            (self._label(self._pick(tongue.due)), self._day(day + timedelta(days=30))),
        ]
        if random.random() < 0.6:
            facts.append((self._pick(tongue.order_day), self._day(day - timedelta(days=9))))
        if random.random() < 0.7:
            facts.append((self._pick(tongue.customer), str(random.randrange(10_000, 99_999))))
        if random.random() < 0.4:
            random.shuffle(facts)
        top = self._head(number)
        top = self._facts(facts, top)
        items, net = self._items()
        if random.random() < 0.4:
            self._write(
                f"Ref: {random.randrange(10_000, 99_999)}, {self._day(day - timedelta(days=20))}", 60, top, size=8
            )
            top += 20
        top = self._table(items, top)
        total = self._totals(net, top)
        self._foot()
        pdf = Pdf([self._parts]).write()
        name = f"{self._seed:03}-{self._language}"
        return Invoice(name, pdf, number, day.isoformat(), str(total), self._code)

    # What is written

    def _number(self) -> str:
        random = self._random
        return random.choice(
            (
                f"{random.randrange(10_000, 99_999_999)}",
                f"INV-{random.randrange(1000, 99_999)}",
                f"{random.randrange(2018, 2026)}-{random.randrange(1, 9999):04}",
                f"RE{random.randrange(2018, 2026)}/{random.randrange(100, 9999)}",
                f"F{random.randrange(100, 999)}.{random.randrange(1000, 9999)}",
                f"{random.choice('ABXZ')}{random.randrange(10, 99)}-{random.randrange(100_000, 999_999)}-1",
            )
        )

    def _day(self, day: date) -> str:
        name = self._tongue.months.split()[day.month - 1]
        return self._form.format(d=day.day, m=day.month, y=day.year, yy=day.year % 100, name=name, short=name[:3])

    def _amount(self, amount: Decimal, *, sign: bool | None = None) -> str:
        whole, _, fraction = f"{amount:,.2f}".partition(".")
        text = whole.replace(",", self._tongue.group) + self._tongue.decimal + fraction
        if not (self._sign_everywhere if sign is None else sign):
            return text
        if self._sign_first:
            return f"{self._sign}{text}" if len(self._sign) == 1 else f"{self._sign} {text}"
        return f"{text} {self._sign}"

    def _items(self) -> tuple[list[tuple[str, int, Decimal, Decimal]], Decimal]:
        random = self._random
        items: list[tuple[str, int, Decimal, Decimal]] = []
        for name in random.sample(self._tongue.items, random.randrange(1, len(self._tongue.items) + 1)):
            quantity, price = random.randrange(1, 12), Decimal(random.randrange(199, 89_900)) / 100
            items.append((name, quantity, price, (quantity * price).quantize(CENT)))
        return items, sum((item[3] for item in items), Decimal(0))

    # Where it stands

    def _write(
        self, text: str, left: float, top: float, *, right: float | None = None, bold: bool = False, size: float = 0
    ) -> None:
        size = size or self._size
        if right is not None:
            left = right - _width(text, size)
        top += self._random.uniform(-self._shift, self._shift)
        font = "bold" if bold else "regular"
        for word in text.split() if self._in_words else [text]:
            self._parts.append(Words(word, left, top, size, font))
            left += _width(f"{word} ", size)

    def _label(self, text: str) -> str:
        return text.upper() if self._loud else text

    def _head(self, number: str) -> float:
        tongue, random = self._tongue, self._random
        sender = random.choice(("Northwind Traders", "Bergmann & Cie", "Studio Lumen", "Acme Parts", "Hanseatic Works"))
        left, right = (60.0, 360.0) if random.random() < 0.6 else (360.0, 60.0)
        self._write(sender, left, 60, bold=True, size=self._size + random.choice((0, 4)))
        self._write(f"{random.randrange(1, 99)} Harbour Street", left, 75)
        self._write(f"{random.randrange(10_000, 99_999)} Port City", left, 88)
        self._write(
            f"Tel. +{random.randrange(30, 49)} {random.randrange(100, 999)} {random.randrange(100_000, 999_999)}",
            left,
            101,
        )
        title = self._pick(tongue.title)
        self._write(title, right, 64, bold=True, size=self._size + random.choice((4, 8)))
        self._write(self._pick(tongue.bill_to) + self._colon, 60, 140, bold=True)
        for row, text in enumerate(("Quay Holding Ltd", f"{random.randrange(1, 80)} Mill Lane", "4711 Rivertown")):
            self._write(text, 60, 154 + 13 * row)
        return 150.0

    def _facts(self, facts: list[tuple[str, str]], top: float) -> float:
        """Beside their labels, in two columns, below them in a band, or several in one line."""
        gap = self._size + 5
        match self._random.randrange(4):
            case 0:
                for row, (label, value) in enumerate(facts):
                    self._write(f"{label}{self._colon or ':'} {value}", 340, top + gap * row)
            case 1:
                for row, (label, value) in enumerate(facts):
                    self._write(label + self._colon, 330, top + gap * row)
                    self._write(value, 0, top + gap * row, right=555)
            case 2:
                top += 60
                for column, (label, value) in enumerate(facts):
                    left = 60 + column * (490 / len(facts))
                    self._write(label, left, top, size=7.5, bold=True)
                    self._write(value, left, top + gap, size=8.5)
                return top + 50
            case _:
                for row in range(0, len(facts), 2):
                    for column, (label, value) in enumerate(facts[row : row + 2]):
                        self._write(label + self._colon, 60 + 270 * column, top + 60 + gap * row)
                        self._write(value, 180 + 270 * column, top + 60 + gap * row)
                return top + 60 + gap * len(facts) + 20
        return top + max(gap * len(facts), 60) + 30

    def _table(self, items: list[tuple[str, int, Decimal, Decimal]], top: float) -> float:
        heads = self._pick(self._tongue.heads)
        edges = (330.0, 440.0, 555.0)
        self._write(heads[0], 60, top, bold=True)
        for head, edge in zip(heads[1:], edges, strict=True):
            self._write(head, 0, top, right=edge, bold=True)
        if self._random.random() < 0.5:
            self._parts.append(Line(60, top + 4, 555, top + 4))
        for name, quantity, price, amount in items:
            top += self._size + 7
            self._write(name, 60, top)
            self._write(str(quantity), 0, top, right=edges[0])
            self._write(self._amount(price), 0, top, right=edges[1])
            self._write(self._amount(amount), 0, top, right=edges[2])
            if self._random.random() < 0.2:
                top += self._size + 2
                self._write(f"Ref. {self._random.randrange(1000, 9999)}, 2 x 40", 68, top, size=self._size - 1)
        return top + 26

    def _totals(self, net: Decimal, top: float) -> Decimal:
        tongue, random = self._tongue, self._random
        tax = (net * Decimal("0.2")).quantize(CENT)
        rows = [(self._pick(tongue.net), net), (self._pick(tongue.tax), tax)]
        total = net + tax
        if random.random() < 0.25:  # which no sum of two explains
            rows.append((random.choice(("Shipping", "Versand", "Transport", "Porto")), Decimal("7.90")))
            total += Decimal("7.90")
        label = self._label(self._pick(tongue.total))
        if self._sign == self._code and not self._sign_everywhere and random.random() < 0.5:
            label, shown = f"{label} {self._code}", self._amount(total, sign=False)
        else:
            shown = self._amount(total, sign=True)
        gap, left = self._size + 5, random.choice((340.0, 400.0))
        for name, amount in rows:
            self._write(name + self._colon, left - 40, top)
            self._write(self._amount(amount), 0, top, right=555)
            top += gap
        self._write(label + self._colon, left - 40, top, bold=True)
        self._write(shown, 0, top, right=555, bold=True)
        if random.random() < 0.25:
            self._write("Cash discount 2% until next week", left - 40, top + gap)
            self._write(self._amount((total * Decimal("0.98")).quantize(CENT)), 0, top + gap, right=555)
        return total

    def _foot(self) -> None:
        random = self._random
        self._write(self._tongue.closing, 60, 690, size=8)
        self._write(f"IBAN DE{random.randrange(10, 99)} 5075 0094 0000 0485 67   BIC HELADEF1GEL", 60, 740, size=7.5)
        self._write(
            f"VAT ID: DE{random.randrange(100_000_000, 999_999_999)}   www.example.com   1/1", 60, 752, size=7.5
        )


# Of Helvetica, in thousandths of the size: enough to set numbers to the right.
_WIDE = {**dict.fromkeys("0123456789$€£", 556), **dict.fromkeys(".,:;' /|il", 278), **dict.fromkeys("mwMW", 850)}


def _width(text: str, size: float) -> float:
    return sum(_WIDE.get(letter, 667 if letter.isupper() else 530) for letter in text) * size / 1000
