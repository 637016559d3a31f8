"""Formats numbers, sizes, prices, dates and durations for people, on web pages and in the terminal.

For languages other than English, Babel provides the formats. It is imported when it is first used.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Protocol

from octavo.core.texts import current_catalogue, ngettext
from octavo.core.texts import gettext as _

MINUTE, HOUR, DAY = 60, 3600, 86400
SOON = 90
UNIT = 1024
EN_DASH = "\N{EN DASH}"


class SecondsRange(Protocol):
    """An estimated duration between `low_seconds` and `high_seconds`."""

    @property
    def low_seconds(self) -> float: ...

    @property
    def high_seconds(self) -> float: ...


def format_number(number: float, places: int = 0) -> str:
    return _decimal(number, places)


def _decimal(number: float, places: int) -> str:
    catalogue = current_catalogue()
    if catalogue.is_english:
        return f"{number:,.{places}f}"
    return _localized_decimal(round(number, places), places, catalogue.locale)


@lru_cache(10_000)
def _localized_decimal(number: float, places: int, locale: str) -> str:
    """Format a number for a locale. Results are cached, because lists repeat the same numbers and Babel is slow."""
    from babel.numbers import format_decimal

    return format_decimal(number, _PATTERNS[places], locale)


_PATTERNS = {0: "#,##0", 1: "#,##0.0", 2: "#,##0.00", 4: "#,##0.0000"}


def read_decimal(text: str) -> Decimal | None:
    """Read a number that a person entered on a page, in the format of the page's language. Also accepts 1234.5."""
    catalogue = current_catalogue()
    try:
        if catalogue.is_english:
            number = Decimal(text.replace(",", ""))
        else:
            known = _localized_number(text, catalogue.locale)
            number = Decimal(text) if known is None else known
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _localized_number(text: str, locale: str) -> Decimal | None:
    from babel.numbers import NumberFormatError, get_group_symbol, parse_decimal

    group = get_group_symbol(locale)
    try:
        # People type a plain space where the language has a narrow one.
        return parse_decimal(re.sub(r"\s", group, text.strip()) if group.isspace() else text, locale, strict=True)
    except NumberFormatError:
        return None


def write_decimal(number: float) -> str:
    """Format a number for an input field, in the format of the page's language, so that `read_decimal` can read it."""
    plain = format(Decimal(repr(number)).normalize(), "f")
    catalogue = current_catalogue()
    if catalogue.is_english:
        return plain
    from babel.numbers import get_decimal_symbol

    return plain.replace(".", get_decimal_symbol(catalogue.locale))


def format_bytes(size: int) -> str:
    """Format a size, such as 1.1 MB or 48 MB. One megabyte is 1,024 kilobytes, as in the settings."""
    amount = float(size)
    if amount < UNIT:
        return _("%(size)s bytes", size=_decimal(amount, 0))
    for unit in ("KB", "MB", "GB"):
        amount /= UNIT
        if amount < UNIT:
            return f"{_decimal(amount, 1 if amount < 10 else 0)} {unit}"  # noqa: PLR2004
    return f"{_decimal(amount / UNIT, 1)} TB"


def format_dollars(amount: float) -> str:
    """Format an amount, such as $3.12. Amounts below one cent get four decimal places: $0.0004."""
    places = 4 if 0 < amount < 0.01 else 2  # noqa: PLR2004 - a cent
    catalogue = current_catalogue()
    if catalogue.is_english:
        return f"${amount:,.{places}f}"
    from babel.numbers import format_currency

    return format_currency(round(amount, places), "USD", locale=catalogue.locale, decimal_quantization=places == 2)  # noqa: PLR2004


def format_day(at: datetime, now: datetime) -> str:
    """Format a past time according to its age: "2 min ago", "Today", "Yesterday", "12 Nov" or "12 Nov 2024"."""
    passed = (now - at).total_seconds()
    if passed < MINUTE:
        return _("Just now")
    if passed < HOUR:
        return _("%(time)s ago", time=_("%(number)s min", number=int(passed // MINUTE)))
    days = (now.astimezone(at.tzinfo).date() - at.date()).days
    if days < 2:  # noqa: PLR2004 - days that have a name
        return (_("Today"), _("Yesterday"))[max(days, 0)]
    return format_date(at.date(), now.date())


def format_date(day: date, today: date) -> str:
    return format_short_date(day, with_year=day.year != today.year)


def format_short_date(day: date, *, with_year: bool = True) -> str:
    """Format a date with a short name of the month, such as 12 Nov 2024."""
    catalogue = current_catalogue()
    if catalogue.is_english:
        return f"{day.day} {day:%b %Y}" if with_year else f"{day.day} {day:%b}"
    return _localized_date(day, "yMMMd" if with_year else "MMMd", catalogue.locale)


@lru_cache(10_000)
def _localized_date(day: date, skeleton: str, locale: str) -> str:
    from babel.dates import format_skeleton

    return format_skeleton(skeleton, day, locale=locale)


def format_full_date(day: date) -> str:
    """Format a date in full, such as 19 April 2014."""
    catalogue = current_catalogue()
    if catalogue.is_english:
        return f"{day.day} {day:%B %Y}"
    from babel.dates import format_date

    return format_date(day, "long", locale=catalogue.locale)


def format_money(amount: float, currency: str | None) -> str:
    """Format an amount with its currency: € 717.97, CHF 12.50, or 12.50 if the currency is not known."""
    text = _decimal(amount, 2)
    return f"{_SIGNS.get(currency, currency)} {text}" if currency else text


_SIGNS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "INR": "₹"}


def format_eta(eta: SecondsRange | None) -> str | None:
    """Format an estimated remaining time as a range, such as 20 to 35 s, or as "about 1 min".

    Returns None if there is no estimate.
    """
    if eta is None:
        return None
    low, high = eta.low_seconds, eta.high_seconds
    if high < SOON:
        return _range(round(low), max(1, round(high)), _("%(number)s s"))
    if high < SOON * MINUTE:
        return _range(round(low / MINUTE), max(1, round(high / MINUTE)), _("%(number)s min"))
    return _range(round(low / HOUR), max(1, round(high / HOUR)), _("%(number)s h"))


def _range(low: int, high: int, unit: str) -> str:
    if low < high:
        return unit % {"number": f"{low}{EN_DASH}{high}"}
    return _("about %(time)s", time=unit % {"number": high})


def format_span(span: timedelta) -> str:
    """Format a duration, such as "14 min", "3 h" or "2 days"."""
    seconds = int(span.total_seconds())
    if seconds < MINUTE:
        return _("%(number)s s", number=seconds)
    if seconds < HOUR:
        return _("%(number)s min", number=seconds // MINUTE)
    if seconds < 2 * DAY:
        return _("%(number)s h", number=seconds // HOUR)
    return count_of(seconds // DAY, "day")


def format_ago(at: datetime, now: datetime) -> str:
    return _("%(time)s ago", time=format_span(max(now - at, timedelta())))


def format_moment(at: datetime, now: datetime) -> str:
    """Format a future time, such as "in 14 min", "Tomorrow 02:00" or "12 Nov 02:00". Times are UTC."""
    if at <= now:
        return _("Now")
    if at - now < timedelta(hours=1):
        return _("in %(time)s", time=format_span(at - now))
    days = (at.date() - now.date()).days
    if days < 2:  # noqa: PLR2004 - days that have a name
        return f"{(_('Today'), _('Tomorrow'))[days]} {at:%H:%M}"
    return f"{format_date(at.date(), now.date())} {at:%H:%M}"


def count_of(number: int, one: str, many: str | None = None) -> str:
    """Format a number with its noun: "1 page" or "3 pages"."""
    return ngettext(f"%(number)s {one}", f"%(number)s {many or one + 's'}", number, number=format_number(number))


def mid_sentence(text: str) -> str:
    """Convert a label, such as "Today", to lower case for use within a sentence. German nouns keep their capitals."""
    keeps = current_catalogue().language == "de" and text not in {_("Just now"), _("Today"), _("Yesterday")}
    return text if keeps else text.lower()
