"""The command line on the installation's own machine: who can open its database is its owner."""

from __future__ import annotations

from octavo.core.errors import NotRunning
from octavo.core.settings import Settings


def local_address(settings: Settings) -> str:
    """Where the installation of this data folder answers."""
    from octavo.database.embedded import DataFolder
    from octavo.ops.record import RecordFile

    record = RecordFile(DataFolder(settings.data_dir)).read()
    if record is None:
        raise NotRunning("Or name another server with --server and --key.")
    return record.address


async def open_local_session(settings: Settings) -> str:
    """The secret of a new session; whoever opens it signs out when the command ends."""
    from octavo.database import require_current
    from octavo.ops.instance import open_connection
    from octavo.owners import local_owner
    from octavo.owners.sessions import insert_session

    async with open_connection(settings) as connection:
        await require_current(connection)
        async with connection.transaction():
            return await insert_session(connection, await local_owner(connection), None)
