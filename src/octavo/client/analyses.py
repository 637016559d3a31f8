"""API calls for prompts, and for analyses, which run prompts on whole documents."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from octavo.client.calls import MOST_LISTED, Call, Calls, given, wait_until
from octavo.client.transport import Repeat
from octavo.core.http import Page
from octavo.records.analyses import Analysis, ItemView, Prompt, PromptVersion, ResultView, SegmentView

Mode = Literal["parallel", "sequential"]


class AnalysisCalls(Calls):
    """API calls that run prompts on whole documents, and manage the saved prompts."""

    @Call
    async def list_prompts(self) -> builtins.list[Prompt]:
        return (await self._list(Prompt, "/prompts")).items

    @Call
    async def add_prompt(self, title: str, content: str, **more: object) -> Prompt:
        """Add a prompt. `more` can contain the fields `system`, `execution_order` and `active`."""
        return await self._post(Prompt, "/prompts", {"title": title, "content": content, **more})

    @Call
    async def show_prompt(self, prompt: UUID) -> Prompt:
        return await self._get(Prompt, f"/prompts/{prompt}")

    @Call
    async def list_prompt_versions(self, prompt: UUID) -> Sequence[PromptVersion]:
        """List all versions of a prompt, newest first."""
        return (await self._list(PromptVersion, f"/prompts/{prompt}/versions")).items

    @Call
    async def change_prompt(self, prompt: UUID, **changes: object) -> Prompt:
        return await self._patch(Prompt, f"/prompts/{prompt}", changes)

    @Call
    async def delete_prompt(self, prompt: UUID) -> None:
        await self._delete(f"/prompts/{prompt}")

    @Call
    async def start(
        self,
        document: UUID,
        prompts: Sequence[UUID] | None = None,
        *,
        mode: Mode = "parallel",
        at_once: int | None = None,
    ) -> Analysis:
        """Run prompts on a document whose text is ready. If `prompts` is None, all active prompts are run.

        `at_once` is the number of requests that are sent to the model in parallel.
        """
        ids = [str(one) for one in prompts] if prompts is not None else None
        body = given(document_id=str(document), mode=mode, prompt_ids=ids, at_once=at_once)
        return await self._post(Analysis, "/analyses", body)

    @Call
    async def show(self, analysis: UUID) -> Analysis:
        return await self._get(Analysis, f"/analyses/{analysis}")

    @Call
    async def wait(self, analysis: UUID, *, timeout_seconds: float | None = None) -> Analysis:
        """Wait until an analysis completes, fails or is stopped. Raises TimeoutError after `timeout_seconds`."""
        return await wait_until(lambda: self.show(analysis), lambda found: found.is_over, timeout_seconds)

    @Call
    async def list(
        self,
        *,
        id_part: str | None = None,
        document: UUID | None = None,
        cursor: str | None = None,
        limit: int = MOST_LISTED,
    ) -> Page[Analysis]:
        """List analyses, newest first. `id_part` is the beginning or end of an id."""
        return await self._list(Analysis, "/analyses", id=id_part, document_id=document, cursor=cursor, limit=limit)

    @Call
    async def list_segments(self, analysis: UUID) -> Sequence[SegmentView]:
        """List the ranges of pages into which the document was divided."""
        return (await self._list(SegmentView, f"/analyses/{analysis}/segments")).items

    @Call
    async def list_items(self, analysis: UUID) -> Sequence[ItemView]:
        """List all items of an analysis, in the order in which they run.

        An item is one prompt on one range of pages.
        """
        path = f"/analyses/{analysis}/items"
        page = await self._list(ItemView, path, limit=MOST_LISTED)
        items = page.items
        while page.next_cursor:
            page = await self._list(ItemView, path, limit=MOST_LISTED, cursor=page.next_cursor)
            items += page.items
        return items

    @Call
    async def list_results(self, analysis: UUID) -> Sequence[ResultView]:
        return (await self._list(ResultView, f"/analyses/{analysis}/results")).items

    @Call
    async def rerun(self, analysis: UUID, *, prompt: UUID | None = None, item: UUID | None = None) -> Analysis:
        """Rerun one item (a prompt on one range of pages), all items of one prompt or, by default, all items."""
        body = {name: str(one) for name, one in (("prompt_id", prompt), ("item_id", item)) if one}
        return await self._post(Analysis, f"/analyses/{analysis}/rerun", body)

    @Call
    async def change_prompts(self, analysis: UUID, prompts: Sequence[UUID]) -> Analysis:
        """Replace the prompts of an analysis. Only prompts that were added or edited are run."""
        return await self._put(Analysis, f"/analyses/{analysis}/prompts", {"prompt_ids": [str(one) for one in prompts]})

    @Call
    async def export(self, analysis: UUID, form: str = "markdown") -> bytes:
        """Return the answers as a file. `form` is its format: `markdown`, `json` or `csv`."""
        return await self._read(f"/analyses/{analysis}/export", format=form)

    @Call
    async def stop(self, analysis: UUID) -> Analysis:
        """Stop an analysis. `retry` continues it."""
        return await self._post(Analysis, f"/analyses/{analysis}/stop", repeat=Repeat.NEVER)

    @Call
    async def cancel(self, analysis: UUID) -> Analysis:
        """Stop an analysis. Does the same as `stop`, but is named like `cancel_job`."""
        return await self._post(Analysis, f"/analyses/{analysis}/cancel", repeat=Repeat.NEVER)

    @Call
    async def retry(self, analysis: UUID) -> Analysis:
        """Run the items that failed or were stopped."""
        return await self._post(Analysis, f"/analyses/{analysis}/retry")

    @Call
    async def delete(self, analysis: UUID) -> None:
        await self._delete(f"/analyses/{analysis}")
