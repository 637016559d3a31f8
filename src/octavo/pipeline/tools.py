"""The resources that job handlers use, opened once by the worker process."""

from __future__ import annotations

from dataclasses import dataclass, field

from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import LiveModels, open_local_gateway
from octavo.core.settings import Settings
from octavo.database import Database
from octavo.extract.ocr.recognition import Recognition
from octavo.fetch import GuardedClient
from octavo.intake.sources.reading import Connections
from octavo.sandbox import Sandbox
from octavo.storage import Bucket


@dataclass(frozen=True, slots=True)
class Tools:
    """The resources of one worker.

    `own_settings` are the settings with which the process started. If `models` is set, it provides the current model
    settings.
    """

    own_settings: Settings
    database: Database
    bucket: Bucket
    sandbox: Sandbox
    fetch: GuardedClient = field(default_factory=GuardedClient)
    own_recognition: Recognition | None = None
    gateway: Gateway = field(default_factory=open_local_gateway)
    models: LiveModels | None = None

    @property
    def settings(self) -> Settings:
        """The current settings. The model settings can change while the process runs."""
        return self.models.settings if self.models else self.own_settings

    @property
    def connections(self) -> Connections:
        """The resources that sources need to connect to other servers."""
        return Connections(self.own_settings, self.fetch, self.database)

    @property
    def recognition(self) -> Recognition:
        """Text recognition (OCR). If there is a separate sandbox for OCR, only that sandbox loads the OCR models."""
        return self.own_recognition or Recognition(self.sandbox, self.settings.ocr_language, self.settings.ocr_seconds)
