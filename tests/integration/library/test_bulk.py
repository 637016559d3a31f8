"""Actions on many documents: in batches, with one event each, and undone exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import BadInput, NotFound
from octavo.core.types import new_id
from octavo.database import Connection, fetch_rows
from octavo.library import bulk
from octavo.library.bulk import BatchResult, BulkAction, forget_changes, undo_change
from octavo.library.changes import MOST_TAGS, Edit, edit_documents, purge_documents, trash_documents
from octavo.library.collections import delete_collection, list_collections
from octavo.library.documents import Filters, list_documents, list_events, show_document
from octavo.library.facts import list_facts
from octavo.library.fields import add_field
from tests.support.library import Desk

FIELDS = ("title", "author", "document_date", "kind", "sender", "amount", "currency", "language", "tags", "collection")


async def add(desk: Desk, owner: UUID, number: int) -> list[UUID]:
    return [(await desk.add(owner, f"text {one}".encode())).document_id for one in range(number)]


async def edit(desk: Desk, owner: UUID, documents: Sequence[UUID], wanted: Edit) -> UUID:
    change = new_id()
    async with desk.database.transaction() as connection:
        await edit_documents(connection, owner, documents, wanted, change=change)
    return change


async def values_of(desk: Desk, owner: UUID, documents: Sequence[UUID]) -> list[dict[str, Any]]:
    async with desk.database.connection() as connection:
        shown = [await show_document(connection, owner, one) for one in documents]
        facts = [await list_facts(connection, owner, one) for one in documents]
        made_by = await fetch_rows(connection, b"SELECT * FROM document_tags ORDER BY 1, 2", {})
        edited = await fetch_rows(connection, b"SELECT id, edited FROM documents ORDER BY 1", {})
    return [
        {"facts": said, "tags_made_by": made_by, "edited": edited} | {name: getattr(one, name) for name in FIELDS}
        for one, said in zip(shown, facts, strict=True)
    ]


EVERYTHING = Edit(
    title="New title",
    author="Ada",
    document_date=date(2020, 2, 3),
    collection="Quay",
    facts={"kind": "letter", "sender": "Harbour Board", "amount": "12.50", "currency": "EUR"},
    added_tags=["harbour", "Gas"],
    removed_tags=["öl"],
)


async def test_undo_restores_exactly_the_earlier_values(desk: Desk, owner: UUID) -> None:
    documents = await add(desk, owner, 3)
    await edit(desk, owner, documents[:1], Edit(title="Mine", author=None, collection="Box", tags=["Öl", "gas"]))
    await edit(
        desk, owner, documents[1:2], Edit(document_date=date(2019, 1, 1), facts={"kind": "invoice", "sender": "Ada"})
    )
    async with desk.database.transaction() as connection:
        await connection.execute(b"UPDATE document_tags SET made_by = 'local'")
    before = await values_of(desk, owner, documents)

    change = await edit(desk, owner, documents, EVERYTHING)
    changed = await values_of(desk, owner, documents)
    assert [one["collection"] for one in changed] == ["Quay"] * 3
    assert [one["tags"] for one in changed] == [["gas", "harbour"], ["gas", "harbour"], ["gas", "harbour"]]
    assert {(one["title"], one["author"], one["document_date"], one["kind"]) for one in changed} == {
        ("New title", "Ada", date(2020, 2, 3), "letter")
    }

    assert await undo_change(desk.database, owner, change) == len(documents)
    assert await values_of(desk, owner, documents) == before
    assert await undo_change(desk.database, owner, change) == 0  # the second time there is nothing to restore


async def test_undo_restores_only_the_fields_that_were_edited(desk: Desk, owner: UUID) -> None:
    (document,) = await add(desk, owner, 1)
    change = await edit(desk, owner, [document], Edit(collection="Quay"))
    await edit(desk, owner, [document], Edit(title="Later", tags=["later"]))
    await undo_change(desk.database, owner, change)
    (now,) = await values_of(desk, owner, [document])
    assert (now["title"], now["tags"], now["collection"]) == ("Later", ["later"], None)


async def test_undo_leaves_later_changes_alone(desk: Desk, owner: UUID) -> None:
    (document,) = await add(desk, owner, 1)
    async with desk.database.transaction() as connection:
        await add_field(connection, owner, "Project", "text")
        await add_field(connection, owner, "Place", "text")
    await edit(desk, owner, [document], Edit(tags=["old", "öl"], facts={"kind": "invoice"}))
    wanted = replace(EVERYTHING, custom={"Project": "Coast", "Place": "Pier"})
    change = await edit(desk, owner, [document], wanted)
    later = Edit(
        title="Later",
        collection="Dock",
        added_tags=["later"],
        removed_tags=["Gas"],
        facts={"kind": "contract"},
        custom={"Place": None},
    )
    await edit(desk, owner, [document], later)
    await undo_change(desk.database, owner, change)
    (now,) = await values_of(desk, owner, [document])
    assert (now["title"], now["collection"], now["kind"]) == ("Later", "Dock", "contract")
    assert (now["author"], now["document_date"]) == (None, None)
    assert set(now["tags"]) == {"old", "öl", "later"}
    async with desk.database.connection() as connection:
        assert (await show_document(connection, owner, document)).fields == {}
    assert await desk.rows("SELECT edited FROM documents") == [{"edited": ["tags"]}]


async def test_a_change_of_an_earlier_version_of_octavo_can_be_undone(desk: Desk, owner: UUID) -> None:
    documents = await add(desk, owner, 1)
    await edit(desk, owner, documents, Edit(title="Mine", collection="Box", tags=["Öl", "gas"]))
    before = await values_of(desk, owner, documents)
    change = await edit(desk, owner, documents, EVERYTHING)
    await desk.rows("UPDATE document_changes SET before = before - 'after'")
    await undo_change(desk.database, owner, change)
    assert await values_of(desk, owner, documents) == before


async def test_undo_does_not_bring_back_a_deleted_collection(desk: Desk, owner: UUID) -> None:
    (document,) = await add(desk, owner, 1)
    await edit(desk, owner, [document], Edit(collection="Box"))
    change = await edit(desk, owner, [document], Edit(collection="Quay"))
    async with desk.database.transaction() as connection:
        box = next(one for one in await list_collections(connection, owner) if one.name == "Box")
        await delete_collection(connection, owner, box.id)
    await undo_change(desk.database, owner, change)
    assert (await values_of(desk, owner, [document]))[0]["collection"] is None


async def test_deleted_documents_come_back_and_purged_ones_do_not(desk: Desk, owner: UUID) -> None:
    documents = await add(desk, owner, 3)
    change = new_id()
    async with desk.database.transaction() as connection:
        await trash_documents(connection, owner, documents, change=change)
    async with desk.database.transaction() as connection:
        await purge_documents(connection, owner, documents[:1])
    assert await undo_change(desk.database, owner, change) == 2
    async with desk.database.connection() as connection:
        assert {one.id for one in (await list_documents(connection, owner)).items} == set(documents[1:])


async def test_a_stranger_undoes_nothing(desk: Desk, owner: UUID) -> None:
    documents = await add(desk, owner, 1)
    change = await edit(desk, owner, documents, Edit(collection="Quay"))
    for other in (await desk.new_owner(), owner):
        with pytest.raises(NotFound):
            await undo_change(desk.database, other, change if other != owner else uuid4())
    assert (await values_of(desk, owner, documents))[0]["collection"] == "Quay"


async def test_changes_are_forgotten_after_some_days(desk: Desk, owner: UUID) -> None:
    change = await edit(desk, owner, await add(desk, owner, 2), Edit(collection="Quay"))
    assert await forget_changes(desk.database) == 0
    async with desk.database.transaction() as connection:
        await connection.execute(b"UPDATE document_changes SET changed_at = changed_at - interval '8 days'")
    assert await forget_changes(desk.database) == 2
    with pytest.raises(NotFound):
        await undo_change(desk.database, owner, change)


async def test_a_document_never_gets_too_many_tags(desk: Desk, owner: UUID) -> None:
    (document,) = await add(desk, owner, 1)
    await edit(desk, owner, [document], Edit(tags=[str(number) for number in range(MOST_TAGS)]))
    await edit(desk, owner, [document], Edit(added_tags=["7"]))  # it has this one
    with pytest.raises(BadInput):
        await edit(desk, owner, [document], Edit(added_tags=["one more"]))


async def test_each_batch_is_committed_by_itself(desk: Desk, owner: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BATCH_DOCUMENTS", 2)
    documents = await add(desk, owner, 5)
    sizes: list[int] = []

    async def act(connection: Connection, batch: Sequence[UUID]) -> BatchResult:
        sizes.append(len(batch))
        if len(sizes) == 3:
            raise BadInput("Enough.")
        return BatchResult(await edit_documents(connection, owner, batch, Edit(collection="Quay")))

    result = await BulkAction(desk.database, desk.bucket, owner, act).run(documents)
    assert (result.changed, result.error and result.error.line, sizes) == (4, "Enough.", [2, 2, 1])
    async with desk.database.connection() as connection:
        moved = (await list_documents(connection, owner, Filters(collection="Quay"))).items
        kinds = [event.kind for event in (await list_events(connection, owner, moved[0].id)).items]
    assert (len(moved), kinds.count("edited")) == (4, 1)


async def test_a_document_deleted_after_it_was_selected_is_skipped(desk: Desk, owner: UUID) -> None:
    documents = await add(desk, owner, 3)
    async with desk.database.transaction() as connection:
        await trash_documents(connection, owner, documents[:1])

    async def act(connection: Connection, batch: Sequence[UUID]) -> BatchResult:
        return BatchResult(await edit_documents(connection, owner, batch, Edit(collection="Quay")))

    with pytest.raises(NotFound):
        await BulkAction(desk.database, desk.bucket, owner, act).run(documents)
    assert (await BulkAction(desk.database, desk.bucket, owner, act, skips=True).run(documents)).changed == 2
