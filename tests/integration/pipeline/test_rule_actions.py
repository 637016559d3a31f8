"""Rules start analyses and conversions of new documents and send them; what cannot be started stops nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.analyse.prompts import PromptFields, add_prompt
from octavo.core.errors import BadInput
from octavo.core.types import new_id
from octavo.deliver.channels import new_secret
from octavo.deliver.deliveries import relay_once
from octavo.fetch import GuardedClient
from octavo.library import rules
from octavo.pipeline.rule_actions import start_actions
from octavo.records.automation import RuleThen, RuleWhen, ValueChange
from octavo.sandbox import Sandbox
from tests.support.deliveries import SKIP_WAITS, Mailbox, mail_server, receiver
from tests.support.library import Desk
from tests.support.processes import PATIENCE_SECONDS
from tests.support.working import add, finished, working


async def test_a_rule_starts_an_analysis_and_a_conversion_once(desk: Desk, owner: UUID) -> None:
    document = (await desk.add(owner, b"Bay 7")).document_id
    await desk.rows("UPDATE documents SET revision = 1, text_ready = true, kind = 'invoice'")
    when = RuleWhen(kind="invoice")
    async with desk.database.transaction() as connection:
        prompt = await add_prompt(connection, owner, PromptFields("Totals", "What is the total?"))
        starts = RuleThen(analyse=["totals"], convert="invoice_v1")
        await rules.add_rule(connection, owner, "Starts", when, starts, enabled=True)
        broken = RuleThen(["paid"], analyse=["Deleted"], convert="deleted_v1")
        second = await rules.add_rule(connection, owner, "Broken", when, broken, enabled=True)
        other = RuleThen(analyse=["all"])
        await rules.add_rule(connection, owner, "Other", RuleWhen(kind="letter"), other, enabled=True)
    async with desk.database.transaction() as connection:
        starting = partial(start_actions, connection, owner, document)
        assert await rules.run_enabled_rules(connection, owner, document, starting) == 1
    started = await desk.rows("SELECT kind FROM jobs WHERE kind IN ('analyse_document', 'convert_batch') ORDER BY 1")
    assert [one["kind"] for one in started] == ["analyse_document", "convert_batch"]
    results = await desk.rows("SELECT prompt_id FROM analysis_results")
    assert [one["prompt_id"] for one in results] == [prompt.id]
    async with desk.database.connection() as connection:
        (run,) = (await rules.list_runs(connection, owner, second.id, limit=10)).items
    assert run.documents == 1  # the tag
    assert [one.partition(":")[0] for one in run.conflicts] == ["analyse", "convert"]


async def recipient(desk: Desk, owner: UUID, address: str, channel: str = "webhook") -> UUID:
    made = new_id()
    secret = new_secret() if channel == "webhook" else None
    values = (made, owner, channel, address, secret, ["analysis.completed"])
    await desk.rows(
        "INSERT INTO subscribers (id, owner_id, channel, address, secret, events) VALUES (%s, %s, %s, %s, %s, %s)",
        *values,
    )
    return made


async def relay_until(desk: Desk, condition: Callable[[], object]) -> None:
    """Relay events, and skip the waits before retries, until the condition holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await relay_once(desk.database)
            await desk.rows(SKIP_WAITS)
            await asyncio.sleep(0.02)


async def until_delivered(desk: Desk) -> None:
    left = "SELECT (SELECT count(*) FROM outgoing) + (SELECT count(*) FROM jobs WHERE status = 'queued')"
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await relay_once(desk.database) or await desk.one(left):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_new_document_is_sent_once_to_each_recipient_although_the_receiver_fails_first(
    desk: Desk, owner: UUID, sandbox: Sandbox, folder: Path
) -> None:
    mailbox = Mailbox()
    with receiver(500) as there, mail_server(mailbox) as port:
        hook = await recipient(desk, owner, there.url)
        mail = await recipient(desk, owner, "anna@example.org", "mail")
        await recipient(desk, owner, f"{there.url}/other")
        user = "INSERT INTO users (id, email, owner_id, language) VALUES (%s, 'anna@example.org', %s, 'de')"
        await desk.rows(user, new_id(), owner)
        then = RuleThen(["ferry"], deliver=[hook, mail])
        async with desk.database.transaction() as connection:
            rule = await rules.add_rule(connection, owner, "Ferries", RuleWhen(text="ferry"), then, enabled=True)
        settings: dict[str, Any] = {
            "fetch_allow": [there.allowed],
            "smtp_url": f"smtp://127.0.0.1:{port}",
            "mail_from": "o@example.org",
        }
        settings |= {"public_url": "https://octavo.example"}
        client = GuardedClient(frozenset([there.allowed]))
        async with working(desk, sandbox, folder, client, **settings):
            document = await add(desk, owner, "ferry.txt", b"The ferry leaves at nine.")
            await finished(desk, owner, document)
            await relay_until(desk, lambda: len(there.received) > 1 and mailbox.mails)
            # Another run of the rule sends nothing again.
            assert (await rules.apply_rule(desk.database, owner, rule.id)).deliveries == 0
            await until_delivered(desk)
        first, second = there.received
        assert first.id == second.id
        assert second.json["type"] == "document.matched"
        assert second.json["data"]["document_id"] == str(document)
        # Limited members can read events of their documents, but no rules.
        assert set(second.json["data"]["detail"]) == {"rule_id", "recipients"}
        ((_, to, message),) = mailbox.mails
        assert to == ["anna@example.org"]
        assert message["subject"] == "Octavo: “ferry.txt” passt zu einer Regel: Ferries"
        assert f"https://octavo.example/documents/{document}" in message.get_content()
    async with desk.database.connection() as connection:
        runs = (await rules.list_runs(connection, owner, rule.id, limit=10)).items
    assert sorted((one.documents, one.deliveries) for one in runs) == [(0, 0), (1, 2)]


async def test_applying_a_rule_sends_existing_documents_once_also_if_two_people_apply_it(
    desk: Desk, owner: UUID
) -> None:
    documents = [(await desk.add(owner, f"Bay {one}".encode())).document_id for one in range(3)]
    await desk.rows("UPDATE documents SET kind = 'letter'")
    hook = await recipient(desk, owner, "https://example.org/hook")
    paused = await recipient(desk, owner, "https://example.org/paused")
    await desk.rows("UPDATE subscribers SET active = false WHERE id = %s", paused)
    async with desk.database.transaction() as connection:
        then = RuleThen(deliver=[hook, paused])
        rule = await rules.add_rule(connection, owner, "Letters", RuleWhen(kind="letter"), then, enabled=False)
        trial = await rules.try_rule(connection, owner, rule.id)
    assert {one.document_id for one in trial.items} == set(documents)
    assert trial.items[0].changes == [ValueChange("deliver", None, "webhook https://example.org/hook")]
    assert trial.problems == ["deliver: webhook https://example.org/paused is paused."]
    assert await desk.rows("SELECT FROM events WHERE kind = 'matched'") == []
    runs = await asyncio.gather(*(rules.apply_rule(desk.database, owner, rule.id) for _ in range(3)))
    assert sum(one.deliveries for one in runs) == 3
    assert {one.documents for one in runs} == {0}
    told = await desk.rows("SELECT document_id, detail -> 'recipients' AS to FROM events WHERE kind = 'matched'")
    assert sorted((one["document_id"], one["to"]) for one in told) == sorted((one, [str(hook)]) for one in documents)
    sent = next(one for one in runs if one.deliveries)
    with pytest.raises(BadInput, match="messages cannot be undone"):
        await rules.undo_rule(desk.database, owner, rule.id, sent.id)


async def test_a_rule_sends_only_to_recipients_of_its_account(desk: Desk, owner: UUID) -> None:
    theirs = await recipient(desk, await desk.new_owner(), "https://example.org/hook")
    async with desk.database.transaction() as connection:
        with pytest.raises(BadInput, match="no recipient"):
            await rules.check_recipients(connection, owner, [theirs])
        then = RuleThen(["x"], deliver=[theirs])  # as if the check were missing
        rule = await rules.add_rule(connection, owner, "Letters", RuleWhen(kind="letter"), then, enabled=False)
    await desk.add(owner, b"Bay 7")
    await desk.rows("UPDATE documents SET kind = 'letter'")
    run = await rules.apply_rule(desk.database, owner, rule.id)
    assert (run.documents, run.deliveries, run.conflicts) == (1, 0, ["deliver: a recipient was deleted."])


async def test_applying_a_rule_refuses_to_send_very_many_messages(
    desk: Desk, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MOST_DELIVERIES", 1)
    for one in range(2):
        await desk.add(owner, f"Bay {one}".encode())
    await desk.rows("UPDATE documents SET kind = 'letter'")
    hook = await recipient(desk, owner, "https://example.org/hook")
    async with desk.database.transaction() as connection:
        then = RuleThen(["x"], deliver=[hook])
        rule = await rules.add_rule(connection, owner, "Letters", RuleWhen(kind="letter"), then, enabled=False)
    with pytest.raises(BadInput, match="2 messages"):
        await rules.apply_rule(desk.database, owner, rule.id)
    assert await desk.rows("SELECT FROM document_tags") == await desk.rows("SELECT FROM rule_runs") == []
