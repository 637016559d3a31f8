"""The gateway to models of a web process. People wait for its first answer, nobody waits for it at the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from octavo.ai.contract import Answered, Caller
from octavo.core.settings import Settings
from octavo.database import Database

if TYPE_CHECKING:
    from octavo.ai.gateway import Gateway
    from octavo.ai.vectors import Vectors


class Models:
    """Opened by the first question; a process that answers none has neither adapters nor a local model in memory."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._opened: Gateway | None = None

    @property
    def gateway(self) -> Gateway:
        if self._opened is None:
            from octavo.ai.opening import open_gateway

            self._opened = open_gateway(self._settings, self._database)
        return self._opened

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> Answered[Vectors]:
        return await self.gateway.embed(texts, caller, model)

    async def aclose(self) -> None:
        if self._opened:
            await self._opened.aclose()
