"""Conversions for tests: a small invoice, asking for one, and waiting for what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from uuid import UUID

from octavo.convert.conversions import StoredConversion, show_conversion
from octavo.convert.submissions import ConversionIntake, Submission
from tests.support.library import Desk
from tests.support.pdf import Pdf, Words
from tests.support.processes import PATIENCE_SECONDS

MOST_BYTES = 1 << 20
SOURCE_DAYS = 7


def invoice(number: str = "A-17", total: str = "12.50") -> Pdf:
    """One page that `invoice_v1` reads, and that adds up."""
    net = (Decimal(total) * 4 / 5).quantize(Decimal("0.01"))
    sums = (f"Net: {net} EUR", f"VAT 25%: {Decimal(total) - net} EUR", f"Total: {total} EUR")
    lines = (f"Invoice no: {number}", "Date: 2024-08-15", *sums)
    return Pdf([[Words(line, 72, 100 + 20 * row) for row, line in enumerate(lines)]])


async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 1000):
        yield body[start : start + 1000]


async def convert(
    desk: Desk, owner: UUID, body: bytes, mapping: str = "invoice_v1", name: str = "in.pdf"
) -> Submission:
    intake = ConversionIntake(desk.database, desk.bucket, MOST_BYTES, SOURCE_DAYS)
    return await intake.submit_file(owner, name, lambda: mapping, in_pieces(body))


async def converted(desk: Desk, owner: UUID, conversion: UUID) -> StoredConversion:
    """As soon as nothing happens to it any more."""
    async with asyncio.timeout(PATIENCE_SECONDS), desk.database.connection() as connection:
        while (found := await show_conversion(connection, owner, conversion)).status in {"queued", "processing"}:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return found
