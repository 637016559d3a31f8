"""Lists all job kinds, schedules and background tasks of this version. Register the job kinds of new modules here."""

from __future__ import annotations

from octavo.convert.job_kind import BATCH_KIND as CONVERT_BATCH
from octavo.convert.job_kind import KIND as CONVERT
from octavo.deliver.deliveries import relay
from octavo.intake.sources.watching import source_chores
from octavo.jobs.kinds import Kinds, Schedule
from octavo.jobs.worker import Chore
from octavo.pipeline import (
    add_files,
    analyse_document,
    answer_segment,
    consolidate_answers,
    demo,
    detect_connections,
    improve_document,
    outgoing,
    process_document,
    scheduled_jobs,
    vector_jobs,
)
from octavo.pipeline.tools import Tools


def known_kinds() -> Kinds[Tools]:
    kinds: Kinds[Tools] = Kinds()
    for kind in (
        add_files.KIND,
        analyse_document.KIND,
        answer_segment.KIND,
        consolidate_answers.KIND,
        CONVERT,
        CONVERT_BATCH,
        demo.KIND,
        detect_connections.KIND,
        improve_document.KIND,
        *outgoing.KINDS,
        process_document.KIND,
        *scheduled_jobs.KINDS,
        *vector_jobs.KINDS,
    ):
        kinds.add(kind)
    return kinds


def known_schedules() -> list[Schedule]:
    return list(scheduled_jobs.SCHEDULES)


def known_chores(tools: Tools) -> list[Chore]:
    return [relay, tools.gateway.maintain, *source_chores(tools.connections)]
