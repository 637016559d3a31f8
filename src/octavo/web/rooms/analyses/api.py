"""The API for prompts, and for analyses, which run prompts on whole documents."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool
from pydantic_core import to_json

from octavo.analyse import analyses, details, prompts
from octavo.analyse.analyses import AT_ONCE, MOST_AT_ONCE, Mode
from octavo.analyse.details import ENDINGS, MEDIA_TYPES, ExportFormat, SegmentView, as_csv, as_markdown
from octavo.analyse.prompts import PromptFields, PromptVersion
from octavo.core.http import Page
from octavo.deliver.subscribers import notify_requester
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.records.analyses import Analysis, ItemView, Prompt, ResultView
from octavo.storage import attachment_header
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import (
    WHOLE,
    Cursor,
    IdPart,
    IfMatch,
    Limit,
    check_match,
    etag_of,
    lock_edit,
    problems,
)

router = APIRouter(prefix="/api/v1/analyses", tags=["analyses"])

Prompts = Annotated[list[UUID], Field(min_length=1, max_length=100)]


class NewAnalysis(BaseModel):
    """An analysis to start. If `prompt_ids` is null, all active prompts are run.

    The document is divided into segments (ranges of pages). If `mode` is `sequential`, the segments are run in order,
    each with the previous answer as context. If it is `parallel`, the previous answer is added only if it already
    exists. `at_once` is the number of parallel requests.
    """

    model_config = ConfigDict(extra="forbid")

    document_id: UUID
    prompt_ids: Prompts | None = None
    mode: Mode = "parallel"
    at_once: Annotated[int, Field(ge=1, le=MOST_AT_ONCE), WHOLE] = AT_ONCE


class PromptSelection(BaseModel):
    model_config = ConfigDict(extra="forbid")

    prompt_ids: Prompts | None = None


class RerunRequest(BaseModel):
    """Selects the answers to discard and request again.

    `item_id` selects the answer of one item (a prompt on one segment), and `prompt_id` all answers to one prompt. If
    both are null, all answers are selected.
    """

    model_config = ConfigDict(extra="forbid")

    prompt_id: UUID | None = None
    item_id: UUID | None = None


@router.get("", responses=problems(401, 422))
async def list_analyses(
    services: ServicesOf,
    caller: ReadCaller,
    id: IdPart = None,  # noqa: A002 - the name of the query parameter
    document_id: UUID | None = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Analysis]:
    """List your analyses, newest first."""
    async with services.database.connection() as connection:
        return await details.list_analyses(
            connection, caller.owner_id, id_part=id, document=document_id, cursor=cursor, limit=limit
        )


@router.post("", status_code=202, responses=problems(400, 401, 403, 404, 409, 422))
async def start_analysis(
    services: ServicesOf, caller: WriteCaller, wanted: NewAnalysis, idempotency: IdempotencyOf
) -> Analysis:
    """Run prompts on a document whose text is ready."""
    async with services.database.transaction() as connection:
        analysis = await analyses.start_analysis(
            connection,
            caller.owner_id,
            wanted.document_id,
            wanted.prompt_ids,
            mode=wanted.mode,
            at_once=wanted.at_once,
        )
        if services.settings.smtp_url:
            await notify_requester(connection, caller, analysis)
        shown = await details.show_analysis(connection, caller.owner_id, analysis)
        return await idempotency.keep(connection, shown)


@router.get("/{analysis}", responses=problems(401, 404, 422))
async def show_analysis(services: ServicesOf, caller: ReadCaller, analysis: UUID) -> Analysis:
    """Return the progress and health of an analysis."""
    async with services.database.connection() as connection:
        return await details.show_analysis(connection, caller.owner_id, analysis)


@router.delete("/{analysis}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete_analysis(services: ServicesOf, caller: WriteCaller, analysis: UUID) -> None:
    """Delete an analysis permanently, with all answers. The document is kept."""
    async with services.database.transaction() as connection:
        await analyses.delete_analysis(connection, caller.owner_id, analysis)


@router.get("/{analysis}/segments", responses=problems(401, 404, 422))
async def list_segments(services: ServicesOf, caller: ReadCaller, analysis: UUID) -> Page[SegmentView]:
    """List the segments of the document. A segment is a range of pages that is sent to a model in one call."""
    async with services.database.connection() as connection:
        return Page(await details.list_segments(connection, caller.owner_id, analysis), None)


@router.get("/{analysis}/items", responses=problems(401, 404, 422))
async def list_items(
    services: ServicesOf, caller: ReadCaller, analysis: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[ItemView]:
    """List the items, each with its answer, in order of execution.

    An item is one prompt on one segment (range of pages).
    """
    async with services.database.connection() as connection:
        return await details.list_items(connection, caller.owner_id, analysis, cursor=cursor, limit=limit)


@router.get("/{analysis}/results", responses=problems(401, 404, 422))
async def list_results(services: ServicesOf, caller: ReadCaller, analysis: UUID) -> Page[ResultView]:
    """List the combined answer to each prompt, with citations.

    If a quote was not found on the cited page, its citation is not `verified`.
    """
    async with services.database.connection() as connection:
        return Page(await details.list_results(connection, caller.owner_id, analysis), None)


@router.get("/{analysis}/export", response_class=Response, responses=problems(401, 404, 422))
async def export_analysis(
    services: ServicesOf,
    caller: ReadCaller,
    analysis: UUID,
    form: Annotated[ExportFormat, Query(alias="format")] = "markdown",
) -> Response:
    """Download the answers as a file: `markdown`, `json` or `csv`. The JSON contains the analysis and its results."""
    async with services.database.connection() as connection:
        shown = await details.show_analysis(connection, caller.owner_id, analysis)
        results = await details.list_results(connection, caller.owner_id, analysis)
    match form:
        case "markdown":
            content = as_markdown(shown, results).encode()
        case "csv":
            content = as_csv(shown, results).encode("utf-8-sig")  # Excel needs the byte order mark
        case "json":
            content = to_json({"analysis": shown, "results": results}, indent=2)
    name = f"{shown.title} - analysis.{ENDINGS[form]}"
    headers = {"content-disposition": attachment_header(name)}
    return Response(content, media_type=MEDIA_TYPES[form], headers=headers)


@router.put("/{analysis}/prompts", responses=problems(400, 401, 403, 404, 409, 422))
async def change_prompts(
    services: ServicesOf, caller: WriteCaller, analysis: UUID, wanted: PromptSelection
) -> Analysis:
    """Change the prompts of an analysis. Only new or changed prompts are run."""
    async with services.database.transaction() as connection:
        await analyses.change_prompts(connection, caller.owner_id, analysis, wanted.prompt_ids)
        return await details.show_analysis(connection, caller.owner_id, analysis)


@router.post("/{analysis}/rerun", responses=problems(400, 401, 403, 404, 409, 422))
async def rerun(
    services: ServicesOf,
    caller: WriteCaller,
    analysis: UUID,
    idempotency: IdempotencyOf,
    wanted: RerunRequest | None = None,
) -> Analysis:
    """Discard the selected answers and run their prompts again."""
    chosen = wanted or RerunRequest()
    async with services.database.transaction() as connection:
        await analyses.ask_again(connection, caller.owner_id, analysis, prompt=chosen.prompt_id, item=chosen.item_id)
        shown = await details.show_analysis(connection, caller.owner_id, analysis)
        return await idempotency.keep(connection, shown)


@router.post("/{analysis}/stop", responses=problems(401, 403, 404, 422))
async def stop_analysis(services: ServicesOf, caller: WriteCaller, analysis: UUID) -> Analysis:
    """Stop an analysis immediately. Existing answers are kept, and `retry` requests the missing ones.

    A stopped analysis is not reported as failed.
    """
    async with services.database.transaction() as connection:
        await analyses.stop_analysis(connection, caller.owner_id, analysis)
        return await details.show_analysis(connection, caller.owner_id, analysis)


@router.post("/{analysis}/cancel", responses=problems(401, 403, 404, 422))
async def cancel_analysis(services: ServicesOf, caller: WriteCaller, analysis: UUID) -> Analysis:
    """Stop an analysis immediately. This is the same as `stop`."""
    async with services.database.transaction() as connection:
        await analyses.stop_analysis(connection, caller.owner_id, analysis)
        return await details.show_analysis(connection, caller.owner_id, analysis)


@router.post("/{analysis}/retry", responses=problems(401, 403, 404, 422))
async def restart_analysis(
    services: ServicesOf, caller: WriteCaller, analysis: UUID, idempotency: IdempotencyOf
) -> Analysis:
    """Resume an analysis that failed, was stopped, has stalled, or has missing answers."""
    async with services.database.transaction() as connection:
        await analyses.restart_analysis(connection, caller.owner_id, analysis)
        shown = await details.show_analysis(connection, caller.owner_id, analysis)
        return await idempotency.keep(connection, shown)


prompts_router = APIRouter(prefix="/api/v1/prompts", tags=["analyses"])

Title = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Content = Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]*$")]
System = Annotated[str, Field(max_length=20_000, pattern=r"^[^\x00]*$")]
Order = Annotated[int, Field(ge=0, le=1_000_000), WHOLE]


class NewPrompt(BaseModel):
    """A prompt to add. `system` is the system prompt, which says how to answer.

    Prompts with a lower `execution_order` run first.
    """

    model_config = ConfigDict(extra="forbid")

    title: Title
    content: Content
    system: System = ""
    execution_order: Order = prompts.DEFAULT_ORDER
    active: StrictBool = True


class PromptChange(BaseModel):
    """Changes to a prompt. Fields that are not sent stay unchanged."""

    model_config = ConfigDict(extra="forbid")

    title: Title | None = None
    content: Content | None = None
    system: System | None = None
    execution_order: Order | None = None
    active: StrictBool | None = None


@prompts_router.get("", responses=problems(401))
async def list_prompts(services: ServicesOf, caller: ReadCaller) -> Page[Prompt]:
    """List your prompts and the `built_in` ones, in order of execution."""
    async with services.database.connection() as connection:
        return Page(await prompts.list_prompts(connection, caller.owner_id), None)


@prompts_router.post("", status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_prompt(
    services: ServicesOf, caller: WriteCaller, wanted: NewPrompt, idempotency: IdempotencyOf
) -> Prompt:
    """Add a prompt to your prompts."""
    async with services.database.transaction() as connection:
        added = await prompts.add_prompt(connection, caller.owner_id, PromptFields(**wanted.model_dump()))
        return await idempotency.keep(connection, added)


@prompts_router.get("/{prompt}", responses=problems(401, 404, 422))
async def show_prompt(services: ServicesOf, caller: ReadCaller, prompt: UUID, response: Response) -> Prompt:
    """Return one prompt."""
    async with services.database.connection() as connection:
        found = await prompts.show_prompt(connection, caller.owner_id, prompt)
    response.headers["etag"] = etag_of(found)
    return found


@prompts_router.get("/{prompt}/versions", responses=problems(401, 404, 422))
async def list_versions(services: ServicesOf, caller: ReadCaller, prompt: UUID) -> Page[PromptVersion]:
    """List all versions of a prompt, newest first."""
    async with services.database.connection() as connection:
        return Page(await prompts.list_versions(connection, caller.owner_id, prompt), None)


@prompts_router.patch("/{prompt}", responses=problems(400, 401, 403, 404, 409, 422))
async def change_prompt(
    services: ServicesOf,
    caller: WriteCaller,
    prompt: UUID,
    wanted: PromptChange,
    response: Response,
    if_match: IfMatch = None,
) -> Prompt:
    """Change a prompt. This creates a new version; analyses keep the version they ran with."""
    async with services.database.transaction() as connection:
        if if_match is not None:
            await lock_edit(connection, if_match, prompt)
            check_match(if_match, etag_of(await prompts.show_prompt(connection, caller.owner_id, prompt)))
        words = PromptFields(**wanted.model_dump())
        changed = await prompts.change_prompt(connection, caller.owner_id, prompt, words)
    response.headers["etag"] = etag_of(changed)
    return changed


@prompts_router.delete("/{prompt}", status_code=204, responses=problems(401, 403, 404, 409, 422))
async def delete_prompt(services: ServicesOf, caller: WriteCaller, prompt: UUID) -> None:
    """Delete a prompt. Its answers are kept."""
    async with services.database.transaction() as connection:
        await prompts.delete_prompt(connection, caller.owner_id, prompt)
