from __future__ import annotations

from tests.integration.web.reader.conftest import house, room

__all__ = ["house", "room"]
