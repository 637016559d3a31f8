"""Each mail of a mailbox becomes a document once, with its attachments as children, no matter when the line is cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from octavo.core.settings import Settings
from octavo.fetch import GuardedClient
from octavo.intake.sources import mailboxes
from octavo.intake.sources.imap import encode_name
from octavo.intake.sources.places import SourcePlan
from octavo.records.automation import SourceAccess
from octavo.sandbox import Sandbox
from tests.support.imap import PASSWORD, USER, MailLine, MailServer, line_to, mail, running_mail_server, token_server
from tests.support.library import Desk
from tests.support.processing import OpenSandbox
from tests.support.sources import WatchedSource, add_watched, adding
from tests.support.working import working

# The mails and their attachments, each with the number of documents that it became.
MAILS = """
    SELECT filename, count(*) AS times FROM documents d WHERE owner_id = %s
        AND NOT EXISTS (SELECT FROM document_parts p WHERE p.document_id = d.id) GROUP BY 1"""
CHILDREN = """
    SELECT c.filename, count(*) AS times FROM document_parts p JOIN documents c ON c.id = p.document_id
    JOIN documents m ON m.id = p.parent_id WHERE m.owner_id = %s GROUP BY 1"""


@pytest.fixture(scope="module")
def server() -> Iterator[MailServer]:
    with running_mail_server() as running:
        yield running


@pytest.fixture
def sandbox() -> OpenSandbox:
    """The mails are the test's own."""
    return OpenSandbox()


@pytest.fixture
def mailbox(server: MailServer) -> str:
    name = f"box-{uuid4()}"
    server.fill(name, [])
    return name


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailboxes, "RETRY_PAUSES", (0.01, 0.01, 0.01))


def settings_for(folder: Path, *ports: int) -> Settings:
    return Settings(data_dir=folder, fetch_allow=tuple(f"127.0.0.1:{port}" for port in ports))


def plan_for(port: int, mailbox: str, **options: object) -> SourcePlan:
    path = f"imap://127.0.0.1:{port}/{mailbox}"
    return SourcePlan("imap", path, options=options, access=SourceAccess(USER), password=PASSWORD)


def working_for(watched: WatchedSource, sandbox: Sandbox, folder: Path):  # noqa: ANN201
    allow = watched.connections.settings.fetch_allow
    return working(watched.desk, sandbox, folder, GuardedClient(frozenset(allow)), fetch_allow=allow)


async def counted(watched: WatchedSource, query: str) -> dict[str, int]:
    return {row["filename"]: row["times"] for row in await watched.desk.rows(query, watched.owner)}


async def bring_all(
    line: MailLine, desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox, mailbox: str, mails: int
) -> WatchedSource:
    """Add all mails, and check that each is there once, with its attachment."""
    watched = await add_watched(desk, owner, settings_for(folder, line.port), plan_for(line.port, mailbox))
    async with working_for(watched, sandbox, folder):
        await watched.until(lambda _, view: view.counts.added == mails)
        while len(await counted(watched, CHILDREN)) < mails:
            await watched.look()
    assert await counted(watched, MAILS) == {f"Ferry report {number}.eml": 1 for number in range(mails)}
    assert await counted(watched, CHILDREN) == {f"table-{number}-0.txt": 1 for number in range(mails)}
    await desk.check_books()
    return watched


async def test_each_mail_arrives_once_although_the_line_is_cut(
    server: MailServer, mailbox: str, desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    server.fill(mailbox, [mail(number) for number in range(8)])
    async with line_to(server) as line:
        line.cuts = [700, 4000, 9000]
        watched = await bring_all(line, desk, owner, folder, sandbox, mailbox, 8)
        assert line.cut == 3
    assert server.count(mailbox, "UNSEEN") == 8  # reading changes nothing
    assert (await watched.view()).state == "watching"


@pytest.mark.long
async def test_200_mails_arrive_once_although_the_line_is_cut_ten_times(
    server: MailServer, mailbox: str, desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    server.fill(mailbox, [mail(number) for number in range(200)])
    async with line_to(server) as line:
        line.cuts = [500, 6_000, 15_000, 30_000, 60_000, 61_000, 90_000, 120_000, 150_000, 180_000]
        await bring_all(line, desk, owner, folder, sandbox, mailbox, 200)
        assert line.cut == 10


async def test_only_wanted_mails_are_added_and_then_moved(
    server: MailServer, mailbox: str, desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    server.fill(mailbox, [mail(1), mail(2, sender="bob@example.org"), mail(3, attachments=0), mail(10)])
    options = {"sender": "ANN@", "subject": "report 1", "attachments": True, "after": "move", "move_to": "Erledigt & ä"}
    settings = settings_for(folder, server.port)
    watched = await add_watched(desk, owner, settings, plan_for(server.port, mailbox, **options))
    async with adding(watched, sandbox, folder):
        await watched.until(lambda _, view: view.counts.added == 2)
    await watched.look()
    await watched.look()
    assert set(await counted(watched, MAILS)) == {"Ferry report 1.eml", "Ferry report 10.eml"}
    assert (server.count(mailbox), server.count(encode_name("Erledigt & ä"))) == (2, 2)
    assert await desk.rows("SELECT DISTINCT finished FROM source_files") == [{"finished": True}]


async def test_added_mails_are_marked_as_seen_and_a_deleted_one_is_reported(
    server: MailServer, mailbox: str, desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    server.fill(mailbox, [mail(number) for number in range(3)])
    plan = plan_for(server.port, mailbox, after="seen")
    watched = await add_watched(desk, owner, settings_for(folder, server.port), plan)
    await watched.look()
    with server.connect() as connection:
        connection.select(mailbox)
        connection.store("2", "+FLAGS", r"(\Deleted)")
        connection.expunge()
    async with adding(watched, sandbox, folder):
        await watched.until(lambda _, view: view.counts.added == 2 and view.counts.failed == 1)
    await watched.look()
    assert (server.count(mailbox, "SEEN"), server.count(mailbox, "UNSEEN")) == (2, 0)
    failed = await desk.rows("SELECT error FROM source_files WHERE state = 'failed'")
    assert failed == [{"error": "The email was deleted or moved before it could be read."}]


async def test_mails_wait_while_their_mailbox_cannot_be_opened(
    server: MailServer, mailbox: str, desk: Desk, owner: UUID, folder: Path, sandbox: Sandbox
) -> None:
    server.fill(mailbox, [mail(number) for number in range(2)])
    watched = await add_watched(desk, owner, settings_for(folder, server.port), plan_for(server.port, mailbox))
    await watched.look()
    with server.connect() as connection:
        connection.rename(mailbox, f"{mailbox}-away")
    async with adding(watched, sandbox, folder):
        while not await desk.rows("SELECT id FROM jobs WHERE failed_at IS NOT NULL"):
            await watched.look()
    view = await watched.view()
    assert (view.state, view.counts.waiting, view.counts.failed) == ("failing", 2, 0)


async def test_a_refresh_token_signs_in_and_its_replacement_is_kept(
    server: MailServer, mailbox: str, desk: Desk, owner: UUID, folder: Path
) -> None:
    server.fill(mailbox, [mail(1)])
    async with line_to(server) as line, token_server(line) as tokens:
        settings = settings_for(folder, line.port, tokens.port)
        access = SourceAccess(USER, f"http://127.0.0.1:{tokens.port}/token", "octavo")
        plan = replace(plan_for(line.port, mailbox), access=access, password="first", client_secret="s3cret")
        watched = await add_watched(desk, owner, settings, plan)
        await watched.look()
        assert ((await watched.view()).counts.waiting, (await watched.view()).error) == (1, None)
        assert tokens.asked == [{"refresh_token": "first", "client_id": "octavo", "client_secret": "s3cret"}]
        (stored,) = await desk.rows("SELECT secret FROM sources")
        assert "second" not in stored["secret"]
        line.tokens.clear()  # as if the server had revoked them
        await watched.look()
        await watched.look()
        assert [one["refresh_token"] for one in tokens.asked] == ["first", "second"]
        tokens.refuses = True
        line.tokens.clear()
        await watched.look()
        await watched.look()
        assert "refused the refresh token" in str((await watched.view()).error)


@pytest.mark.parametrize(
    ("path", "password", "error"),
    [
        ("imap://127.0.0.1:{port}/INBOX", "wrong", "refused the sign-in"),
        ("imap://127.0.0.1:{port}/Nowhere", PASSWORD, "The mailbox Nowhere cannot be opened"),
        ("imaps://127.0.0.1:{port}/INBOX", PASSWORD, "TLS certificate"),
    ],
)
async def test_a_look_that_fails_says_why(
    server: MailServer, desk: Desk, owner: UUID, folder: Path, *, path: str, password: str, error: str
) -> None:
    plan = replace(plan_for(server.port, ""), path=path.format(port=server.port), password=password)
    watched = await add_watched(desk, owner, settings_for(folder, server.port), plan)
    await watched.look()
    view = await watched.view()
    assert view.state == "failing"
    assert error in str(view.error)


async def test_a_private_mail_server_is_refused_also_if_its_name_looks_public(
    server: MailServer, desk: Desk, owner: UUID, folder: Path
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        del host, port
        return ["127.0.0.1"]

    plan = replace(plan_for(server.port, ""), path=f"imaps://mail.example.org:{server.port}/INBOX")
    fetch = GuardedClient(resolve=resolve)
    watched = await add_watched(desk, owner, settings_for(folder, server.port), plan, fetch)
    await watched.look()
    assert "Private addresses are blocked" in str((await watched.view()).error)
    await fetch.aclose()
