"""What handlers work with; opened once by the worker process."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.model.settings import Settings


@dataclass(frozen=True, slots=True)
class Tools:
    settings: Settings
