"""How much an owner may keep: documents, also in the trash, and the sources of conversions."""

from __future__ import annotations

from uuid import UUID

from octavo.database import Connection, load_queries
from octavo.intake.errors import QuotaExceeded

QUERIES = load_queries("uploads")


async def hold_usage(connection: Connection, owner: UUID) -> None:
    """Until the end of the transaction nobody else adds to what this owner keeps."""
    await connection.execute(QUERIES.hold_usage, {"owner": owner})


async def check_quota(connection: Connection, owner: UUID, most: int | None) -> None:
    """After something was added, in its transaction. Raises `QuotaExceeded`; None is no limit."""
    if most is None:
        return
    row = await (await connection.execute(QUERIES.over_quota, {"owner": owner, "quota": most})).fetchone()
    if row and row[0]:
        raise over_quota(most)


def over_quota(most: int | None) -> QuotaExceeded:
    return QuotaExceeded(f"At most {most or 0:,} bytes may be kept.")
