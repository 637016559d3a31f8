"""Finds typed values in a text, such as amounts, currencies and identifiers, each in its canonical form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation

from octavo.facts.dates import find_dates
from octavo.facts.words import Notation, TypedMatch

# 1,234.56 and 1.234,56 and 1 234,56 and 1'234.56. Groups have three digits, or two as in India; a space separates
# groups only if three digits follow.
_NUMBER = re.compile(
    r"(?<![\w.,/:-])(?P<sign>[-\u2212\u2013(]\s?)?(?:(?:[A-Z]{3}|[^\w\s.,:;()%/'\"#*|-]{1,2}|Rs\.?|kr\.?)\s?)?"
    r"(?P<minus>[-\u2212]\s?)?"
    r"(?P<digits>\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3})+(?:[.,]\d{1,4})?"
    r"|\d{1,3}(?:[.,]\d{2,3})+(?:[.,]\d{1,4})?|\d+(?:[.,]\d{1,4})?)"
    r"(?P<after>-)?(?!\w*\d)(?!\s?%)(?![.,/:-]\d)"
)
_GROUP = 3
_DIGITS_OF_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}-\d\d-\d\d")
_CODES = """
AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KES KRW KWD MAD MXN MYR NGN NOK
NZD PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH USD VND ZAR"""
# Longer signs come first, so that US$ does not match as $.
_SIGNS = {
    "US$": "USD",
    "CA$": "CAD",
    "C$": "CAD",
    "AU$": "AUD",
    "A$": "AUD",
    "NZ$": "NZD",
    "HK$": "HKD",
    "S$": "SGD",
    "R$": "BRL",
    "US Dollar": "USD",
    "U.S. Dollar": "USD",
    "Pound Sterling": "GBP",
    "Swiss Franc": "CHF",
    "SFr.": "CHF",
    "Euro": "EUR",
    "Rp": "IDR",
    "Rs.": "INR",
    "Rs": "INR",
    "Kč": "CZK",
    "zł": "PLN",
    "Ft": "HUF",
    "€": "EUR",
    "£": "GBP",
    "₹": "INR",
    "¥": "JPY",
    "₩": "KRW",
    "₺": "TRY",
    "₽": "RUB",
    "₴": "UAH",
    "₪": "ILS",
    "฿": "THB",
    "$": "USD",
}
_CODE = rf"(?<![A-Za-z])(?P<code>{'|'.join(_CODES.split())})(?![A-Za-z])"
_WORDS = "|".join(re.escape(sign) for sign in _SIGNS if sign[0].isalpha() and "$" not in sign)
_MARKS = "|".join(re.escape(sign) for sign in _SIGNS if not (sign[0].isalpha() and "$" not in sign))
_CURRENCY = re.compile(rf"{_CODE}|(?P<mark>{_MARKS})|(?<![^\W\d_])(?P<word>{_WORDS})s?(?![^\W\d_])")
_IDENTIFIER = re.compile(r"(?<![\w])(?:[A-Z]{1,5}[ ](?=\d))?[^\W_](?:[\w./\-\u2013]*\w)?")
_LEAST = 2
_EDGES = " \t:;.,|-\u2013"
Find = Callable[[str, Notation], list[TypedMatch]]


def find_amounts(text: str, notation: Notation) -> list[TypedMatch]:
    """Find numbers that may be amounts, with or without decimals. Dates, percentages and parts of words are skipped."""
    dates = [found.span() for found in _DIGITS_OF_DATE.finditer(text)]
    found: list[TypedMatch] = []
    for match in _NUMBER.finditer(text):
        if any(start < match.end() and match.start() < end for start, end in dates):
            continue
        value = read_number(match["digits"], notation.decimal)
        if value is None:
            continue
        negative = match["sign"] or match["minus"] or match["after"]
        found.append(
            TypedMatch(f"-{value}" if negative and Decimal(value) else value, match.start("digits"), match.end())
        )
    return found


def read_number(digits: str, decimal: str | None = None) -> str | None:
    """Convert a number to its canonical form: a decimal point, and no separators between groups of digits."""
    digits = re.sub(r"[\s\u00a0\u202f'\u2019]", "", digits)
    point = _decimal_mark(digits, decimal)
    whole, _, fraction = digits.rpartition(point) if point else (digits, "", "")
    plain = re.sub(r"[.,]", "", whole or "0") + (f".{fraction}" if fraction else "")
    try:
        return str(Decimal(plain))
    except InvalidOperation:
        return None


def _decimal_mark(digits: str, usual: str | None) -> str | None:
    """The decimal mark of a number: its last mark, unless it separates groups of digits.

    It separates groups if it occurs several times, or if exactly three digits follow it and it is not the `usual` mark.
    """
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return None
    mark, after = digits[last], len(digits) - last - 1
    if digits.count(mark) > 1:
        return None
    other = "," if mark == "." else "."
    if other in digits or after != _GROUP:
        return mark
    return mark if usual == mark else None


def usual_decimal(texts: Iterable[str]) -> str | None:
    """The decimal mark of a document: the mark that most often precedes two final digits."""
    marks = Counter(mark for text in texts for mark in re.findall(r"\d([.,])\d\d(?![\d.,])", text))
    return marks.most_common(1)[0][0] if marks else None


def find_currencies(text: str, notation: Notation) -> list[TypedMatch]:
    del notation
    return [
        TypedMatch(match["code"] or _SIGNS[match["mark"] or match["word"]], *match.span())
        for match in _CURRENCY.finditer(text)
    ]


def find_texts(text: str, notation: Notation) -> list[TypedMatch]:
    """The whole text as one value, without separators at its ends."""
    del notation
    start = len(text) - len(text.lstrip(_EDGES))
    end = len(text.rstrip(" \t:;,|"))
    return [TypedMatch(text[start:end], start, end)] if start < end else []


def find_identifiers(text: str, notation: Notation) -> list[TypedMatch]:
    """Find words with at least one digit, such as invoice numbers, but not dates or percentages."""
    days = [(one.start, one.end) for one in find_dates(text, notation)]
    return [
        TypedMatch(match[0], *match.span())
        for match in _IDENTIFIER.finditer(text)
        if len(match[0]) >= _LEAST
        and any(map(str.isdigit, match[0]))
        and not text[match.end() :].lstrip().startswith("%")
        and not any(start < match.end() and match.start() < end for start, end in days)
    ]


FINDERS: dict[str, Find] = {
    "amount": find_amounts,
    "number": find_amounts,
    "date": find_dates,
    "currency": find_currencies,
    "identifier": find_identifiers,
    "text": find_texts,
}
