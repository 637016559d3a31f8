"""Unlocks PDFs with a password, in the sandbox. The password is used once and not stored."""

from __future__ import annotations

import tempfile
from pathlib import Path
from uuid import UUID

from octavo.core.ids import new_id
from octavo.core.types import Extraction
from octavo.extract.pdf.pdf_file import unlock_in_sandbox
from octavo.library.changes import retry_document
from octavo.library.files import find_locked, keep_unlocked
from octavo.records.documents import Retried
from octavo.storage import Stored, copy_to_file
from octavo.web.context.services import Services
from octavo.web.http.limits import ConcurrencyLimit

MOST_WAITING = 20
BUSY_SECONDS = 5.0


class Unlocking:
    """Unlocks files, one at a time in each web process."""

    def __init__(self, services: Services) -> None:
        self._database = services.database
        self._bucket = services.bucket
        self._sandbox = services.sandbox
        self._limit = ConcurrencyLimit(1, MOST_WAITING, BUSY_SECONDS)

    async def retry(
        self,
        owner: UUID,
        document: UUID,
        password: str,
        from_stage: str | None = None,
        extraction: Extraction = Extraction.PLAIN,
    ) -> Retried:
        """Process a document again from its unlocked file. A wrong password raises `Encrypted` and changes nothing."""
        opened = await self._unlock(owner, document, password)
        async with self._database.transaction() as connection:
            unused = await keep_unlocked(connection, owner, document, opened) if opened else []
            retried = await retry_document(connection, owner, document, from_stage, extraction)
        await self._bucket.delete(unused)
        return retried

    async def _unlock(self, owner: UUID, document: UUID, password: str) -> Stored | None:
        """Store an unlocked copy of the file, to which no row refers yet.

        Returns None if the file needs no password.
        """
        async with self._database.connection() as connection:
            key = await find_locked(connection, owner, document)
        async with self._limit.take():
            with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
                locked, opened = Path(folder, "locked"), Path(folder, "opened")
                await copy_to_file(self._bucket, key, locked)
                if not await unlock_in_sandbox(self._sandbox, locked, password, opened):
                    return None
                return await self._bucket.put(f"unlocked/{document}/{new_id()}.pdf", opened)
