"""Formats numbers, sizes, prices, dates and durations for people, on web pages and in the terminal."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Protocol

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


def format_number(number: int) -> str:
    return f"{number:,}"


def format_bytes(size: int) -> str:
    """Format a size, such as 1.1 MB or 48 MB. One megabyte is 1,024 kilobytes, as in the settings."""
    amount = float(size)
    for unit in ("bytes", "KB", "MB", "GB"):
        if amount < UNIT:
            return f"{amount:.1f} {unit}" if unit != "bytes" and amount < 10 else f"{amount:.0f} {unit}"  # noqa: PLR2004
        amount /= UNIT
    return f"{amount:.1f} TB"


def format_dollars(amount: float) -> str:
    """Format an amount, such as $3.12. Amounts below one cent get four decimal places: $0.0004."""
    return f"${amount:.4f}" if 0 < amount < 0.01 else f"${amount:,.2f}"  # noqa: PLR2004 - a cent


def format_day(at: datetime, now: datetime) -> str:
    """Format a past time: "2 min ago", "Today", "Yesterday", "12 Nov" or "12 Nov 2024".

    Recent times are more precise.
    """
    passed = (now - at).total_seconds()
    if passed < MINUTE:
        return "Just now"
    if passed < HOUR:
        return f"{int(passed // MINUTE)} min ago"
    days = (now.astimezone(at.tzinfo).date() - at.date()).days
    if days < 2:  # noqa: PLR2004 - days that have a name
        return ("Today", "Yesterday")[max(days, 0)]
    return format_date(at.date(), now.date())


def format_date(day: date, today: date) -> str:
    return f"{day.day} {day:%b}" if day.year == today.year else f"{day.day} {day:%b %Y}"


def format_full_date(day: date) -> str:
    """Format a date in full, such as 19 April 2014."""
    return f"{day.day} {day:%B %Y}"


def format_money(amount: float, currency: str | None) -> str:
    """Format an amount with its currency: € 717.97, CHF 12.50, or 12.50 if the currency is not known."""
    text = f"{amount:,.2f}"
    return f"{_SIGNS.get(currency, currency)} {text}" if currency else text


_SIGNS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "INR": "₹"}


def format_eta(eta: SecondsRange | None) -> str | None:
    """Format a remaining time as a range, such as 20 to 35 s or 6 to 9 min, or as "about 1 min"."""
    if eta is None:
        return None
    low, high = eta.low_seconds, eta.high_seconds
    if high < SOON:
        return _span(round(low), max(1, round(high)), "s")
    if high < SOON * MINUTE:
        return _span(round(low / MINUTE), max(1, round(high / MINUTE)), "min")
    return _span(round(low / HOUR), max(1, round(high / HOUR)), "h")


def _span(low: int, high: int, unit: str) -> str:
    return f"{low}{EN_DASH}{high} {unit}" if low < high else f"about {high} {unit}"


def format_span(span: timedelta) -> str:
    """Format a duration, such as "14 min", "3 h" or "2 days"."""
    seconds = int(span.total_seconds())
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min"
    if seconds < 2 * DAY:
        return f"{seconds // HOUR} h"
    return f"{seconds // DAY} days"


def format_ago(at: datetime, now: datetime) -> str:
    return f"{format_span(max(now - at, timedelta()))} ago"


def format_moment(at: datetime, now: datetime) -> str:
    """Format a future time, such as "in 14 min", "Tomorrow 02:00" or "12 Nov 02:00". Times are UTC."""
    if at <= now:
        return "Now"
    if at - now < timedelta(hours=1):
        return f"in {format_span(at - now)}"
    days = (at.date() - now.date()).days
    if days < 2:  # noqa: PLR2004 - days that have a name
        return f"{('Today', 'Tomorrow')[days]} {at:%H:%M}"
    return f"{format_date(at.date(), now.date())} {at:%H:%M}"


def count_of(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
