"""Explains in words why a job is waiting, based on the database view `job_waiting`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from octavo.records.jobs import WaitingBecause

# The view counts positions only up to this number.
COUNTED_PLACES = 1000


def waiting_because(reason: str, facts: dict[str, Any]) -> WaitingBecause:
    if "run_after" in facts:
        facts = facts | {"run_after": datetime.fromisoformat(facts["run_after"]).astimezone(UTC).isoformat()}
    return WaitingBecause(reason, explain_waiting(reason, facts), facts)


def explain_waiting(reason: str, facts: Mapping[str, Any], zone: tzinfo | None = UTC) -> str:
    """The reason in words. Times are in the given time zone; None means the time zone of this machine."""
    return SENTENCES[reason](facts, zone)


def _no_worker(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    return "no running worker supports this job kind" if facts["live_workers"] else "no worker is running"


def _position(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    place: int = facts["position"]
    return f"{ordinal(place)} in the queue" if place <= COUNTED_PLACES else f"behind {COUNTED_PLACES:,}+ others"


def _next_try(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    when = datetime.fromisoformat(facts["run_after"]).astimezone(zone)
    today = when.date() == datetime.now(when.tzinfo).date()
    return f"{when:%H:%M %Z}" if today else f"{when:%Y-%m-%d %H:%M %Z}"


def _backing_off(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    time = _next_try(facts, zone)
    if not facts["attempt"]:
        return f"starts {time}"
    after = f" after {facts['error']['code']}" if "error" in facts else ""
    return f"next attempt {time} (attempt {facts['failures'] + 1} of {facts['max_attempts']}){after}"


def _provider(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    return f"the model provider is not accepting requests, next attempt {_next_try(facts, zone)}"


def _cap(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    group, colon, _ = facts["cap_key"].partition(":")
    return f"{facts['taken']} of {'this ' if colon else ''}{group} already running"


def _paused(facts: Mapping[str, Any], zone: tzinfo | None) -> str:
    del zone
    return "over budget" if facts.get("code") == "OVER_BUDGET" else facts.get("message") or "paused"


def ordinal(number: int) -> str:
    teens = 11 <= number % 100 <= 13  # noqa: PLR2004 - eleventh, twelfth, thirteenth
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


SENTENCES: dict[str, Callable[[Mapping[str, Any], tzinfo | None], str]] = {
    "no_worker": _no_worker,
    "behind": _position,
    "backing_off": _backing_off,
    "provider": _provider,
    "cap": _cap,
    "paused": _paused,
    "alone": lambda _facts, _zone: "workers crashed while running it, so a worker runs only one such job at a time",
}
