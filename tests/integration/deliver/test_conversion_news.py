"""What becomes of a conversion is told with its name, its reason and its page."""

from __future__ import annotations

from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from octavo.core.errors import ErrorClass, NotPdf
from octavo.deliver.messages import DEFAULT_EVENTS
from octavo.deliver.subscribers import Notification, list_notifications
from tests.support.conversions import convert, invoice
from tests.support.deliveries import Mailbox, PostOffice, delivering, mail_server
from tests.support.engine import Engine
from tests.support.library import Desk

SURE = ["number", "A-17", 0.9, None, True, None, None]
UNSURE = ["total", "12.50", 0.4, None, False, None, None]


async def shown(desk: Desk, owner: UUID) -> list[Notification]:
    async with desk.database.connection() as connection:
        return (await list_notifications(connection, owner, unread=False, cursor=None, limit=100)).items


async def finish(desk: Desk, engine: Engine, owner: UUID, *values: object, missing: tuple[str, ...] = ()) -> UUID:
    """A conversion with these values, as the engine would have found them."""
    conversion = (await convert(desk, owner, invoice().write())).id
    record = Jsonb({"values": values, "missing": missing, "checks": []})
    engine.run(
        "INSERT INTO revisions (conversion_id, number, record, made_by) VALUES (%s, 1, %s, 'engine')",
        conversion,
        record,
    )
    engine.run("UPDATE conversions SET revision = 1 WHERE id = %s", conversion)
    engine.complete(engine.claim_one(kinds=["convert"]))
    return conversion


async def test_a_completed_conversion_is_reported_with_its_name_and_page(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    conversion = await finish(desk, engine, owner, SURE)
    await office.relay()
    (told,) = await shown(desk, owner)
    assert (told.type, told.level, told.title) == ("conversion.completed", "news", "in.pdf")
    assert (told.sentence, told.link) == ("“in.pdf” was converted.", f"/conversions/{conversion}")


@pytest.mark.parametrize(
    ("values", "missing", "reason"),
    [((SURE, UNSURE), (), "1 of 2 values unverified"), ((SURE,), ("total",), "1 required value missing")],
)
async def test_a_conversion_with_doubts_says_which(
    desk: Desk,
    office: PostOffice,
    engine: Engine,
    owner: UUID,
    values: tuple[object, ...],
    missing: tuple[str, ...],
    reason: str,
) -> None:
    await finish(desk, engine, owner, *values, missing=missing)
    await office.relay()
    (told,) = await shown(desk, owner)
    assert (told.type, told.level, told.reason) == ("conversion.needs_review", "news", reason)
    assert told.sentence == f"“in.pdf” was converted and needs review: {reason}."


@pytest.mark.parametrize("error", [ErrorClass.UNSUPPORTED, ErrorClass.TRANSIENT])
async def test_a_failed_conversion_is_reported_once_with_its_reason(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID, error: ErrorClass
) -> None:
    conversion = (await convert(desk, owner, invoice().write())).id
    engine.run("UPDATE jobs SET max_attempts = 1")
    engine.fail(engine.claim_one(kinds=["convert"]), error)
    await office.relay()
    (told,) = await shown(desk, owner)
    assert (told.type, told.level, told.error_code) == ("conversion.failed", "error", error.upper())
    assert told.sentence.startswith("“in.pdf” could not be converted: ")
    assert told.link == f"/conversions/{conversion}"


async def test_a_refused_file_and_a_cancelled_conversion(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    with pytest.raises(NotPdf):
        await convert(desk, owner, b"no PDF at all", name="notes.txt")
    cancelled = await convert(desk, owner, invoice().write())
    engine.cancel(cancelled.id)
    await office.relay()
    (told,) = await shown(desk, owner)
    assert (told.type, told.title, told.error_code) == ("conversion.failed", "notes.txt", "NOT_PDF")


async def test_one_mail_leads_to_a_failed_conversion(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    """And not a second one about the job."""
    mailbox = Mailbox()
    with mail_server(mailbox) as port:
        office.subscribe(owner, "ada@example.org", DEFAULT_EVENTS, channel="mail")
        old = office.subscribe(owner, "old@example.org", ["job.failed"], channel="mail")
        conversion = (await convert(desk, owner, invoice().write())).id
        engine.fail(engine.claim_one(kinds=["convert"]), ErrorClass.UNSUPPORTED)
        url = f"smtp://127.0.0.1:{port}"
        async with delivering(office, smtp_url=url, public_url="https://docs.example.org"):
            await office.until_delivered()
    mails = {recipient: mail for _, (recipient,), mail in mailbox.mails}
    assert (len(mailbox.mails), set(mails)) == (2, {"ada@example.org", "old@example.org"})
    assert "could not be converted" in mails["ada@example.org"]["Subject"]
    for mail in mails.values():
        assert mail.get_content().split()[-1] == f"https://docs.example.org/conversions/{conversion}"
    assert office.tries(old) == [("delivered", 250, None)]


async def test_downloads_and_expiry_of_a_conversion_reach_subscribers(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    subscriber = office.subscribe(owner, events=["conversion.downloaded", "conversion.expired"])
    conversion = await finish(desk, engine, owner, SURE)
    for kind in ("downloaded", "expired"):
        engine.run("INSERT INTO events (process_id, kind, owner_id) VALUES (%s, %s, %s)", conversion, kind, owner)
    await office.relay()
    assert [row["type"] for row in office.line(subscriber)] == ["conversion.downloaded", "conversion.expired"]
