"""All job kinds, schedules and chores of this version. A new kind is a file of its own and a line here."""

from __future__ import annotations

from octavo.ai.gateway import Gateway
from octavo.deliver.relay import relay
from octavo.jobs.kinds import Kinds
from octavo.jobs.schedules import Schedule
from octavo.jobs.worker import Chore
from octavo.pipeline import deliver_event, demo, embed_document, embed_tags, housekeeping, process_document
from octavo.pipeline.tools import Tools


def known_kinds() -> Kinds[Tools]:
    kinds: Kinds[Tools] = Kinds()
    for module in (deliver_event, demo, embed_document, embed_tags, housekeeping, process_document):
        kinds.add(module.KIND)
    return kinds


def known_schedules() -> list[Schedule]:
    return [housekeeping.SCHEDULE]


def known_chores(gateway: Gateway) -> list[Chore]:
    return [relay, gateway.tend]
