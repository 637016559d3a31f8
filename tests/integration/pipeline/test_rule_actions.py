"""Rules start analyses and conversions of new documents, and what cannot be started stops nothing."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from octavo.analyse.prompts import PromptFields, add_prompt
from octavo.library import rules
from octavo.pipeline.rule_actions import start_actions
from octavo.records.automation import RuleThen, RuleWhen
from tests.support.library import Desk


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
