"""API calls for sources of documents, custom fields, and rules."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from octavo.client.transport import Record, Request, Transport, read_page, read_record
from octavo.records.automation import FailedFile, FieldView, RuleRun, RuleTrial, RuleView, SourceView


class AutomationCalls:
    """API calls that manage sources, custom fields and rules."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list_sources(self) -> list[SourceView]:
        return await self._list(SourceView, "/sources")

    async def add_folder(self, path: str, **more: object) -> SourceView:
        """Watch a folder on the server. `more` can contain `name`, `options` and `every_seconds`."""
        body = {"kind": "folder", "path": path, **more}
        return await self._call(SourceView, Request("POST", "/sources", json=body))

    async def act_on_source(self, source: UUID, action: str) -> SourceView:
        """Run, pause or resume a source."""
        return await self._call(SourceView, Request("POST", f"/sources/{source}/{action}", repeatable=True))

    async def delete_source(self, source: UUID) -> None:
        await self._transport.call(Request("DELETE", f"/sources/{source}", repeatable=True))

    async def list_failed_files(self, source: UUID) -> list[FailedFile]:
        return await self._list(FailedFile, f"/sources/{source}/failed")

    async def list_fields(self) -> list[FieldView]:
        return await self._list(FieldView, "/fields")

    async def add_field(self, name: str, type_: str, choices: list[str] | None = None) -> FieldView:
        body = {"name": name, "type": type_, "choices": choices or []}
        return await self._call(FieldView, Request("POST", "/fields", json=body))

    async def delete_field(self, field: UUID) -> None:
        await self._transport.call(Request("DELETE", f"/fields/{field}", repeatable=True))

    async def list_rules(self) -> list[RuleView]:
        return await self._list(RuleView, "/rules")

    async def add_rule(
        self, name: str, when: Mapping[str, object], then: Mapping[str, object], *, enabled: bool = False
    ) -> RuleView:
        body = {"name": name, "when": when, "then": then, "enabled": enabled}
        return await self._call(RuleView, Request("POST", "/rules", json=body))

    async def edit_rule(self, rule: UUID, **changes: object) -> RuleView:
        return await self._call(RuleView, Request("PATCH", f"/rules/{rule}", repeatable=True, json=changes))

    async def delete_rule(self, rule: UUID) -> None:
        await self._transport.call(Request("DELETE", f"/rules/{rule}", repeatable=True))

    async def try_rule(self, rule: UUID) -> RuleTrial:
        """Return what a rule would change. Nothing is changed."""
        return await self._call(RuleTrial, Request("POST", f"/rules/{rule}/try", repeatable=True))

    async def apply_rule(self, rule: UUID) -> RuleRun:
        return await self._call(RuleRun, Request("POST", f"/rules/{rule}/apply"))

    async def undo_rule(self, rule: UUID, run: UUID | None = None) -> RuleRun:
        """Undo a run of a rule; without `run`, the last one that is not undone."""
        body = {"run_id": str(run)} if run else {}
        return await self._call(RuleRun, Request("POST", f"/rules/{rule}/undo", json=body))

    async def list_runs(self, rule: UUID) -> list[RuleRun]:
        return await self._list(RuleRun, f"/rules/{rule}/runs")

    async def _call(self, record: type[Record], request: Request) -> Record:
        return read_record(record, await self._transport.call(request))

    async def _list(self, record: type[Record], path: str) -> list[Record]:
        return read_page(record, await self._transport.get(path, {})).items
