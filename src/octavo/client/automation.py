"""API calls for sources (such as watched folders), custom fields, and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from uuid import UUID

from octavo.client.calls import MOST_LISTED, Call, Calls
from octavo.client.transport import Repeat
from octavo.core.http import Page
from octavo.records.automation import FailedFile, FieldView, RuleRun, RuleTrial, RuleView, SourceKind, SourceView

SourceAction = Literal["run", "pause", "resume"]


class AutomationCalls(Calls):
    """API calls that manage sources, custom fields and rules."""

    @Call
    async def list_sources(self) -> list[SourceView]:
        return (await self._list(SourceView, "/sources")).items

    @Call
    async def add_source(self, kind: SourceKind, path: str, **more: object) -> SourceView:
        """Add a source.

        `more` contains optional fields, such as `name`, `options`, `every_seconds`, `user` or `password`.
        """
        return await self._post(SourceView, "/sources", {"kind": kind, "path": path, **more})

    @Call
    async def show_source(self, source: UUID) -> SourceView:
        return await self._get(SourceView, f"/sources/{source}")

    @Call
    async def edit_source(self, source: UUID, changes: Mapping[str, object]) -> SourceView:
        """Change the name, the options, the interval or the password of a source."""
        return await self._patch(SourceView, f"/sources/{source}", dict(changes))

    @Call
    async def act_on_source(self, source: UUID, action: SourceAction) -> SourceView:
        """Run, pause or resume a source."""
        return await self._post(SourceView, f"/sources/{source}/{action}", repeat=Repeat.SAFE)

    @Call
    async def delete_source(self, source: UUID) -> None:
        await self._delete(f"/sources/{source}")

    @Call
    async def list_failed_files(self, source: UUID) -> list[FailedFile]:
        return (await self._list(FailedFile, f"/sources/{source}/failed")).items

    @Call
    async def list_fields(self) -> list[FieldView]:
        return (await self._list(FieldView, "/fields")).items

    @Call
    async def add_field(self, name: str, type_: str, choices: list[str] | None = None) -> FieldView:
        return await self._post(FieldView, "/fields", {"name": name, "type": type_, "choices": choices or []})

    @Call
    async def edit_field(self, field: UUID, changes: Mapping[str, object]) -> FieldView:
        """Rename a field, or change the choices of a field of type `choice`."""
        return await self._patch(FieldView, f"/fields/{field}", dict(changes))

    @Call
    async def delete_field(self, field: UUID) -> None:
        await self._delete(f"/fields/{field}")

    @Call
    async def list_rules(self) -> list[RuleView]:
        return (await self._list(RuleView, "/rules")).items

    @Call
    async def show_rule(self, rule: UUID) -> RuleView:
        return await self._get(RuleView, f"/rules/{rule}")

    @Call
    async def add_rule(
        self, name: str, when: Mapping[str, object], then: Mapping[str, object], *, enabled: bool = False
    ) -> RuleView:
        return await self._post(RuleView, "/rules", {"name": name, "when": when, "then": then, "enabled": enabled})

    @Call
    async def edit_rule(self, rule: UUID, **changes: object) -> RuleView:
        return await self._patch(RuleView, f"/rules/{rule}", changes)

    @Call
    async def delete_rule(self, rule: UUID) -> None:
        await self._delete(f"/rules/{rule}")

    @Call
    async def try_rule(self, rule: UUID) -> RuleTrial:
        """Return the changes that a rule would make, without making them."""
        return await self._post(RuleTrial, f"/rules/{rule}/try", repeat=Repeat.SAFE)

    @Call
    async def apply_rule(self, rule: UUID) -> RuleRun:
        return await self._post(RuleRun, f"/rules/{rule}/apply")

    @Call
    async def undo_rule(self, rule: UUID, run: UUID | None = None) -> RuleRun:
        """Undo a run of a rule: by default, the last one that changed documents and has not been undone."""
        return await self._post(RuleRun, f"/rules/{rule}/undo", {"run_id": str(run)} if run else {})

    @Call
    async def list_runs(self, rule: UUID, *, cursor: str | None = None, limit: int = MOST_LISTED) -> Page[RuleRun]:
        """List the runs of a rule, newest first."""
        return await self._list(RuleRun, f"/rules/{rule}/runs", cursor=cursor, limit=limit)
