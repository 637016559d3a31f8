"""What handlers work with; opened once by the worker process."""

from __future__ import annotations

from dataclasses import dataclass, field

from octavo.database import Database
from octavo.fetch import GuardedClient
from octavo.model.settings import Settings
from octavo.sandbox import Sandbox
from octavo.storage import Bucket


@dataclass(frozen=True, slots=True)
class Tools:
    settings: Settings
    database: Database
    bucket: Bucket
    sandbox: Sandbox
    fetch: GuardedClient = field(default_factory=GuardedClient)
