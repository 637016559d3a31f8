"""Actions on analyses: start, change prompts, rerun, stop, restart, delete. Each runs in the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

from octavo.analyse import progress
from octavo.analyse.errors import NoPrompts, NotPlanned, NotReadable
from octavo.choreography import Cause, job_after
from octavo.core.errors import NotFound
from octavo.core.types import new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs import queue
from octavo.jobs.queue import enqueue

QUERIES = load_queries("analyses")
Mode = Literal["parallel", "sequential"]
AT_ONCE, MOST_AT_ONCE = 5, 10


async def start_analysis(
    connection: Connection,
    owner: UUID,
    document: UUID,
    prompts: Sequence[UUID] | None = None,
    *,
    mode: Mode = "parallel",
    at_once: int = AT_ONCE,
    cause: Cause = Cause.ANALYSIS_REQUESTED,
) -> UUID:
    """Run prompts on a document. If `prompts` is None, runs all active prompts.

    Returns the id of the analysis, which is also the id of its job.
    """
    values = {"owner": owner, "documents": [document]}
    found = await fetch_rows(connection, QUERIES.documents_to_analyse, values)
    if not found:
        raise NotFound(f"Document {document}.")
    if not found[0]["text_ready"]:
        raise NotReadable
    chosen = await _choose(connection, owner, prompts)
    (analysis,) = await _start(connection, owner, {document: found[0]["revision"]}, chosen, mode, at_once, cause)
    return analysis


async def start_analyses(
    connection: Connection,
    owner: UUID,
    documents: Sequence[UUID],
    prompts: Sequence[UUID] | None = None,
    *,
    mode: Mode = "parallel",
    at_once: int = AT_ONCE,
) -> list[UUID]:
    """Run prompts on many documents. If `prompts` is None, runs all active prompts.

    Documents without text are skipped.
    """
    chosen = await _choose(connection, owner, prompts)
    values = {"owner": owner, "documents": list(documents)}
    found = await fetch_rows(connection, QUERIES.documents_to_analyse, values)
    readable = {row["id"]: row["revision"] for row in found if row["text_ready"]}
    return await _start(connection, owner, readable, chosen, mode, at_once, Cause.ANALYSIS_REQUESTED)


async def _start(
    connection: Connection,
    owner: UUID,
    revisions: Mapping[UUID, int],
    prompts: list[UUID],
    mode: Mode,
    at_once: int,
    cause: Cause,
) -> list[UUID]:
    """Start one analysis for each document. `revisions` are the current revisions of the documents."""
    made = {document: new_id() for document in revisions}
    values: dict[str, Any] = {"owner": owner, "mode": mode, "at_once": at_once, "ids": list(made.values())}
    rows = {"documents": list(revisions), "revisions": list(revisions.values())}
    await connection.execute(QUERIES.insert_analyses, values | rows)
    await _add_prompts(connection, owner, values["ids"], prompts)
    await enqueue(connection, [job_after(cause, owner, document=one, job=job) for one, job in made.items()])
    await connection.execute(QUERIES.set_queued, {"analyses": values["ids"]})
    return values["ids"]


async def change_prompts(connection: Connection, owner: UUID, analysis: UUID, prompts: Sequence[UUID] | None) -> None:
    """Replace the prompts of an analysis. Prompts that it already had keep their answers; only new prompts run."""
    await _hold(connection, owner, analysis, planned=True)
    chosen = await _choose(connection, owner, prompts)
    values: dict[str, Any] = {"analysis": analysis}
    rows = await fetch_rows(connection, QUERIES.results_to_drop, values | {"prompts": chosen})
    dropped = values | {"prompts": [row["prompt_id"] for row in rows]}
    for row in await fetch_rows(connection, QUERIES.jobs_of_prompts, dropped):
        await queue.cancel(connection, row["id"], event="discarded")
    await connection.execute(QUERIES.delete_results, dropped)
    await _add_prompts(connection, owner, [analysis], chosen)
    await connection.execute(QUERIES.insert_items, values)
    await connection.execute(QUERIES.reopen, values)
    await progress.enqueue_due_items(connection, analysis)
    await progress.settle(connection, analysis)


async def ask_again(
    connection: Connection, owner: UUID, analysis: UUID, *, prompt: UUID | None = None, item: UUID | None = None
) -> int:
    """Discard answers and run their prompts again: for one item (a prompt on one range of pages), for one prompt, or
    for the whole analysis. Returns the number of items that run again.
    """
    await _hold(connection, owner, analysis, planned=True)
    wanted = {"analysis": analysis, "item": item, "prompt": prompt}
    items = [row["id"] for row in await fetch_rows(connection, QUERIES.items_to_ask, wanted)]
    if not items:
        raise NotFound
    return await progress.ask_again(connection, analysis, items)


async def stop_analysis(connection: Connection, owner: UUID, analysis: UUID) -> None:
    """Stop an analysis immediately. Its answers are kept, and a restart continues where it stopped."""
    await _hold(connection, owner, analysis)
    await progress.stop(connection, analysis)


async def restart_analysis(connection: Connection, owner: UUID, analysis: UUID) -> None:
    """Continue an analysis that failed, was stopped or abandoned, or has missing answers."""
    await _hold(connection, owner, analysis)
    await progress.restart(connection, analysis)


async def delete_analysis(connection: Connection, owner: UUID, analysis: UUID) -> None:
    """Delete an analysis permanently. The daily clean-up removes the files of its page ranges."""
    await stop_analysis(connection, owner, analysis)
    await connection.execute(QUERIES.delete_segment_files, {"analysis": analysis})
    await connection.execute(QUERIES.delete_analysis, {"analysis": analysis})


async def _hold(connection: Connection, owner: UUID, analysis: UUID, *, planned: bool = False) -> None:
    """Lock the rows of an analysis and its jobs.

    If `planned` is true, raises `NotPlanned` if the analysis has not been planned yet.
    """
    values = {"owner": owner, "analysis": analysis}
    await connection.execute(QUERIES.hold_jobs, values)
    rows = await fetch_rows(connection, QUERIES.hold, values)
    if not rows:
        raise NotFound
    if planned and not rows[0]["asked"]:
        raise NotPlanned


async def _choose(connection: Connection, owner: UUID, prompts: Sequence[UUID] | None) -> list[UUID]:
    wanted = None if prompts is None else list(prompts)
    rows = await fetch_rows(connection, QUERIES.choose_prompts, {"owner": owner, "prompts": wanted})
    chosen = [row["id"] for row in rows]
    if missing := set(wanted or ()) - set(chosen):
        raise NotFound(f"Prompt {min(missing)}.")
    if not chosen:
        raise NoPrompts
    return chosen


async def _add_prompts(connection: Connection, owner: UUID, analyses: list[UUID], prompts: list[UUID]) -> None:
    await connection.execute(QUERIES.insert_results, {"analyses": analyses, "owner": owner, "prompts": prompts})
