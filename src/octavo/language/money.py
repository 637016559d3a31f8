"""Finds amounts of money: a number with its currency."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo.language.findings import Finding, Statement

GROUP = "Amounts"
_NUMBER = (
    r"\d{1,3}(?:[.,'\u2019 \u00a0\u202f]\d{3})+(?:[.,](?:\d{1,2}|[-\u2013]{1,2}))?(?!\d)"
    r"|\d+(?:[.,](?:\d{1,4}|[-\u2013]{1,2}))?"
)
_SCALE = (
    r"(?:[ \u00a0]?(?:thousand|million|billion|trillion|mill?\.?|mio\.?|mrd\.?|bn|tsd\.?|tausend|millionen|milliarden"
    r"|milliarde)\b\.?|[kKmMbB]\b)?"
)
_SIGN = r"(?:US|A|C|CA|AU|NZ|HK|S)?\$|[€£¥₹₽₩₺₪]|R\$|Fr\.|Rs\.?"
_CODE = r"EUR|USD|GBP|CHF|JPY|CNY|RMB|SEK|NOK|DKK|PLN|CZK|HUF|AUD|CAD|NZD|INR|BRL|ZAR|TRY|RUB|SGD|HKD|MXN|ILS"
_WORD = (
    r"euros?|(?:(?:us|canadian|australian) )?dollars?|pounds?(?: sterling)?|swiss francs?|schweizer franken|francs?"
    r"|franken|yen|yuan|rupees?|rubles?|roubles?|zloty|crowns?|kronen|cents?|deutsche mark|dm|d-mark"
)
_AMOUNT = re.compile(
    rf"(?<![\w.,])(?:(?P<before>(?:{_SIGN})|\b(?:{_CODE})\b)[ \u00a0\u202f]?(?P<a>{_NUMBER}){_SCALE}"
    rf"|(?P<b>{_NUMBER}){_SCALE}[ \u00a0\u202f]?(?P<after>(?:{_SIGN})(?![\w$])|(?:{_CODE})\b|(?i:{_WORD})\b))"
)


def find_money(statement: Statement) -> Iterator[Finding]:
    for match in _AMOUNT.finditer(statement.text):
        yield Finding(GROUP, " ".join(match.group().split()), statement, match.start(), match.end())
