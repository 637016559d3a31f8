"""Currencies by their code, sign or name; in one form, the three letters of ISO 4217."""

from __future__ import annotations

import re

from octavo.convert.types.found import Found, Habits

_CODES = """
AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KES KRW KWD MAD MXN MYR NGN NOK
NZD PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH USD VND ZAR"""
# What is longer stands first: US$ is not $, and kr says less than DKK.
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


def find_currencies(text: str, habits: Habits) -> list[Found]:
    del habits
    return [
        Found(match["code"] or _SIGNS[match["mark"] or match["word"]], *match.span())
        for match in _CURRENCY.finditer(text)
    ]
