"""Named points in the code at which tests kill or stop a worker or raise an error.

In production, each point costs only one comparison.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass

from octavo.core.errors import BadSetting, StorageFailed

POINTS = (
    "claim.after",
    "stage.work.before",
    "stage.commit.before",
    "stage.commit.after",
    "complete.before",
    "complete.after",
    "fail.before",
    "fail.after",
    "heartbeat.before",
)
ACTIONS = ("kill", "stop", "raise")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault to inject: do `action` when `point` is reached for the `number`th time."""

    point: str
    number: int
    action: str


class FaultPlan:
    """The faults to inject, such as `claim.after@3=kill,fail.before@1=stop`. Used only in tests."""

    def __init__(self, text: str) -> None:
        self._faults = [_parse(part) for part in text.split(",") if part]
        self._reached: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        if not self._faults:
            return
        self._reached[point] += 1
        for fault in self._faults:
            if (fault.point, fault.number) == (point, self._reached[point]):
                _act(fault.action)


def _parse(text: str) -> Fault:
    point, _, rest = text.partition("@")
    number, _, action = rest.partition("=")
    if point not in POINTS or not number.isdigit() or action not in ACTIONS:
        raise BadSetting(f"OCTAVO_FAULTS: {text} must look like {POINTS[0]}@1={ACTIONS[0]}.")
    return Fault(point, int(number), action)


def _act(action: str) -> None:
    match action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case _:
            raise StorageFailed("Injected by a test.")
