"""Finds values of known types in a text, such as amounts, currencies and identifiers, and converts them to a standard
form.

IBANs, VAT ids, DOIs, ISBNs and register numbers are recognised by their format, without a label. IBANs and ISBNs
contain a checksum. The length of a VAT id depends on its country.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from octavo.facts.dates import find_dates
from octavo.facts.words import Notation, TypedMatch

# 1,234.56 and 1.234,56 and 1 234,56 and 1'234.56, and 1234,- without cents. Groups have three digits, or two as in
# India. A space separates groups only if three digits follow.
_NUMBER = re.compile(
    r"(?<![\w.,/:-])(?P<sign>[-\u2212\u2013(]\s?)?"
    r"(?:(?:[A-Z]{3}|[^\w\s.,:;()%/'\"#*|-]{1,2}|Rs\.?|kr\.?|K\u010d|z\u0142|Ft|RM|Rp\.?)\s?)?"
    r"(?P<minus>[-\u2212]\s?)?"
    r"(?P<digits>\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3})+(?:[.,]\d{1,4})?"
    r"|\d{1,3}(?:[.,]\d{2,3})+(?:[.,]\d{1,4})?|\d+(?:[.,]\d{1,6})?)"
    r"(?:(?P<even>[.,][-\u2013\u2014](?!\d))|(?P<after>-))?(?!\w*\d)(?!\s?%)(?![.,/:-]\d)"
)
_GROUP = 3
_DIGITS_OF_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}-\d\d-\d\d")
_CODES = """
AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KES KRW KWD MAD MXN MYR NGN NOK
NZD PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH USD VND ZAR"""
# Longer signs come first, so that $ does not match inside US$.
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
    "RM": "MYR",
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
        value += ".00" if match["even"] and "." not in value else ""
        negative = match["sign"] or match["minus"] or match["after"]
        found.append(
            TypedMatch(f"-{value}" if negative and Decimal(value) else value, match.start("digits"), match.end())
        )
    return found


def read_number(digits: str, decimal: str | None = None) -> str | None:
    """Convert a number to a standard form with a decimal point and without thousands separators, so that "1.234,50"
    becomes "1234.50".
    """
    digits = re.sub(r"[\s\u00a0\u202f'\u2019]", "", digits)
    point = _decimal_mark(digits, decimal)
    whole, _, fraction = digits.rpartition(point) if point else (digits, "", "")
    plain = re.sub(r"[.,]", "", whole or "0") + (f".{fraction}" if fraction else "")
    try:
        return str(Decimal(plain))
    except InvalidOperation:
        return None


def _decimal_mark(digits: str, usual: str | None) -> str | None:
    """Return the decimal mark of a number. Returns None if the number has no decimals.

    The decimal mark is the last point or comma, unless it is a thousands separator. It is a thousands separator in two
    cases:

    - It occurs several times, as in 1.234.567.
    - It is the only mark, exactly three digits follow it, and it is not the decimal mark of the document (`usual`).
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
    """Return the decimal mark that a document uses, a point or a comma.

    It is the mark that most often comes before the last two digits of a number. Returns None if there are no such
    numbers.
    """
    marks = Counter(mark for text in texts for mark in re.findall(r"\d([.,])\d\d(?![\d.,])", text))
    return marks.most_common(1)[0][0] if marks else None


def find_currencies(text: str, notation: Notation) -> list[TypedMatch]:
    del notation
    return [
        TypedMatch(match["code"] or _SIGNS[match["mark"] or match["word"]], *match.span())
        for match in _CURRENCY.finditer(text)
    ]


def find_texts(text: str, notation: Notation) -> list[TypedMatch]:
    """Return the whole text as a single value, without separators at its start and end."""
    del notation
    start = len(text) - len(text.lstrip(_EDGES))
    end = len(text.rstrip(" \t:;,|"))
    return [TypedMatch(text[start:end], start, end)] if start < end else []


def find_identifiers(text: str, notation: Notation) -> list[TypedMatch]:
    """Find words with at least one digit, such as order numbers. Dates, percentages and single digits are skipped."""
    return [one for one in find_references(text, notation) if len(one.value) > 1]


def find_references(text: str, notation: Notation) -> list[TypedMatch]:
    """Find identifiers such as invoice numbers.

    Single digits are included, because the first invoice may have the number 1.
    """
    days = [(one.start, one.end) for one in find_dates(text, notation)]
    return [
        TypedMatch(match[0], *match.span())
        for match in _IDENTIFIER.finditer(text)
        if any(map(str.isdigit, match[0]))
        and not text[match.end() :].lstrip().startswith("%")
        and not any(start < match.end() and match.start() < end for start, end in days)
    ]


FINDERS: dict[str, Find] = {
    "amount": find_amounts,
    "number": find_amounts,
    "date": find_dates,
    "currency": find_currencies,
    "identifier": find_identifiers,
    "reference": find_references,
    "text": find_texts,
}


# Identifiers that need no label


class IdentifierMatch(NamedTuple):
    """An identifier that was found in a text, such as an IBAN. `is_checked` is true if it has a valid checksum."""

    name: str
    value: str
    start: int
    end: int
    is_checked: bool = False


_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_IBAN_LENGTHS = {
    "AD": 24,
    "AT": 20,
    "BE": 16,
    "BG": 22,
    "CH": 21,
    "CY": 28,
    "CZ": 24,
    "DE": 22,
    "DK": 18,
    "EE": 20,
    "ES": 24,
    "FI": 18,
    "FR": 27,
    "GB": 22,
    "GI": 23,
    "GR": 27,
    "HR": 21,
    "HU": 28,
    "IE": 22,
    "IS": 26,
    "IT": 27,
    "LI": 21,
    "LT": 20,
    "LU": 20,
    "LV": 21,
    "MC": 27,
    "MT": 31,
    "NL": 18,
    "NO": 15,
    "PL": 28,
    "PT": 25,
    "RO": 24,
    "SE": 24,
    "SI": 19,
    "SK": 24,
    "SM": 27,
    "TR": 26,
    "AE": 23,
    "SA": 24,
    "IL": 23,
    "RS": 22,
    "UA": 29,
}
# The form of a VAT id after the country code, without spaces.
_VAT_FORMS = {
    "AT": r"U\d{8}",
    "BE": r"[01]\d{9}",
    "BG": r"\d{9,10}",
    "CY": r"\d{8}[A-Z]",
    "CZ": r"\d{8,10}",
    "DE": r"\d{9}",
    "DK": r"\d{8}",
    "EE": r"\d{9}",
    "EL": r"\d{9}",
    "ES": r"[A-Z0-9]\d{7}[A-Z0-9]",
    "FI": r"\d{8}",
    "FR": r"[A-Z0-9]{2}\d{9}",
    "GB": r"\d{9}(?:\d{3})?",
    "HR": r"\d{11}",
    "HU": r"\d{8}",
    "IE": r"\d[A-Z0-9]\d{5}[A-Z]{1,2}",
    "IT": r"\d{11}",
    "LT": r"\d{9}(?:\d{3})?",
    "LU": r"\d{8}",
    "LV": r"\d{11}",
    "MT": r"\d{8}",
    "NL": r"\d{9}B\d{2}",
    "PL": r"\d{10}",
    "PT": r"\d{9}",
    "RO": r"\d{2,10}",
    "SE": r"\d{12}",
    "SI": r"\d{8}",
    "SK": r"\d{10}",
    "CHE": r"\d{9}",
}
_VAT = re.compile(
    r"(?<![A-Za-z0-9])("
    + "|".join(sorted(_VAT_FORMS, key=len, reverse=True))
    + r")[ .\-]?((?:[A-Z0-9][ .\-]?){7,12})(?![A-Za-z0-9])"
)
_VAT_WORD = re.compile(
    r"vat|tva|ust|u\.?st|btw|iva|nif|cif|partita|umsatzsteuer|uid|tax|mwst|moms|dph|dic", re.IGNORECASE
)
_DOI = re.compile(r"(?<![\w.])10\.\d{4,9}/[^\s\"<>|]*[^\s\"<>|.,;:)\]}]")
_ISBN = re.compile(r"ISBN(?:-1[03])?:?\s*((?:97[89][\s-]?)?(?:\d[\s-]?){9}[\dXx])(?!\d)", re.IGNORECASE)
_REGISTER = re.compile(
    r"(?<!\w)(HR[AB]\s?(?:Nr\.?\s?)?\d{1,6}(?:\s?[A-Z])?|RCS\s+[A-Z\u00c0-\u00de]\w+\s+(?:[A-Z]\s)?\d{3}\s?\d{3}\s?\d{3}|KvK(?:-?\s?(?:nr|nummer))?\.?:?\s?\d{8}|SIRE[TN]\s?:?\s?\d{3}\s?\d{3}\s?\d{3}(?:\s?\d{5})?)(?!\w)"
)
_ISBN_SHORT = 10


def find_marked(text: str) -> list[IdentifierMatch]:
    """Find identifiers that can be recognised without a label, such as IBANs, in the order in which they appear."""
    found = [match for find in _MARKED for match in find(text)]
    return sorted(found, key=lambda one: one.start)


def _ibans(text: str) -> Iterator[IdentifierMatch]:
    for match in _IBAN.finditer(text):
        length = _IBAN_LENGTHS.get(match[0][:2])
        if length is None:
            continue
        letters = 0
        for end, letter in enumerate(match[0], 1):
            letters += letter != " "
            if letters == length:
                value = match[0][:end].replace(" ", "")
                yield IdentifierMatch("iban", value, match.start(), match.start() + end, is_iban(value))
                break


def is_iban(value: str) -> bool:
    digits = "".join(str(int(letter, 36)) for letter in value[4:] + value[:4])
    return _IBAN_LENGTHS.get(value[:2]) == len(value) and int(digits) % 97 == 1


def _vat_ids(text: str) -> Iterator[IdentifierMatch]:
    for match in _VAT.finditer(text):
        bare = re.sub(r"[ .\-]", "", match[2])
        form = re.match(_VAT_FORMS[match[1]] + r"$", bare)
        if form and (
            _VAT_WORD.search(text[max(match.start() - 40, 0) : match.start()]) or not text[: match.start()].strip()
        ):
            yield IdentifierMatch(
                "vat_id", match[1] + bare, match.start(), match.start(2) + len(match[2].rstrip(" .-"))
            )


def _dois(text: str) -> Iterator[IdentifierMatch]:
    yield from (IdentifierMatch("doi", match[0], *match.span()) for match in _DOI.finditer(text))


def _isbns(text: str) -> Iterator[IdentifierMatch]:
    for match in _ISBN.finditer(text):
        value = re.sub(r"[\s-]", "", match[1]).upper()
        if is_isbn(value):
            yield IdentifierMatch("isbn", value, *match.span(1), is_checked=True)


def is_isbn(value: str) -> bool:
    digits = [10 if letter == "X" else int(letter) for letter in value]
    if len(digits) == _ISBN_SHORT:
        return sum(weight * digit for weight, digit in zip(range(10, 0, -1), digits, strict=True)) % 11 == 0
    return len(digits) == 13 and sum(digit * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10 == 0  # noqa: PLR2004


def _registers(text: str) -> Iterator[IdentifierMatch]:
    for match in _REGISTER.finditer(text):
        yield IdentifierMatch("register_id", " ".join(match[1].split()), *match.span())


_MARKED: tuple[Callable[[str], Iterator[IdentifierMatch]], ...] = (_ibans, _vat_ids, _dois, _isbns, _registers)
