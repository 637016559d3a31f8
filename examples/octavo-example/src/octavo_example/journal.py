"""Writes events to a file, one JSON object per line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from octavo.extensions import Delivery


class Journal:
    def check_address(self, address: str) -> str:
        if not Path(address).is_absolute():
            raise ValueError("Enter the absolute path of a file.")
        return address

    async def send(self, delivery: Delivery) -> None:
        line = json.dumps({"id": delivery.message_id, "type": delivery.type, "at": delivery.event.at.isoformat()})
        await asyncio.to_thread(self._append, Path(delivery.address), line)

    @staticmethod
    def _append(path: Path, line: str) -> None:
        with path.open("a") as file:
            file.write(line + "\n")


JOURNAL = Journal()
