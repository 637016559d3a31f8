"""Uploads files to Gemini, which keeps them for two days. A file is uploaded again only after it has expired."""

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
from octavo.ai.providers.http_client import HttpClient
from octavo.database import Database, load_queries

QUERIES = load_queries("ai")
FAMILY = "gemini"
KEPT_HOURS = 47  # Google keeps files for 48 hours
FILE_SECONDS = 60.0
ACTIVE_SECONDS = 600.0
FIRST_POLL_SECONDS = 0.5
MAX_POLL_SECONDS = 10.0


class File(BaseModel):
    name: str
    uri: str
    state: str


class UploadReply(BaseModel):
    file: File


@dataclass(frozen=True, slots=True)
class UploadedFile:
    name: str
    uri: str


@dataclass(frozen=True, slots=True)
class GeminiFiles:
    """Files uploaded with one API key to one base URL. An account never uses a file that another account uploaded."""

    database: Database
    http: HttpClient
    url: str
    key: str
    _locks: WeakValueDictionary[tuple[UUID, str], asyncio.Lock] = field(
        default_factory=WeakValueDictionary[tuple[UUID, str], asyncio.Lock], init=False, repr=False
    )

    async def upload(self, owner: UUID, file: FileReference) -> UploadedFile:
        """Upload a file unless Google still has it. If several callers need the same file, it is uploaded only once."""
        async with self._locks.setdefault((owner, file.sha256), asyncio.Lock()):
            return await self._find_or_send(owner, file)

    async def _find_or_send(self, owner: UUID, file: FileReference) -> UploadedFile:
        async with self.database.connection() as connection:
            row = await (await connection.execute(QUERIES.provider_file, self._key(owner, file))).fetchone()
        if row:
            return UploadedFile(*row)
        uploaded = await self._send(file)
        values = {**self._key(owner, file), "name": uploaded.name, "uri": uploaded.uri, "hours": KEPT_HOURS}
        async with self.database.connection() as connection:
            await connection.execute(QUERIES.keep_provider_file, values)
        return uploaded

    async def forget(self, owner: UUID, file: FileReference) -> None:
        async with self.database.connection() as connection:
            await connection.execute(QUERIES.forget_provider_file, self._key(owner, file))

    async def _send(self, file: FileReference) -> UploadedFile:
        data = await file.read()
        start = {
            "x-goog-api-key": self.key,
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(data)),
            "x-goog-upload-header-content-type": file.media_type,
        }
        started = await self.http.post(FAMILY, f"{self.url}/upload/v1beta/files", {"file": {}}, start, FILE_SECONDS)
        upload_url = started.headers.get("x-goog-upload-url")
        if not upload_url:
            raise ProviderFault(Fault.MALFORMED)
        whole = {"x-goog-upload-command": "upload, finalize", "x-goog-upload-offset": "0"}
        sent = await self.http.send(FAMILY, "POST", upload_url, data, whole, FILE_SECONDS)
        return await self._wait_until_active(sent.read_as(UploadReply).file)

    async def _wait_until_active(self, file: File) -> UploadedFile:
        """Wait until Google has processed the file.

        Gives up after ten minutes, because a file that takes longer will not become active.
        """
        pause = FIRST_POLL_SECONDS
        try:
            async with asyncio.timeout(ACTIVE_SECONDS):
                while file.state == "PROCESSING":
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, MAX_POLL_SECONDS)
                    file = await self._check(file.name)
        except TimeoutError:
            raise ProviderFault(Fault.TIMED_OUT) from None
        if file.state != "ACTIVE":
            raise ProviderFault(Fault.FILE_GONE)
        return UploadedFile(file.name, file.uri)

    async def _check(self, name: str) -> File:
        headers = {"x-goog-api-key": self.key}
        reply = await self.http.send(FAMILY, "GET", f"{self.url}/v1beta/{name}", b"", headers, FILE_SECONDS)
        return reply.read_as(File)

    def _key(self, owner: UUID, file: FileReference) -> dict[str, Any]:
        account = sha256(f"{self.url}\n{self.key}".encode()).hexdigest()[:16]
        return {"provider": FAMILY, "account": account, "owner": owner, "sha256": bytes.fromhex(file.sha256)}
