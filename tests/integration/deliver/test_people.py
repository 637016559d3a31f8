"""People are told by mail and in chats: read from a real mail server and a real receiver."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from octavo.core.errors import ErrorClass
from octavo.deliver.subscribers import keep_administrators
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


async def fail_document(desk: Desk, engine: Engine, owner: UUID) -> None:
    await desk.add(owner, b"bad text", given={"title": TITLE})
    engine.fail(engine.claim_one(kinds=["process_document"]), ErrorClass.UNSUPPORTED)


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


async def test_a_mail_says_what_is_ready_and_where(desk: Desk, office: PostOffice, engine: Engine, owner: UUID) -> None:
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


async def test_a_mail_server_that_asks_who_we_are_is_told(
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


async def test_a_chat_is_told_a_sentence_with_a_link(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    with receiver(500) as there:
        office.subscribe(owner, there.url, ["document.completed"], channel="slack")
        document = await finish_document(desk, engine, owner)
        async with delivering(office, fetch_allow=there.allowed, public_url=PUBLIC):
            await office.until_delivered()
        text = f"“Größe &lt;&amp;&gt; Gewicht” is ready. {PUBLIC}/documents/{document}"
        assert there.bodies() == [{"text": text}] * 2


async def test_the_administrator_is_told_of_failures_without_titles(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    """Also of the administrator's own documents: a chat has more readers than one."""
    mailbox = Mailbox()
    with mail_server(mailbox) as port, receiver() as chat:
        async with office.database.transaction() as connection:
            await keep_administrators(connection, owner, {"mail": "ops@example.org", "slack": chat.url})
        await fail_document(desk, engine, engine.add_owner())
        await fail_document(desk, engine, owner)
        await finish_document(desk, engine, engine.add_owner())
        async with delivering(office, smtp_url=f"smtp://127.0.0.1:{port}", fetch_allow=chat.allowed):
            await office.until_delivered()
        assert chat.bodies() == [{"text": "A document could not be processed (UNSUPPORTED)."}] * 2
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


async def test_what_is_told_to_programs_holds_no_title(
    desk: Desk, office: PostOffice, engine: Engine, owner: UUID
) -> None:
    with receiver() as there:
        office.subscribe(owner, there.url, ["document.created", "document.completed"])
        document = await finish_document(desk, engine, owner)
        async with delivering(office, fetch_allow=there.allowed):
            await office.until_delivered()
        sent = b"".join(one.body for one in there.received).decode()
    assert str(document) in sent
    assert "Gewicht" not in sent
    assert "note.txt" not in sent
