"""Rules find the documents that match, change them, and undo exactly what they changed."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from uuid import UUID

import pytest

from octavo.core.errors import BadInput, NotFound
from octavo.database import Connection
from octavo.library import rules
from octavo.library.changes import MOST_TAGS, Edit, edit_documents, restore_documents
from octavo.library.documents import Filters, list_documents, show_document
from octavo.library.fields import add_field, delete_field, list_fields
from octavo.library.sweep import expire_collections
from octavo.records.automation import AmountRange, RuleChange, RuleRetention, RuleThen, RuleView, RuleWhen, ValueChange
from octavo.records.documents import Document
from tests.support.connections import put_passage
from tests.support.library import Desk


async def add(desk: Desk, owner: UUID, text: str, **columns: object) -> UUID:
    async def execute(statement: str, *values: object) -> int:
        async with desk.database.connection() as connection:
            return (await connection.execute(statement.encode(), values)).rowcount

    document = (await desk.add(owner, text.encode())).document_id
    await execute("UPDATE documents SET revision = 1, text_ready = true WHERE id = %s", document)
    await put_passage(execute, document, text)
    for name, value in columns.items():
        await execute(f"UPDATE documents SET {name} = %s WHERE id = %s", value, document)
    return document


async def rule(desk: Desk, owner: UUID, when: RuleWhen, then: RuleThen, name: str = "Bays", **more: bool) -> RuleView:
    async with desk.database.transaction() as connection:
        return await rules.add_rule(connection, owner, name, when, then, enabled=more.get("enabled", False))


async def tried(desk: Desk, owner: UUID, one: RuleView) -> list[RuleChange]:
    async with desk.database.connection() as connection:
        return (await rules.try_rule(connection, owner, one.id)).items


async def matching(desk: Desk, owner: UUID, **when: object) -> set[UUID]:
    async with desk.database.connection() as connection:
        return {row["id"] for row in await rules.find_matching(connection, owner, RuleWhen(**when))}  # pyright: ignore[reportArgumentType]


async def shown(desk: Desk, owner: UUID, document: UUID) -> Document:
    async with desk.database.connection() as connection:
        return await show_document(connection, owner, document)


async def project(desk: Desk, owner: UUID) -> None:
    async with desk.database.transaction() as connection:
        await add_field(connection, owner, "Project", "text")


async def test_a_phrase_matches_whole_words_only(desk: Desk, owner: UUID) -> None:
    bays = [await add(desk, owner, f"The lighthouse of bay {one} was painted.") for one in (7, 17, 70, 71)]
    assert await matching(desk, owner, text="lighthouse of bay 7") == {bays[0]}
    assert await matching(desk, owner, text="LIGHTHOUSE  of\nBay 17") == {bays[1]}
    assert await matching(desk, owner, text="of the") == set()
    assert await matching(desk, owner, text="was") == set(bays)  # a word that is not indexed
    assert await matching(desk, owner, text="house of bay 7") == set()


async def test_a_phrase_is_found_in_markdown_symbols_and_unspaced_scripts(desk: Desk, owner: UUID) -> None:
    bold = await add(desk, owner, "The **lighthouse** of\n_bay 7_ (c++ [x]) was painted.")
    city = await add(desk, owner, "昨日東京都庁に行った。")
    assert await matching(desk, owner, text="lighthouse of bay 7") == {bold}
    assert await matching(desk, owner, text="(c++ [x])") == {bold}
    assert await matching(desk, owner, text="東京都") == {city}
    assert await matching(desk, owner, text=r"c\+\+ .*") == set()


async def test_all_conditions_must_match(desk: Desk, owner: UUID) -> None:
    await project(desk, owner)
    one = await add(desk, owner, "one", kind="invoice", sender="Harbour Ferries Ltd", amount=100, currency="EUR")
    other = await add(desk, owner, "two", kind="invoice", sender="Harbour Ferries Ltd", amount=99, currency="USD")
    async with desk.database.transaction() as connection:
        await edit_documents(connection, owner, [one], Edit(added_tags=["Paid"], custom={"project": "Coast"}))
    assert await matching(desk, owner, kind="Invoice", sender="ferries") == {one, other}
    assert await matching(desk, owner, kind="invoice", tag="paid") == {one}
    assert await matching(desk, owner, amount=AmountRange(min=99.5)) == {one}
    assert await matching(desk, owner, amount=AmountRange(max=100, currency="usd")) == {other}
    assert await matching(desk, owner, field={"Project": None}) == {one}
    assert await matching(desk, owner, field={"PROJECT": "coast"}) == {one}
    assert await matching(desk, owner, field={"Project": "Inland"}) == set()
    assert await matching(desk, owner, kind="invoice", sender="100%") == set()


async def test_a_trial_changes_nothing_and_an_applied_rule_is_undone_exactly(desk: Desk, owner: UUID) -> None:
    await project(desk, owner)
    documents = [await add(desk, owner, f"Bay {one} has a lighthouse.") for one in range(3)]
    async with desk.database.transaction() as connection:
        await edit_documents(connection, owner, documents[:1], Edit(tags=["Bay"], collection="Old"))
    before = [await shown(desk, owner, one) for one in documents]
    one = await rule(
        desk, owner, RuleWhen(text="lighthouse"), RuleThen(["bay"], "Coast", {"Project": "Sea"}, "{filename}!")
    )
    trial = await tried(desk, owner, one)
    assert {change.document_id for change in trial} == set(documents)
    first = next(change for change in trial if change.document_id == documents[0])
    assert {(change.name, change.before) for change in first.changes} >= {("collection", "Old"), ("Project", None)}
    assert [await shown(desk, owner, document) for document in documents] == before
    run = await rules.apply_rule(desk.database, owner, one.id)
    assert run.documents == 3
    after = [await shown(desk, owner, document) for document in documents]
    assert [found.tags for found in after] == [["Bay"]] * 3  # the first spelling is kept
    assert {(found.collection, found.fields["Project"]) for found in after} == {("Coast", "Sea")}
    assert {found.title for found in after} == {f"{found.filename}!" for found in after}
    assert await tried(desk, owner, one) == []
    undone = await rules.undo_rule(desk.database, owner, one.id)
    assert undone.undone_at is not None
    restored = [await shown(desk, owner, document) for document in documents]
    names = ("title", "tags", "collection", "fields", "author", "kind")
    assert [[getattr(found, name) for name in names] for found in restored] == [
        [getattr(found, name) for name in names] for found in before
    ]
    with pytest.raises(BadInput, match="no run"):
        await rules.undo_rule(desk.database, owner, one.id)


async def test_the_first_enabled_rule_that_sets_a_value_wins_and_the_log_says_so(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "Bay 7", kind="letter")
    when = RuleWhen(kind="letter")
    await rule(desk, owner, when, RuleThen(["a"], "First"), "One", enabled=True)
    second = await rule(desk, owner, when, RuleThen(["b"], "Second"), "Two", enabled=True)
    await rule(desk, owner, when, RuleThen(["c"]), "Disabled")
    conflict = (await tried(desk, owner, second))[0].conflicts
    assert conflict == ["One (runs first) sets collection to First."]
    async with desk.database.transaction() as connection:
        assert await rules.run_enabled_rules(connection, owner, document) == 2
    found = await shown(desk, owner, document)
    assert (found.collection, set(found.tags)) == ("First", {"a", "b"})
    async with desk.database.connection() as connection:
        (run,) = (await rules.list_runs(connection, owner, second.id, limit=10)).items
    assert (run.automatic, run.documents, run.conflicts) == (True, 1, ["collection: set by One."])
    async with desk.database.transaction() as connection:
        await rules.edit_rule(connection, owner, second.id, position=1)
        assert [one.name for one in await rules.list_rules(connection, owner)] == ["Two", "One", "Disabled"]


async def test_a_rule_that_is_applied_twice_changes_nothing_the_second_time(desk: Desk, owner: UUID) -> None:
    document = await add(desk, owner, "Bay 7", kind="letter", title="X")
    for number, (pattern, title) in enumerate((
        ("Ferry - {title}", "Ferry - X"),
        ("{title} ({kind})", "Ferry - X (letter)"),
        ("{title} / {title}", "Ferry - X (letter) / Ferry - X (letter)"),
        ("{filename}", "note.txt"),
    )):  # fmt: skip
        one = await rule(desk, owner, RuleWhen(kind="letter"), RuleThen([" Bay  7 "], title=pattern), f"Rule {number}")
        assert (await rules.apply_rule(desk.database, owner, one.id)).documents == 1
        assert (await rules.apply_rule(desk.database, owner, one.id)).documents == 0
        assert (await shown(desk, owner, document)).title == title


async def run_enabled(desk: Desk, owner: UUID, document: UUID) -> int:
    async with desk.database.transaction() as connection:
        return await rules.run_enabled_rules(connection, owner, document)


async def test_rules_only_set_the_missing_values_of_a_new_version(desk: Desk, owner: UUID) -> None:
    await project(desk, owner)
    when = RuleWhen(kind="letter")
    then = RuleThen(["ferry"], "Ferries", {"Project": "Sea"}, "Ferry - {filename}")
    await rule(desk, owner, when, then, enabled=True)
    await rule(desk, owner, when, RuleThen(["second"]), "Second", enabled=True)
    first = await add(desk, owner, "one", kind="letter")
    assert await run_enabled(desk, owner, first) == 2
    async with desk.database.transaction() as connection:
        by_person = Edit(title="Mine", collection="Box", removed_tags=["ferry"], custom={"Project": "Inland"})
        await edit_documents(connection, owner, [first], by_person)
    second = (await desk.add(owner, b"two", version_of=first)).document_id
    await desk.rows("UPDATE documents SET kind = 'letter' WHERE id = %s", second)
    assert await run_enabled(desk, owner, second) == 0
    found = await shown(desk, owner, second)
    assert (found.title, found.collection, found.tags, found.fields) == (
        "Mine",
        "Box",
        ["second"],
        {"Project": "Inland"},
    )

    bare = await add(desk, owner, "three")
    third = (await desk.add(owner, b"four", version_of=bare)).document_id
    await desk.rows("UPDATE documents SET kind = 'letter' WHERE id = %s", third)
    assert await run_enabled(desk, owner, third) == 2
    found = await shown(desk, owner, third)
    assert (found.title, found.collection, found.tags) == ("Ferry - note.txt", "Ferries", ["ferry", "second"])


async def test_retention_sets_a_day_and_the_clean_up_moves_the_document_to_the_trash(desk: Desk, owner: UUID) -> None:
    old = await add(desk, owner, "Bay 7", kind="letter", document_date=date(2020, 1, 31))
    undated = await add(desk, owner, "Bay 8", kind="letter")
    after_date = RuleThen(retention=RuleRetention(30, "date"))
    one = await rule(desk, owner, RuleWhen(kind="letter"), after_date)
    async with desk.database.connection() as connection:
        trial = await rules.try_rule(connection, owner, one.id)
    assert [(item.document_id, item.changes) for item in trial.items] == [
        (old, [ValueChange("expires_on", None, "2020-03-01")])
    ]
    assert trial.problems == ["retention: a document without a date is kept."]
    await desk.rows("UPDATE documents SET status = 'completed'")
    assert await expire_collections(desk.database) == 0  # trying changes nothing
    run = await rules.apply_rule(desk.database, owner, one.id)
    assert (run.documents, run.conflicts) == (1, ["retention: a document without a date is kept."])
    assert await tried(desk, owner, one) == []
    await rules.undo_rule(desk.database, owner, one.id)
    assert (await shown(desk, owner, old)).expires_on is None
    await rules.apply_rule(desk.database, owner, one.id)
    assert await expire_collections(desk.database) == 1
    trash = await desk.rows("SELECT id FROM documents WHERE deleted_at IS NOT NULL")
    assert [row["id"] for row in trash] == [old] != [undated]
    # A document that is restored is not moved to the trash again.
    async with desk.database.transaction() as connection:
        await restore_documents(connection, owner, [old])
    assert (await shown(desk, owner, old)).expires_on is None
    assert await expire_collections(desk.database) == 0


async def test_retention_counts_from_the_day_of_adding_and_the_first_rule_wins(desk: Desk, owner: UUID) -> None:
    when = RuleWhen(kind="letter")
    await rule(desk, owner, when, RuleThen(retention=RuleRetention(10)), "Short", enabled=True)
    long = await rule(desk, owner, when, RuleThen(retention=RuleRetention(3650)), "Long", enabled=True)
    document = await add(desk, owner, "Bay 7", kind="letter", created_at=datetime(2026, 2, 25, 23, 30, tzinfo=UTC))
    assert await run_enabled(desk, owner, document) == 1
    assert (await shown(desk, owner, document)).expires_on == date(2026, 3, 7)
    async with desk.database.connection() as connection:
        (run,) = (await rules.list_runs(connection, owner, long.id, limit=10)).items
    assert run.conflicts == ["expires_on: set by Short."]
    assert rules.expiry_of({"document_date": date(9999, 12, 1)}, RuleRetention(99, "date")) is None


async def test_a_new_version_expires_when_the_earlier_one_would_have(desk: Desk, owner: UUID) -> None:
    when, then = RuleWhen(kind="letter"), RuleThen(retention=RuleRetention(30, "added"))
    await rule(desk, owner, when, then, enabled=True)
    first, last = await add(desk, owner, "one"), await add(desk, owner, "two")
    today = datetime.now(UTC).date()
    async with desk.database.transaction() as connection:
        await edit_documents(connection, owner, [first], Edit(expires_on=date(2099, 1, 31)))
        await edit_documents(connection, owner, [last], Edit(expires_on=today))
    newer = [(await desk.add(owner, text, version_of=one)).document_id for text, one in ((b"3", first), (b"4", last))]
    assert [(await shown(desk, owner, one)).expires_on for one in newer] == [date(2099, 1, 31), None]
    await desk.rows("UPDATE documents SET kind = 'letter' WHERE id = %s", newer[0])
    assert await run_enabled(desk, owner, newer[0]) == 0  # the day of a person is kept
    assert (await shown(desk, owner, newer[0])).expires_on == date(2099, 1, 31)


@pytest.mark.long
async def test_a_rule_is_tried_on_1000_documents_applied_and_undone(desk: Desk, owner: UUID) -> None:
    """900 of them match. Every value of every document is compared before and after."""
    await project(desk, owner)
    documents = [
        await add(desk, owner, f"Bay {one} has {'no ' if one % 10 == 0 else 'a white '}lighthouse.")
        for one in range(1000)
    ]
    async with desk.database.transaction() as connection:
        edit = Edit(tags=["Bay"], collection="Old", custom={"Project": "Inland"})
        await edit_documents(connection, owner, documents[:300], edit)
    matches = {document for number, document in enumerate(documents) if number % 10}
    then = RuleThen(["bay", "coast"], "Coast", {"Project": "Sea"}, "{filename}!", retention=RuleRetention(30, "added"))
    one = await rule(desk, owner, RuleWhen(text="white lighthouse"), then)

    async def state() -> dict[UUID, Document]:
        # Without the time of the last change, and without jobs: new tags are prepared for the search by a job.
        same = datetime(2000, 1, 1, tzinfo=UTC)
        return {one: replace(await shown(desk, owner, one), updated_at=same, jobs=[]) for one in documents}

    before, began = await state(), time.perf_counter()
    trial = await tried(desk, owner, one)
    took = [time.perf_counter() - began]
    assert await state() == before
    assert {change.document_id for change in trial} == matches
    began = time.perf_counter()
    assert (await rules.apply_rule(desk.database, owner, one.id)).documents == 900
    took.append(time.perf_counter() - began)
    after = await state()
    assert {document for document in documents if after[document] != before[document]} == matches
    for change in trial:  # the trial showed exactly what was done
        found = after[change.document_id]
        done = {"tags": ", ".join(found.tags), "collection": found.collection, "title": found.title, **found.fields}
        done["expires_on"] = str(found.expires_on)
        assert [value.after for value in change.changes] == [done[value.name] for value in change.changes]
        assert {value.name for value in change.changes} >= {"collection", "title", "Project", "expires_on"}
    began = time.perf_counter()
    await rules.undo_rule(desk.database, owner, one.id)
    took.append(time.perf_counter() - began)
    assert await state() == before
    print("tried {:.2f} s, applied {:.2f} s, undone {:.2f} s".format(*took))  # noqa: T201


async def test_a_document_without_room_for_tags_gets_those_that_fit(desk: Desk, owner: UUID) -> None:
    full, empty = [await add(desk, owner, text, kind="letter") for text in ("one", "two")]
    async with desk.database.transaction() as connection:
        tags = [f"tag {number}" for number in range(MOST_TAGS - 1)]
        await edit_documents(connection, owner, [full], Edit(tags=tags))
    one = await rule(desk, owner, RuleWhen(kind="letter"), RuleThen(["a", "b"], "Box"), enabled=True)
    reason = f"tags: the limit per document is {MOST_TAGS}. Not added: b."
    assert [change.conflicts for change in await tried(desk, owner, one)] == [[reason], []]
    assert await run_enabled(desk, owner, full) == 1
    assert len((await shown(desk, owner, full)).tags) == MOST_TAGS
    run = await rules.apply_rule(desk.database, owner, one.id)
    assert run.conflicts == ["tags: the limit per document is 50. Not added: b."]
    assert (await shown(desk, owner, empty)).tags == ["a", "b"]
    async with desk.database.connection() as connection:
        automatic = (await rules.list_runs(connection, owner, one.id, limit=10)).items[-1]
    assert (automatic.automatic, automatic.conflicts) == (True, [reason])


async def test_a_document_that_cannot_be_changed_does_not_stop_the_others(
    desk: Desk, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = [await add(desk, owner, text, kind="letter") for text in ("one", "two")]
    one = await rule(desk, owner, RuleWhen(kind="letter"), RuleThen(["a"]))

    async def refuse(connection: Connection, owner: UUID, documents: Sequence[UUID], edit: Edit, **more: UUID) -> int:
        changed = await edit_documents(connection, owner, documents, edit, **more)
        if bad in documents:
            raise BadInput("Not this one.")
        return changed

    monkeypatch.setattr(rules, "edit_documents", refuse)
    run = await rules.apply_rule(desk.database, owner, one.id)
    assert (run.documents, run.conflicts) == (1, ["Not this one."])
    assert [(await shown(desk, owner, document)).tags for document in (bad, good)] == [[], ["a"]]


async def test_every_phrase_makes_a_pattern_that_the_database_accepts(desk: Desk, owner: UUID) -> None:
    letter = await add(desk, owner, "यह हिंदी में लिखा है।")
    assert await matching(desk, owner, text="हिंदी में") == {letter}
    assert await matching(desk, owner, text="हिंदी नहीं") == set()
    phrases = [f"{chr(code)}a{chr(code)}b" for code in range(0x21, 0x3100) if not chr(code).isspace()]
    patterns = [rules.phrase_pattern(phrase) for phrase in phrases]
    # Which characters are letters, before which no backslash is allowed, depends on the locale of the database.
    assert [one for one in patterns if re.search(r"\\[^!-~]", one)] == []
    statement = "SELECT count(phrase ~* pattern) FROM unnest(%s::text[], %s::text[]) AS p (phrase, pattern)"
    assert await desk.one(statement, phrases, patterns) == len(phrases)


async def test_a_rule_needs_a_condition_an_action_and_known_fields(desk: Desk, owner: UUID) -> None:
    for when, then, reason in (
        (RuleWhen(), RuleThen(["a"]), "condition"),
        (RuleWhen(kind="a"), RuleThen(), "action"),
        (RuleWhen(kind="a"), RuleThen(fields={"Nothing": "x"}), "no field"),
        (RuleWhen(field={"Nothing": None}), RuleThen(["a"]), "no field"),
        (RuleWhen(text="?!"), RuleThen(["a"]), "letter"),
        (RuleWhen(kind="a"), RuleThen(title="{secret}"), "secret"),
    ):
        with pytest.raises(BadInput, match=reason):
            await rule(desk, owner, when, then)


async def test_rules_and_fields_of_others_do_not_exist(desk: Desk, owner: UUID) -> None:
    await project(desk, owner)
    await add(desk, owner, "Bay 7")
    one = await rule(desk, owner, RuleWhen(text="bay 7"), RuleThen(["bay"]))
    stranger = await desk.new_owner()
    with pytest.raises(NotFound):
        await tried(desk, stranger, one)
    with pytest.raises(NotFound):
        await rules.undo_rule(desk.database, stranger, one.id)
    assert await matching(desk, stranger, text="bay 7") == set()
    async with desk.database.connection() as connection:
        assert await list_fields(connection, stranger) == []


async def test_fields_filter_the_list_and_leave_with_their_definition(desk: Desk, owner: UUID) -> None:
    await project(desk, owner)
    one, other = [await add(desk, owner, text) for text in ("one", "two")]
    async with desk.database.transaction() as connection:
        await edit_documents(connection, owner, [one], Edit(custom={"PROJECT": "Coast"}))
        await edit_documents(connection, owner, [other], Edit(custom={"Project": "Inland"}))
    async with desk.database.connection() as connection:
        for wanted, found in (("Project:coast", {one}), ("project", {one, other}), ("Project:x", set[UUID]())):
            page = await list_documents(connection, owner, Filters(field=wanted))
            assert {document.id for document in page.items} == found
        rows = await desk.rows("SELECT document_id FROM document_words WHERE words @@ to_tsquery('simple', 'inland')")
        assert [row["document_id"] for row in rows] == [other]
        (field,) = await list_fields(connection, owner)
    assert field.documents == 2
    async with desk.database.transaction() as connection:
        await edit_documents(connection, owner, [other], Edit(custom={"Project": None}))
        await delete_field(connection, owner, field.id)
    assert [(await shown(desk, owner, document)).fields for document in (one, other)] == [{}, {}]
