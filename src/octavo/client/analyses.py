"""API calls for prompts, and for analyses, which run prompts on whole documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

from octavo.client.transport import Record, Request, Transport, read_page, read_record
from octavo.core.pagination import Page
from octavo.records.analyses import Analysis, ItemView, Prompt, ResultView

Mode = Literal["parallel", "sequential"]
MOST_LISTED = 500


class AnalysisCalls:
    """API calls that run prompts on whole documents, and manage the saved prompts."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list_prompts(self) -> list[Prompt]:
        return (await self._list(Prompt, "/prompts", limited=False)).items

    async def add_prompt(self, title: str, content: str, **more: object) -> Prompt:
        """Add a prompt. `more` can contain the fields `system`, `execution_order` and `active`."""
        request = Request("POST", "/prompts", json={"title": title, "content": content, **more})
        return read_record(Prompt, await self._transport.call(request))

    async def change_prompt(self, prompt: UUID, **changes: object) -> Prompt:
        request = Request("PATCH", f"/prompts/{prompt}", repeatable=True, json=changes)
        return read_record(Prompt, await self._transport.call(request))

    async def delete_prompt(self, prompt: UUID) -> None:
        await self._transport.call(Request("DELETE", f"/prompts/{prompt}", repeatable=True))

    async def start(
        self,
        document: UUID,
        prompts: Sequence[UUID] | None = None,
        *,
        mode: Mode = "parallel",
        at_once: int | None = None,
    ) -> Analysis:
        """Run these prompts, or all active ones, on a document whose text is ready."""
        body: dict[str, Any] = {"document_id": str(document), "mode": mode}
        body |= {"prompt_ids": [str(one) for one in prompts]} if prompts is not None else {}
        body |= {"at_once": at_once} if at_once is not None else {}
        return read_record(Analysis, await self._transport.call(Request("POST", "/analyses", json=body)))

    async def show(self, analysis: UUID) -> Analysis:
        return read_record(Analysis, await self._transport.get(f"/analyses/{analysis}"))

    async def list(
        self, *, id_part: str | None = None, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[Analysis]:
        """List analyses, newest first. `id_part`: the beginning or end of an id."""
        given = {"id": id_part, "cursor": cursor, "limit": str(limit)}
        query = {name: value for name, value in given.items() if value is not None}
        return read_page(Analysis, await self._transport.get("/analyses", query))

    async def list_items(self, analysis: UUID) -> Sequence[ItemView]:
        """List all items of an analysis, in the order in which they run.

        An item is one prompt on one range of pages.
        """
        page = await self._list(ItemView, f"/analyses/{analysis}/items")
        items = page.items
        while page.next_cursor:
            page = await self._list(ItemView, f"/analyses/{analysis}/items", page.next_cursor)
            items += page.items
        return items

    async def list_results(self, analysis: UUID) -> Sequence[ResultView]:
        return (await self._list(ResultView, f"/analyses/{analysis}/results", limited=False)).items

    async def rerun(self, analysis: UUID, *, prompt: UUID | None = None, item: UUID | None = None) -> Analysis:
        """Run one item (a prompt on one range of pages), all items of one prompt, or all items again."""
        body = {name: str(one) for name, one in (("prompt_id", prompt), ("item_id", item)) if one}
        return await self._change(Request("POST", f"/analyses/{analysis}/rerun", json=body))

    async def change_prompts(self, analysis: UUID, prompts: Sequence[UUID]) -> Analysis:
        """Replace the prompts of an analysis. Only newly added prompts are run."""
        body = {"prompt_ids": [str(one) for one in prompts]}
        return await self._change(Request("PUT", f"/analyses/{analysis}/prompts", repeatable=True, json=body))

    async def export(self, analysis: UUID, form: str = "markdown") -> bytes:
        """Return the answers as a file in the format `form`: markdown, json or csv."""
        path, query = f"/analyses/{analysis}/export", {"format": form}
        response = await self._transport.send(Request("GET", path, repeatable=True, query=query))
        return response.content if response else b""

    async def stop(self, analysis: UUID) -> Analysis:
        return await self._change(Request("POST", f"/analyses/{analysis}/stop"))

    async def cancel(self, analysis: UUID) -> Analysis:
        return await self.stop(analysis)

    async def retry(self, analysis: UUID) -> Analysis:
        """Continue with the items that failed or were stopped."""
        return await self._change(Request("POST", f"/analyses/{analysis}/retry"))

    async def delete(self, analysis: UUID) -> None:
        await self._transport.call(Request("DELETE", f"/analyses/{analysis}", repeatable=True))

    async def _change(self, request: Request) -> Analysis:
        return read_record(Analysis, await self._transport.call(request))

    async def _list(
        self, record: type[Record], path: str, cursor: str | None = None, *, limited: bool = True
    ) -> Page[Record]:
        query = {"limit": str(MOST_LISTED)} if limited else {}
        return read_page(record, await self._transport.get(path, query | ({"cursor": cursor} if cursor else {})))
