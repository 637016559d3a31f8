"""Finds identifiers that have a form of their own: IBAN, VAT id, DOI, ISBN and register numbers.

IBAN and ISBN contain a checksum; `is_checked` says whether it is right. A VAT id has the length of its country.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple


class IdentifierMatch(NamedTuple):
    """`is_checked`: the checksum is right; false if it is wrong or if there is none."""

    name: str
    value: str
    start: int
    end: int
    is_checked: bool


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
# Letters and digits after the country, without spaces.
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
    """All identifiers in a text that need no label, in text order."""
    found = [match for find in _FINDERS for match in find(text)]
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
                "vat_id", match[1] + bare, match.start(), match.start(2) + len(match[2].rstrip(" .-")), False
            )


def _dois(text: str) -> Iterator[IdentifierMatch]:
    yield from (IdentifierMatch("doi", match[0], *match.span(), False) for match in _DOI.finditer(text))


def _isbns(text: str) -> Iterator[IdentifierMatch]:
    for match in _ISBN.finditer(text):
        value = re.sub(r"[\s-]", "", match[1]).upper()
        if is_isbn(value):
            yield IdentifierMatch("isbn", value, *match.span(1), True)


def is_isbn(value: str) -> bool:
    digits = [10 if letter == "X" else int(letter) for letter in value]
    if len(digits) == _ISBN_SHORT:
        return sum(weight * digit for weight, digit in zip(range(10, 0, -1), digits, strict=True)) % 11 == 0
    return len(digits) == 13 and sum(digit * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10 == 0  # noqa: PLR2004


def _registers(text: str) -> Iterator[IdentifierMatch]:
    for match in _REGISTER.finditer(text):
        yield IdentifierMatch("register_id", " ".join(match[1].split()), *match.span(), False)


_FINDERS: tuple[Callable[[str], Iterator[IdentifierMatch]], ...] = (_ibans, _vat_ids, _dois, _isbns, _registers)
