"""Services that all routes of a process share: database, file storage, sandbox, limits, live events and models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request

from octavo.ai.gateway_setup import LiveModels
from octavo.core.settings import Settings
from octavo.database import Database
from octavo.extract.file_reader import FileReader
from octavo.ops.health import Check, check_readiness
from octavo.ops.instance import local_disk, storage_place
from octavo.sandbox import Sandbox
from octavo.storage import Bucket
from octavo.web.context.page_pictures import PagePictures
from octavo.web.http.limits import Limits
from octavo.web.live import Hub

Service = TypeVar("Service")


@dataclass(frozen=True, slots=True)
class Services:
    """Services that several features use. A service that only one feature needs is created with `shared` instead."""

    own_settings: Settings
    database: Database
    bucket: Bucket
    sandbox: Sandbox
    limits: Limits
    live: Hub
    pictures: PagePictures
    models: LiveModels
    reader: FileReader
    _shared: dict[Callable[[Services], Any], Any] = field(default_factory=dict[Callable[["Services"], Any], Any])

    @property
    def settings(self) -> Settings:
        """The current settings. An administrator can change the model settings while the process runs."""
        return self.models.settings

    def shared(self, make: Callable[[Services], Service]) -> Service:
        """Return the service that `make` creates.

        It is created on the first call, and later calls return the same object.
        """
        if make not in self._shared:
            self._shared[make] = make(self)
        return cast("Service", self._shared[make])

    async def readiness(self) -> list[Check]:
        place, disk = storage_place(self.settings), local_disk(self.settings)
        return await check_readiness(self.database, self.bucket, place, disk)


# Asynchronous, although it awaits nothing: FastAPI would run a synchronous dependency in a thread for each request.
async def services_of(request: Request) -> Services:
    services = request.app.state.services
    if not isinstance(services, Services):
        raise TypeError("the application is not started")
    return services


ServicesOf = Annotated[Services, Depends(services_of)]
