"""What a route may use: the opened parts of the installation, and who is asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Cookie, Depends, Request

from octavo.database import Database
from octavo.model.settings import Settings
from octavo.ops.health import Check, check_readiness
from octavo.ops.instance import storage_place
from octavo.owners import Owner, read_session
from octavo.storage import Bucket

SESSION_COOKIE = "octavo_session"


@dataclass(frozen=True, slots=True)
class Parts:
    settings: Settings
    database: Database
    bucket: Bucket

    async def readiness(self) -> list[Check]:
        return await check_readiness(self.database, self.bucket, storage_place(self.settings))


def parts_of(request: Request) -> Parts:
    parts = request.app.state.parts
    if not isinstance(parts, Parts):
        raise TypeError("the application is not started")
    return parts


PartsOf = Annotated[Parts, Depends(parts_of)]


async def current_owner(
    parts: PartsOf, session: Annotated[str | None, Cookie(alias=SESSION_COOKIE)] = None
) -> Owner | None:
    """The owner whose browser this is, if it has a session."""
    if not session:
        return None
    async with parts.database.connection() as connection:
        return await read_session(connection, session)


CurrentOwner = Annotated[Owner | None, Depends(current_owner)]
