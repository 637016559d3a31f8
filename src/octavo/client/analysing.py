"""Prompts and analyses, as the API has them, and the calls for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from octavo.client.reading import Record, read_page, read_record
from octavo.client.records import Eta, Problem
from octavo.client.wire import Ask, Wire
from octavo.core.pagination import Page

Mode = Literal["parallel", "sequential"]
MOST_LISTED = 500


@dataclass(frozen=True, slots=True)
class Prompt:
    """`built_in`: it came with the installation and is changed by nobody."""

    id: UUID
    title: str
    content: str
    system: str
    execution_order: int
    active: bool
    version: int
    built_in: bool


@dataclass(frozen=True, slots=True)
class Done:
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ItemsDone(Done):
    failed: int
    running: int


@dataclass(frozen=True, slots=True)
class Percent:
    upload: int
    processing: int
    overall: int


@dataclass(frozen=True, slots=True)
class Health:
    ok: bool
    message: str


@dataclass(frozen=True, slots=True)
class Analysis:
    id: UUID
    document_id: UUID
    title: str
    mode: Mode
    at_once: int
    status: Literal["created", "queued", "analyzing", "completed", "error"]
    phase: str
    unit: str | None
    units: int | None
    segments: Done
    items: ItemsDone
    results: Done
    percent: Percent
    mean_item_seconds: float | None
    eta: Eta | None
    elapsed_seconds: float
    tokens: int
    cost_usd: float
    workers: int
    retries: int
    health: Health
    error: Problem | None
    created_at: datetime
    completed_at: datetime | None

    @property
    def is_over(self) -> bool:
        return self.status in ("completed", "error")


@dataclass(frozen=True, slots=True)
class Citation:
    """Not `verified`: the quote was not found on that page."""

    page: int
    quote: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Item:
    """What a segment, from page `first` to `last`, said to a prompt."""

    id: UUID
    segment_id: UUID
    prompt_id: UUID
    prompt_title: str
    first: int
    last: int
    status: str
    content: str | None
    citations: list[Citation]
    error: Problem | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Result:
    """`content` is the answer to a prompt for the whole document."""

    prompt_id: UUID
    title: str
    status: str
    content: str | None
    citations: list[Citation]
    made_by: str | None
    error: Problem | None


class AnalysisCalls:
    """Prompts asked of whole documents."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def list_prompts(self) -> list[Prompt]:
        return (await self._list(Prompt, "/prompts", limited=False)).items

    async def add_prompt(self, title: str, content: str, **more: object) -> Prompt:
        """`system`, `execution_order` and `active` may be given, too."""
        ask = Ask("POST", "/prompts", json={"title": title, "content": content, **more})
        return read_record(Prompt, await self._wire.call(ask))

    async def change_prompt(self, prompt: UUID, **changes: object) -> Prompt:
        ask = Ask("PATCH", f"/prompts/{prompt}", repeatable=True, json=changes)
        return read_record(Prompt, await self._wire.call(ask))

    async def delete_prompt(self, prompt: UUID) -> None:
        await self._wire.call(Ask("DELETE", f"/prompts/{prompt}", repeatable=True))

    async def start(
        self,
        document: UUID,
        prompts: Sequence[UUID] | None = None,
        *,
        mode: Mode = "parallel",
        at_once: int | None = None,
    ) -> Analysis:
        """Ask these prompts, or all active ones, of a document whose text is ready."""
        wanted: dict[str, Any] = {"document_id": str(document), "mode": mode}
        wanted |= {"prompt_ids": [str(one) for one in prompts]} if prompts is not None else {}
        wanted |= {"at_once": at_once} if at_once is not None else {}
        return read_record(Analysis, await self._wire.call(Ask("POST", "/analyses", json=wanted)))

    async def show(self, analysis: UUID) -> Analysis:
        return read_record(Analysis, await self._get(f"/analyses/{analysis}"))

    async def list(self, *, cursor: str | None = None) -> Page[Analysis]:
        """Newest first."""
        return await self._list(Analysis, "/analyses", cursor)

    async def list_items(self, analysis: UUID) -> Sequence[Item]:
        """All of them, in the order in which they are asked."""
        page = await self._list(Item, f"/analyses/{analysis}/items")
        found = page.items
        while page.next_cursor:
            page = await self._list(Item, f"/analyses/{analysis}/items", page.next_cursor)
            found += page.items
        return found

    async def list_results(self, analysis: UUID) -> Sequence[Result]:
        return (await self._list(Result, f"/analyses/{analysis}/results", limited=False)).items

    async def rerun(self, analysis: UUID, *, prompt: UUID | None = None, item: UUID | None = None) -> Analysis:
        """Ask one item, the items of a prompt, or everything anew."""
        wanted = {name: str(one) for name, one in (("prompt_id", prompt), ("item_id", item)) if one}
        return read_record(Analysis, await self._wire.call(Ask("POST", f"/analyses/{analysis}/rerun", json=wanted)))

    async def change_prompts(self, analysis: UUID, prompts: Sequence[UUID]) -> Analysis:
        """Only what is new is asked."""
        wanted = {"prompt_ids": [str(one) for one in prompts]}
        ask = Ask("PUT", f"/analyses/{analysis}/prompts", repeatable=True, json=wanted)
        return read_record(Analysis, await self._wire.call(ask))

    async def cancel(self, analysis: UUID) -> Analysis:
        return read_record(Analysis, await self._wire.call(Ask("POST", f"/analyses/{analysis}/cancel")))

    async def retry(self, analysis: UUID) -> Analysis:
        """Go on with what failed, was stopped or abandoned."""
        return read_record(Analysis, await self._wire.call(Ask("POST", f"/analyses/{analysis}/retry")))

    async def delete(self, analysis: UUID) -> None:
        await self._wire.call(Ask("DELETE", f"/analyses/{analysis}", repeatable=True))

    async def _get(self, path: str, query: dict[str, str] | None = None) -> Any:  # noqa: ANN401 - any JSON
        return await self._wire.call(Ask("GET", path, repeatable=True, query=query or {}))

    async def _list(
        self, record: type[Record], path: str, cursor: str | None = None, *, limited: bool = True
    ) -> Page[Record]:
        query = {"limit": str(MOST_LISTED)} if limited else {}
        return read_page(record, await self._get(path, query | ({"cursor": cursor} if cursor else {})))
