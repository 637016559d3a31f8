"""All job kinds and schedules of this version. A new kind is a file of its own and a line here."""

from __future__ import annotations

from octavo.jobs.kinds import Kinds
from octavo.jobs.schedules import Schedule
from octavo.pipeline import demo, housekeeping, process_document
from octavo.pipeline.tools import Tools


def known_kinds() -> Kinds[Tools]:
    kinds: Kinds[Tools] = Kinds()
    for kind in (demo.KIND, housekeeping.KIND, process_document.KIND):
        kinds.add(kind)
    return kinds


def known_schedules() -> list[Schedule]:
    return [housekeeping.SCHEDULE]
