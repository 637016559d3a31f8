"""Stores the files that belong to one revision of a document.

A stage writes them to the storage bucket and inserts their database rows in its transaction.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from octavo.core.ids import new_id
from octavo.core.types import JSON
from octavo.database import Connection, load_queries
from octavo.jobs.job_run import Run
from octavo.library.errors import SourceGone
from octavo.pipeline.tools import Tools
from octavo.storage import copy_to_file

QUERIES = load_queries("processing")


class RevisionFiles:
    """Stores the large outputs of a job's stages as files in the storage bucket.

    The database only stores the storage key of such a file as the output of the stage.
    """

    def __init__(self, run: Run[Tools], document: UUID, revision: int) -> None:
        self._run = run
        self._tools = run.tools
        self._document = document
        self._revision = revision
        self._unused: list[str] = []

    async def put(self, name: str, body: bytes) -> dict[str, JSON]:
        """Write a file and return its storage key and other properties.

        The key contains the lease token, so each attempt of a job writes separate files.
        """
        job = self._run.job
        stored = await self._tools.bucket.put(f"derived/{job.id}/{job.lease_token}/{name}", body)
        return {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256}

    async def keep(self, connection: Connection, kind: str, made: JSON, content_type: str) -> None:
        """Insert the database row of a file in the stage's transaction.

        The file replaces an earlier file of the same kind.
        """
        if not isinstance(made, dict):
            raise TypeError("this stage returns what it stored")
        place = {"document": self._document, "revision": self._revision, "kind": kind}
        await self.forget(connection, await connection.execute(QUERIES.delete_artifact, place))
        await connection.execute(QUERIES.insert_object, {name: made[name] for name in ("key", "bytes", "sha256")})
        values = {"id": new_id(), "job": self._run.job.id, "key": made["key"], "content_type": content_type}
        await connection.execute(QUERIES.insert_artifact, place | values)

    async def forget(self, connection: Connection, cursor: AsyncCursor[TupleRow]) -> None:
        """Delete the database rows of stored files that are no longer used.

        The files themselves are deleted later. `cursor` contains the storage keys of the files that may have become
        unused.
        """
        values = {"keys": [row[0] for row in await cursor.fetchall()]}
        unused = await (await connection.execute(QUERIES.delete_unused_objects, values)).fetchall()
        self._unused += [row[0] for row in unused]

    def begin_saving(self) -> None:
        """Clear the list of unused files at the start of a transaction.

        If the previous transaction was rolled back, the files in the list are still in use.
        """
        self._unused = []

    async def remove_unused(self) -> None:
        """Delete unused files after the commit.

        If the process is killed before this step, the daily clean-up deletes the files.
        """
        unused, self._unused = self._unused, []
        await self._tools.bucket.delete(unused)

    async def read(self, kind: str, limit: int) -> bytes:
        """Read a file that an earlier attempt stored."""
        async with self._tools.database.connection() as connection:
            values = {"document": self._document, "revision": self._revision, "kind": kind}
            row = await (await connection.execute(QUERIES.artifact_key, values)).fetchone()
        if row is None:
            raise SourceGone
        return await self._tools.bucket.read(row[0], limit=limit)

    @asynccontextmanager
    async def local_copy(self, key: str) -> AsyncGenerator[Path]:
        """Copy an object to a temporary local file. Raises `ObjectDamaged` if its bytes were changed."""
        async with self._tools.database.connection() as connection:
            row = await (await connection.execute(QUERIES.object_checksum, {"key": key})).fetchone()
        with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
            path = Path(folder) / "source"
            await copy_to_file(self._tools.bucket, key, path, row[0] if row else None)
            yield path
