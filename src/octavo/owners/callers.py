"""Who asks: the owner they act for, and how much they may do there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from octavo.records.account import KeyScope as Scope

Role = Literal["owner", "member", "reader"]

LEVELS: dict[Scope, int] = {"read": 0, "write": 1, "admin": 2}
MOST_SCOPE: dict[Role, Scope] = {"reader": "read", "member": "write", "owner": "admin"}


@dataclass(frozen=True, slots=True)
class Caller:
    """`scope` is what the session or the key allows; the role can make it less, never more."""

    owner_id: UUID
    kind: str
    user_id: UUID | None
    role: Role
    scope: Scope
    via: Literal["session", "key"]

    @property
    def may_write(self) -> bool:
        return self._reaches("write")

    @property
    def may_manage(self) -> bool:
        """Members, and everybody's keys."""
        return self._reaches("admin") and not self.is_anonymous

    @property
    def is_admin(self) -> bool:
        """Administrator of the installation."""
        return self.kind == "local" and self._reaches("admin")

    @property
    def is_anonymous(self) -> bool:
        return self.kind == "anonymous"

    def may_grant(self, scope: Scope) -> bool:
        """A key can do no more than its maker; keys make keys only when they may do everything."""
        trusted = self.via == "session" or self._reaches("admin")
        return trusted and not self.is_anonymous and self._reaches(scope)

    def _reaches(self, scope: Scope) -> bool:
        return min(LEVELS[self.scope], LEVELS[MOST_SCOPE[self.role]]) >= LEVELS[scope]
