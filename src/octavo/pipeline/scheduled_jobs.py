"""Scheduled job kinds.

Housekeeping runs once a day. Jobs that recover stuck work and recompute outdated vectors run every five minutes.
"""

from __future__ import annotations

from functools import partial

from octavo.analyse.progress import recover_all
from octavo.convert.conversions import expire_conversions
from octavo.core.types import JSON
from octavo.database import Database, load_queries
from octavo.deliver.subscribers import forget_attempts, forget_notifications, warn_of_failing
from octavo.describe.embedding import delete_old_vectors, renew_vectors
from octavo.intake.upload_rows import sweep_abandoned
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind, Schedule
from octavo.library.bulk import forget_changes
from octavo.library.files import forget_pictures
from octavo.library.sweep import (
    ArchivePart,
    ObjectSweep,
    archive_events,
    archive_jobs,
    delete_kept_objects,
    expire_collections,
    expire_visitors,
    purge_old_trash,
)
from octavo.pipeline.tools import Tools
from octavo.pipeline.vector_jobs import queue_due_indexes
from octavo.search.threads import forget_threads

QUERIES = load_queries("housekeeping")
EVENTS = load_queries("events")
# A write that has not finished after a day counts as abandoned.
UNFINISHED_SECONDS = 24 * 3600
ORPHANS = "orphans"


async def do_housekeeping(run: Run[Tools]) -> JSON:
    """Create next month's event partitions, and remove expired data and data that killed processes left behind."""

    async def create_partitions() -> JSON:
        async with run.tools.database.connection() as connection:
            await connection.execute(EVENTS.ensure_partitions)
        return None

    async def forget_sign_ins() -> JSON:
        async with run.tools.database.transaction() as connection:
            links = await connection.execute(QUERIES.forget_links)
            sessions = await connection.execute(QUERIES.forget_sessions)
            await connection.execute(QUERIES.mark_left)
            visitors = await connection.execute(QUERIES.forget_visitors)
            await connection.execute(QUERIES.forget_answers)
            return links.rowcount + sessions.rowcount + visitors.rowcount

    tools = run.tools

    async def close_uploads() -> JSON:
        return await sweep_abandoned(tools.database, tools.bucket, UNFINISHED_SECONDS)

    async def empty_trash() -> JSON:
        return await purge_old_trash(tools.database, tools.bucket, tools.settings.trash_days)

    async def sweep_storage() -> JSON:
        return await tools.bucket.sweep_unfinished(UNFINISHED_SECONDS)

    async def delete_kept() -> JSON:
        async with tools.database.connection() as connection:
            return await delete_kept_objects(connection, tools.bucket)

    await run.stage("events", create_partitions)
    visitors = partial(expire_visitors, tools.database, tools.bucket, tools.settings.anonymous_days)
    return {
        "visitors_expired": await run.stage("visitors", visitors),
        "documents_expired": await run.stage("collections", partial(expire_collections, tools.database)),
        "sign_ins_forgotten": await run.stage("sign-ins", forget_sign_ins),
        "uploads_abandoned": await run.stage("uploads", close_uploads),
        "documents_purged": await run.stage("trash", empty_trash),
        "conversions_expired": await run.stage(
            "conversions", partial(expire_conversions, tools.database, tools.bucket)
        ),
        "unfinished_writes_removed": await run.stage("storage", sweep_storage),
        "kept_objects_removed": await run.stage("kept objects", delete_kept),
        "deliveries_forgotten": await run.stage("deliveries", partial(forget_attempts, tools.database)),
        "failing_recipients_reported": await run.stage("failing recipients", partial(warn_of_failing, tools.database)),
        "notifications_forgotten": await run.stage("notifications", partial(forget_notifications, tools.database)),
        "threads_forgotten": await run.stage(
            "threads", partial(forget_threads, tools.database, tools.settings.thread_days)
        ),
        "pictures_forgotten": await run.stage("pictures", partial(forget_pictures, tools.database, tools.bucket)),
        "changes_forgotten": await run.stage("changes", partial(forget_changes, tools.database)),
        "improvements_retried": await run.stage("improvements", partial(_retry_improvements, tools.database)),
        "events_archived": await _archive(run, "events archived", archive_events),
        "jobs_archived": await _archive(run, "jobs archived", archive_jobs),
        "orphans_removed": await _remove_orphans(run),
    }


async def _remove_orphans(run: Run[Tools]) -> int:
    """Delete objects without a database row. Runs last and in parts, because listing a large bucket is slow."""
    finished = [one for one in await run.finished_outputs({ORPHANS}) if isinstance(one, dict)]
    after = max(finished, key=lambda one: int(str(one["part"])), default={"part": 0, "last": ""})
    sweep = ObjectSweep(run.tools.database, run.tools.bucket, UNFINISHED_SECONDS, str(after["last"]))
    number, removed = int(str(after["part"])), sum(int(str(one["removed"])) for one in finished)
    while not sweep.has_ended:
        number += 1

        async def work(part: int = number) -> JSON:
            return {"removed": await sweep.sweep_part(), "part": part, "last": sweep.last}

        made = await run.stage(ORPHANS, work, part=str(number))
        removed += int(str(made["removed"])) if isinstance(made, dict) else 0
    return removed


async def _archive(run: Run[Tools], stage: str, archive: ArchivePart) -> int:
    """Move old rows from the database to the storage. Returns the number of rows.

    The rows are moved in parts, because a stage has a time limit.
    """
    tools, days = run.tools, run.tools.settings.history_days
    total = part = 0
    while days:

        async def work() -> JSON:
            return await archive(tools.database, tools.bucket, days)

        rows = await run.stage(stage, work, part=str(part))
        part, total = part + 1, total + int(str(rows))
        if not rows:
            break
    return total


async def _retry_improvements(database: Database) -> JSON:
    async with database.transaction() as connection:
        return (await connection.execute(QUERIES.retry_improvements)).rowcount


async def recover_analyses(run: Run[Tools]) -> JSON:
    """Continue analyses whose jobs were lost, and abandon analyses that made no progress for two days."""
    enqueued, abandoned = await recover_all(run.database)
    return {"lined_up": enqueued, "abandoned": abandoned}


async def renew_all_vectors(run: Run[Tools]) -> JSON:
    """Enqueue jobs for documents with vectors from an earlier embedding model, and for indexes that must be built.

    Deletes earlier vectors that are no longer needed.
    """
    async with run.tools.database.transaction() as connection:
        queued = await renew_vectors(connection, run.tools.settings)
        indexes = await queue_due_indexes(connection)
    return {"queued": queued, "indexes": indexes, "deleted": await delete_old_vectors(run.tools.database)}


async def resume_documents(run: Run[Tools]) -> JSON:
    """Retry jobs that failed to generate summaries, tags, vectors or connections of readable documents.

    A job is retried no earlier than ten minutes after it failed for good. The intervals between further retries
    increase. After 30 days, the job is no longer retried.
    """
    async with run.tools.database.transaction() as connection:
        return {"queued": (await connection.execute(QUERIES.resume_documents)).rowcount}


KINDS = (
    JobKind("housekeeping", do_housekeeping, time_limit_seconds=600, limit_renewed_by_stage=True),
    JobKind("recover_analyses", recover_analyses, time_limit_seconds=300),
    JobKind("renew_vectors", renew_all_vectors, time_limit_seconds=300),
    JobKind("resume_documents", resume_documents, time_limit_seconds=300),
)
SCHEDULES = (
    Schedule("housekeeping", "housekeeping", "17 3 * * *"),
    Schedule("recover_analyses", "recover_analyses", "*/5 * * * *"),
    Schedule("renew_vectors", "renew_vectors", "*/5 * * * *"),
    Schedule("resume_documents", "resume_documents", "*/5 * * * *"),
)
