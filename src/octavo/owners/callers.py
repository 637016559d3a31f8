"""The caller of a request: the account (owner) for which the caller acts, and the caller's permissions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from octavo.records.account import KeyScope as Scope
from octavo.records.account import Role

LEVELS: dict[Scope, int] = {"read": 0, "write": 1, "admin": 2}
MOST_SCOPE: dict[Role, Scope] = {"reader": "read", "member": "write", "owner": "admin"}


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    `scope` is the scope of the session or API key. The caller's permissions are limited by both the scope and the
    person's role.
    """

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
        """Whether the caller can manage the members and all API keys of the account."""
        return self._reaches("admin") and not self.is_anonymous

    @property
    def is_admin(self) -> bool:
        """Whether the caller is an administrator of the installation."""
        return self.kind == "local" and self._reaches("admin")

    @property
    def is_anonymous(self) -> bool:
        return self.kind == "anonymous"

    def may_grant(self, scope: Scope) -> bool:
        """Whether the caller can create an API key with this scope.

        A key cannot have more permissions than its creator. A caller that uses an API key needs the `admin` scope to
        create other keys.
        """
        trusted = self.via == "session" or self._reaches("admin")
        return trusted and not self.is_anonymous and self._reaches(scope)

    def _reaches(self, scope: Scope) -> bool:
        return min(LEVELS[self.scope], LEVELS[MOST_SCOPE[self.role]]) >= LEVELS[scope]
