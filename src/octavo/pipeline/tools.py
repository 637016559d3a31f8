"""The resources that job handlers use, opened once by the worker process."""

from __future__ import annotations

from dataclasses import dataclass, field

from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_local_gateway
from octavo.core.settings import Settings
from octavo.database import Database
from octavo.extract.ocr.recognition import Recognition
from octavo.fetch import GuardedClient
from octavo.sandbox import Sandbox
from octavo.storage import Bucket


@dataclass(frozen=True, slots=True)
class Tools:
    settings: Settings
    database: Database
    bucket: Bucket
    sandbox: Sandbox
    fetch: GuardedClient = field(default_factory=GuardedClient)
    own_recognition: Recognition | None = None
    gateway: Gateway = field(default_factory=open_local_gateway)

    @property
    def recognition(self) -> Recognition:
        """Text recognition (OCR). If there is a separate sandbox for OCR, only that sandbox loads the OCR models."""
        return self.own_recognition or Recognition(self.sandbox, self.settings.ocr_language, self.settings.ocr_seconds)
