"""What has to be done once a day: room for next month's events, and an end to what killed processes left behind."""

from __future__ import annotations

from functools import partial

from octavo.convert.conversions import expire_conversions
from octavo.core.types import JSON
from octavo.database import load_queries
from octavo.deliver.notifications import forget_notifications
from octavo.deliver.subscribers import forget_attempts
from octavo.intake.sweep import sweep_abandoned
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.jobs.schedules import Schedule
from octavo.library.pictures import forget_pictures
from octavo.library.sweep import purge_old_trash, sweep_objects
from octavo.pipeline.tools import Tools

QUERIES = load_queries("housekeeping")
EVENTS = load_queries("events")
# A write that is still going on after a day is not going on any more.
UNFINISHED_SECONDS = 24 * 3600


async def keep_house(run: Run[Tools]) -> JSON:
    async def make_room() -> JSON:
        async with run.tools.database.connection() as connection:
            await connection.execute(EVENTS.ensure_partitions)
        return None

    async def forget_sign_ins() -> JSON:
        async with run.tools.database.transaction() as connection:
            links = await connection.execute(QUERIES.forget_links)
            sessions = await connection.execute(QUERIES.forget_sessions)
            visitors = await connection.execute(QUERIES.forget_visitors)
            return links.rowcount + sessions.rowcount + visitors.rowcount

    tools = run.tools

    async def close_uploads() -> JSON:
        return await sweep_abandoned(tools.database, tools.bucket, UNFINISHED_SECONDS)

    async def empty_trash() -> JSON:
        return await purge_old_trash(tools.database, tools.bucket, tools.settings.trash_days)

    async def sweep_storage() -> JSON:
        return await tools.bucket.sweep_unfinished(UNFINISHED_SECONDS)

    async def remove_orphans() -> JSON:
        return await sweep_objects(tools.database, tools.bucket, UNFINISHED_SECONDS)

    async def forget_deliveries() -> JSON:
        return await forget_attempts(tools.database)

    async def forget_old_news() -> JSON:
        return await forget_notifications(tools.database)

    async def forget_old_pictures() -> JSON:
        return await forget_pictures(tools.database, tools.bucket)

    await run.stage("events", make_room)
    return {
        "sign_ins_forgotten": await run.stage("sign-ins", forget_sign_ins),
        "uploads_abandoned": await run.stage("uploads", close_uploads),
        "documents_purged": await run.stage("trash", empty_trash),
        "conversions_expired": await run.stage(
            "conversions", partial(expire_conversions, tools.database, tools.bucket)
        ),
        "unfinished_writes_removed": await run.stage("storage", sweep_storage),
        "orphans_removed": await run.stage("orphans", remove_orphans),
        "deliveries_forgotten": await run.stage("deliveries", forget_deliveries),
        "notifications_forgotten": await run.stage("notifications", forget_old_news),
        "pictures_forgotten": await run.stage("pictures", forget_old_pictures),
    }


KIND = JobKind("housekeeping", keep_house, time_limit_seconds=600)
SCHEDULE = Schedule("housekeeping", KIND.name, "17 3 * * *")
