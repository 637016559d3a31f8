"""Files that Gemini keeps for two days: sent once, waited for until they can be used, sent again when they are gone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

from pydantic import BaseModel

from octavo.ai.calls import FileReference
from octavo.ai.faults import Fault, ProviderFault
from octavo.ai.providers.http_client import Wire
from octavo.database import Database, load_queries

QUERIES = load_queries("ai")
FAMILY = "gemini"
KEPT_HOURS = 47  # of the 48 that it promises
FILE_SECONDS = 60.0
ACTIVE_SECONDS = 600.0
FIRST_LOOK_SECONDS = 0.5
MOST_LOOK_SECONDS = 10.0


class File(BaseModel):
    name: str
    uri: str
    state: str


class Sent(BaseModel):
    file: File


@dataclass(frozen=True, slots=True)
class KeptFile:
    name: str
    uri: str


@dataclass(frozen=True, slots=True)
class GeminiFiles:
    """Files of one key at one address; an owner never uses another one's."""

    database: Database
    wire: Wire
    url: str
    key: str
    _turns: WeakValueDictionary[tuple[UUID, str], asyncio.Lock] = field(
        default_factory=WeakValueDictionary[tuple[UUID, str], asyncio.Lock], init=False, repr=False
    )

    async def keep(self, owner: UUID, file: FileReference) -> KeptFile:
        """Where the file is at Google, after sending it if it is not there. Several who want the same send it once."""
        async with self._turns.setdefault((owner, file.sha256), asyncio.Lock()):
            return await self._keep(owner, file)

    async def _keep(self, owner: UUID, file: FileReference) -> KeptFile:
        async with self.database.connection() as connection:
            row = await (await connection.execute(QUERIES.provider_file, self._place(owner, file))).fetchone()
        if row:
            return KeptFile(*row)
        kept = await self._send(file)
        values = {**self._place(owner, file), "name": kept.name, "uri": kept.uri, "hours": KEPT_HOURS}
        async with self.database.connection() as connection:
            await connection.execute(QUERIES.keep_provider_file, values)
        return kept

    async def forget(self, owner: UUID, file: FileReference) -> None:
        async with self.database.connection() as connection:
            await connection.execute(QUERIES.forget_provider_file, self._place(owner, file))

    async def _send(self, file: FileReference) -> KeptFile:
        data = await file.read()
        start = {
            "x-goog-api-key": self.key,
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(data)),
            "x-goog-upload-header-content-type": file.media_type,
        }
        begun = await self.wire.post(FAMILY, f"{self.url}/upload/v1beta/files", {"file": {}}, start, FILE_SECONDS)
        place = begun.headers.get("x-goog-upload-url")
        if not place:
            raise ProviderFault(Fault.MALFORMED)
        whole = {"x-goog-upload-command": "upload, finalize", "x-goog-upload-offset": "0"}
        sent = await self.wire.send(FAMILY, "POST", place, data, whole, FILE_SECONDS)
        return await self._wait_until_active(sent.read_as(Sent).file)

    async def _wait_until_active(self, file: File) -> KeptFile:
        """Videos and long documents are prepared first; ten minutes are enough for those that ever will be."""
        pause = FIRST_LOOK_SECONDS
        try:
            async with asyncio.timeout(ACTIVE_SECONDS):
                while file.state == "PROCESSING":
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, MOST_LOOK_SECONDS)
                    file = await self._look(file.name)
        except TimeoutError:
            raise ProviderFault(Fault.TIMED_OUT) from None
        if file.state != "ACTIVE":
            raise ProviderFault(Fault.FILE_GONE)
        return KeptFile(file.name, file.uri)

    async def _look(self, name: str) -> File:
        headers = {"x-goog-api-key": self.key}
        heard = await self.wire.send(FAMILY, "GET", f"{self.url}/v1beta/{name}", b"", headers, FILE_SECONDS)
        return heard.read_as(File)

    def _place(self, owner: UUID, file: FileReference) -> dict[str, Any]:
        account = sha256(f"{self.url}\n{self.key}".encode()).hexdigest()[:16]
        return {"provider": FAMILY, "account": account, "owner": owner, "sha256": bytes.fromhex(file.sha256)}
