"""All job kinds, schedules and chores of this version. A new kind is a file of its own and a line here."""

from __future__ import annotations

from octavo.ai.gateway import Gateway
from octavo.deliver.relay import relay
from octavo.jobs.kinds import Kinds
from octavo.jobs.schedules import Schedule
from octavo.jobs.worker import Chore
from octavo.pipeline import (
    analyse_document,
    answer_segment,
    consolidate_answers,
    convert_document,
    deliver_event,
    demo,
    detect_connections,
    embed_document,
    embed_tags,
    housekeeping,
    index_vectors,
    process_document,
    recover_analyses,
)
from octavo.pipeline.tools import Tools


def known_kinds() -> Kinds[Tools]:
    kinds: Kinds[Tools] = Kinds()
    for module in (
        analyse_document,
        answer_segment,
        consolidate_answers,
        convert_document,
        deliver_event,
        demo,
        detect_connections,
        embed_document,
        embed_tags,
        housekeeping,
        index_vectors,
        process_document,
        recover_analyses,
    ):
        kinds.add(module.KIND)
    return kinds


def known_schedules() -> list[Schedule]:
    return [housekeeping.SCHEDULE, recover_analyses.SCHEDULE]


def known_chores(gateway: Gateway) -> list[Chore]:
    return [relay, gateway.maintain]
