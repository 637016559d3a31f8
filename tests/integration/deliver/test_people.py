"""People are told by mail and in chats: read from a real mail server and a real receiver."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from octavo.core.errors import ErrorClass
from octavo.deliver.messages import DEFAULT_EVENTS
from octavo.deliver.subscribers import (
    keep_administrators,
    list_notifications,
    list_subscribers,
    notify_requester,
    warn_of_failing,
)
from octavo.owners import Caller
from tests.support.deliveries import Mailbox, PostOffice, delivering, mail_server, receiver
from tests.support.engine import Engine
from tests.support.instance import free_port
from tests.support.library import Desk

PUBLIC = "https://docs.example.org"
TITLE = "Größe <&> Gewicht"


async def finish_document(desk: Desk, engine: Engine, owner: UUID) -> UUID:
    made = await desk.add(owner, b"text", given={"title": TITLE})
    engine.complete(engine.claim_one(kinds=["process_document"]))
    assert made.document_id
    return made.document_id


async def fail_document(desk: Desk, engine: Engine, owner: UUID) -> UUID:
    made = await desk.add(owner, b"bad text", given={"title": TITLE})
    engine.fail(engine.claim_one(kinds=["process_document"]), ErrorClass.UNSUPPORTED)
    return made.document_id


def make_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """For this machine, by nobody whom anybody trusts; and what a server needs of it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=127.0.0.1", "-days", "2"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return certificate, context


async def test_a_mail_names_the_document_and_its_link(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    mailbox = Mailbox()
    with mail_server(mailbox) as port:
        subscriber = office.subscribe(owner, "ada@example.org", ["document.completed"], channel="mail")
        document = await finish_document(desk, engine, owner)
        url = f"smtp://127.0.0.1:{port}"
        async with delivering(office, smtp_url=url, mail_from="octavo@example.org", public_url=PUBLIC):
            await office.until_delivered()
    ((sender, recipients, mail),) = mailbox.mails
    assert (sender, recipients) == ("octavo@example.org", ["ada@example.org"])
    assert mail["Subject"] == f"Octavo: “{TITLE}” is ready"
    assert mail["To"] == "ada@example.org"
    assert mail.get_content().split() == f"“{TITLE}” is ready. {PUBLIC}/documents/{document}".split()
    assert office.tries(subscriber) == [("delivered", 250, None)]


async def test_credentials_are_sent_to_a_mail_server_that_requires_them(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    mailbox = Mailbox()
    with mail_server(mailbox, password=("ada", "p@ss:word")) as port:
        subscriber = office.subscribe(owner, "ada@example.org", ["document.completed"], channel="mail")
        await finish_document(desk, engine, owner)
        async with delivering(office, smtp_url=f"smtp://ada:p%40ss%3Aword@127.0.0.1:{port}"):
            await office.until_delivered()
        assert (mailbox.users, len(mailbox.mails)) == (["ada"], 1)
        await desk.add(owner, b"more text")
        engine.complete(engine.claim_one(kinds=["process_document"]))
        async with delivering(office, smtp_url=f"smtp://ada:wrong@127.0.0.1:{port}"):
            await office.until_delivered()
    assert len(mailbox.mails) == 1
    assert office.tries(subscriber) == [("delivered", 250, None), ("failed", 535, "RECEIVER_REFUSED")]


async def test_mail_goes_under_tls_where_that_is_asked_for(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not at all to a server that cannot prove who it is."""
    certificate, context = make_certificate(tmp_path)
    mailbox = Mailbox()
    subscriber = office.subscribe(owner, "ada@example.org", ["document.completed"], channel="mail")
    with mail_server(mailbox, password=("ada", "secret"), certificate=context) as port:
        await finish_document(desk, engine, owner)
        url = f"smtp+starttls://ada:secret@127.0.0.1:{port}"
        async with delivering(office, smtp_url=url):
            await office.until(lambda: office.tries(subscriber), "it is refused")
            assert mailbox.mails == []
            assert mailbox.users == []
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            await office.until_delivered()
    assert mailbox.encrypted == [True]
    assert mailbox.users == ["ada"]


@pytest.mark.parametrize(
    ("refusal", "tries"),
    [
        ("451 later", [("failed", 451, "RECEIVER_FAILED"), ("delivered", 250, None)]),
        ("552 too much", [("failed", 552, "RECEIVER_REFUSED")]),
    ],
    ids=["later", "never"],
)
async def test_a_mail_server_says_whether_to_try_again(
    desk: Desk,
    office: PostOffice,
    engine: Engine,
    owner: UUID,
    refusal: str,
    tries: list[tuple[str, int | None, str | None]],
) -> None:
    mailbox = Mailbox(refusals=[refusal])
    with mail_server(mailbox) as port:
        subscriber = office.subscribe(owner, "ada@example.org", ["document.completed"], channel="mail")
        await finish_document(desk, engine, owner)
        async with delivering(office, smtp_url=f"smtp://127.0.0.1:{port}"):
            await office.until_delivered()
    assert office.tries(subscriber) == tries


async def test_a_mail_server_that_is_away_is_waited_for(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    subscriber = office.subscribe(owner, "ada@example.org", ["document.completed"], channel="mail")
    await finish_document(desk, engine, owner)
    async with delivering(office, smtp_url=f"smtp://127.0.0.1:{free_port()}"):
        await office.until(lambda: len(office.tries(subscriber)) > 1, "it is tried twice")
    assert set(office.tries(subscriber)) == {("failed", None, "NETWORK")}


async def test_a_chat_gets_a_sentence_with_a_link(desk: Desk, office: PostOffice, engine: Engine, owner: UUID) -> None:
    with receiver(500) as there:
        office.subscribe(owner, there.url, ["document.completed"], channel="slack")
        document = await finish_document(desk, engine, owner)
        async with delivering(office, fetch_allow=there.allowed, public_url=PUBLIC):
            await office.until_delivered()
        text = f"“Größe &lt;&amp;&gt; Gewicht” is ready. {PUBLIC}/documents/{document}"
        assert there.bodies() == [{"text": text}] * 2


async def test_the_administrator_is_notified_of_failures_without_titles(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    """Also of the administrator's own documents: a chat has more readers than one."""
    mailbox = Mailbox()
    with mail_server(mailbox) as port, receiver() as chat:
        async with office.database.transaction() as connection:
            await keep_administrators(connection, owner, {"mail": "ops@example.org", "slack": chat.url})
        failed = [await fail_document(desk, engine, one) for one in (engine.add_owner(), owner)]
        await finish_document(desk, engine, engine.add_owner())
        async with delivering(office, smtp_url=f"smtp://127.0.0.1:{port}", fetch_allow=chat.allowed):
            await office.until_delivered()
        jobs = [engine.one("SELECT process_id FROM documents WHERE id = %s", one) for one in failed]
        # Only messages about the same process keep their order.
        assert {body["text"] for body in chat.bodies()} == {
            "A document could not be processed (UNSUPPORTED). Owner: user account."
            f" Document: {document}. Job: process_document {job}."
            for document, job in zip(failed, jobs, strict=True)
        }
        assert len(chat.bodies()) == len(failed)
    assert [mail["Subject"] for _, _, mail in mailbox.mails] == [
        "Octavo: A document could not be processed (UNSUPPORTED)"
    ] * 2


async def test_the_settings_say_who_the_administrator_is(office: PostOffice, engine: Engine, owner: UUID) -> None:
    async def keep(**addresses: str | None) -> dict[str, str]:
        async with office.database.transaction() as connection:
            await keep_administrators(connection, owner, addresses)
        rows = engine.rows("SELECT channel, address, active FROM subscribers WHERE everybodys")
        assert all(row["active"] for row in rows)
        return {row["channel"]: row["address"] for row in rows}

    assert await keep(mail="ops@example.org", slack=None) == {"mail": "ops@example.org"}
    engine.run("UPDATE subscribers SET active = false, stopped_because = 'RECEIVER_GONE'")
    assert await keep(mail="new@example.org", slack="https://x.org/") == {
        "mail": "new@example.org",
        "slack": "https://x.org/",
    }
    assert await keep(mail=None, slack=None) == {}


async def test_webhooks_contain_no_title(desk: Desk, office: PostOffice, engine: Engine, owner: UUID) -> None:
    with receiver() as there:
        office.subscribe(owner, there.url, ["document.created", "document.completed"])
        document = await finish_document(desk, engine, owner)
        async with delivering(office, fetch_allow=there.allowed):
            await office.until_delivered()
        sent = b"".join(one.body for one in there.received).decode()
    assert str(document) in sent
    assert "Gewicht" not in sent
    assert "note.txt" not in sent


# The person who asked for an analysis ------------------------------------------------------------------------------


def add_person(engine: Engine, owner: UUID, email: str) -> Caller:
    added = (
        "INSERT INTO users (id, email, password_hash, owner_id) VALUES (gen_random_uuid(), %s, 'x', %s) RETURNING id"
    )
    user = engine.one(added, email, engine.add_owner())
    engine.run("INSERT INTO memberships (owner_id, user_id, role) VALUES (%s, %s, 'member')", owner, user)
    return Caller(owner, "user", user, "member", "write", "session")


async def ask_for_analysis(desk: Desk, engine: Engine, caller: Caller) -> UUID:
    (analysis,) = engine.put(caller.owner_id, engine.add_kind("analyse_document"))
    async with desk.database.transaction() as connection:
        await notify_requester(connection, caller, analysis)
    return analysis


def end_analysis(engine: Engine, owner: UUID, analysis: UUID) -> None:
    event = "INSERT INTO events (process_id, kind, owner_id) VALUES (%s, 'analysis.completed', %s)"
    engine.run(event, analysis, owner)


async def test_the_person_who_starts_an_analysis_gets_a_mail_without_subscribing(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    """And nobody else; and no second one where the same address gets it anyway."""
    ada, bob = add_person(engine, owner, "ada@example.org"), add_person(engine, owner, "bob@example.org")
    mailbox = Mailbox()
    with mail_server(mailbox) as port:
        first, second = await ask_for_analysis(desk, engine, ada), await ask_for_analysis(desk, engine, bob)
        third = await ask_for_analysis(desk, engine, ada)
        end_analysis(engine, owner, first)
        async with delivering(office, smtp_url=f"smtp://127.0.0.1:{port}", public_url=PUBLIC):
            await office.until_delivered()
            ((_, recipients, mail),) = mailbox.mails
            assert recipients == ["ada@example.org"]
            assert mail.get_content().split()[-1] == f"{PUBLIC}/analyses/{first}"
            engine.run("DELETE FROM memberships WHERE user_id = %s", bob.user_id)
            end_analysis(engine, owner, second)
            office.subscribe(owner, "Ada@example.org", DEFAULT_EVENTS, channel="mail")
            end_analysis(engine, owner, third)
            await office.until_delivered()
    assert [recipients for _, recipients, _ in mailbox.mails[1:]] == [["Ada@example.org"]]
    async with desk.database.connection() as connection:
        assert [one.personal for one in await list_subscribers(connection, owner)] == [True, True, False]


async def test_a_person_who_paused_these_mails_gets_none_of_them(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    ada = add_person(engine, owner, "ada@example.org")
    await ask_for_analysis(desk, engine, ada)
    engine.run("UPDATE subscribers SET active = false")
    end_analysis(engine, owner, await ask_for_analysis(desk, engine, ada))
    await office.relay()
    assert engine.one("SELECT count(*) FROM outgoing") == 0
    assert not engine.one("SELECT active FROM subscribers")


# Recipients that fail ----------------------------------------------------------------------------------------------


async def test_a_recipient_that_has_failed_for_a_week_says_so_once_until_it_works_again(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    async def since() -> object:
        async with desk.database.connection() as connection:
            return (await list_subscribers(connection, owner))[0].failing_since

    async def notices() -> list[str]:
        await warn_of_failing(desk.database)
        await office.relay()
        async with desk.database.connection() as connection:
            page = await list_notifications(connection, owner, unread=True, cursor=None, limit=10)
        return [one.sentence for one in page.items if one.type == "webhook.failing"]

    with receiver(400, 400) as hook:
        address = f"http://127.0.0.1:{hook.port}/hook"
        office.subscribe(owner, address, ["document.completed"])
        async with delivering(office, fetch_allow=(f"127.0.0.1:{hook.port}",)):
            for body in (b"one", b"two"):
                await desk.add(owner, body)
                engine.complete(engine.claim_one(kinds=["process_document"]))
                await office.until_delivered()
            first = await since()
            assert first
            assert await notices() == []
            engine.run("UPDATE subscribers SET failing_since = failing_since - interval '8 days'")
            told = f"Deliveries to “{address}” have failed for more than a week. "
            told += "Check that the address is correct and reachable."
            assert await notices() == [told]
            assert await notices() == [told]
            await desk.add(owner, b"three")
            engine.complete(engine.claim_one(kinds=["process_document"]))
            await office.until_delivered()
            assert await since() is None
