"""Facts as rows: a person's word is kept, each source replaces only its own facts, and the document's fields follow."""

from __future__ import annotations

from datetime import date
from uuid import UUID, uuid4

import pytest

from octavo.core.errors import BadInput
from octavo.facts.finding import CHECKED, FOUND, Fact
from octavo.facts.words import Box, Place
from octavo.library.bulk import undo_change
from octavo.library.changes import Edit, edit_documents
from octavo.library.documents import Filters, count_documents, list_documents, show_document
from octavo.library.facts import DESCRIPTION, list_facts, save_facts
from octavo.records.documents import Document, FactView
from tests.support.library import Desk

PLACE = Place(1, Box(10, 20, 30, 40), "Hansen GmbH")


def fact(name: str, value: str, source: str = "rule", status: str = FOUND, sure: float = 0.9) -> Fact:
    return Fact(name, value, value, sure, source, status, PLACE if source == "layout" else None)


@pytest.fixture
async def document(desk: Desk, owner: UUID) -> UUID:
    return (await desk.add(owner, b"An invoice")).document_id


async def save(desk: Desk, document: UUID, facts: list[Fact], made_by: str = "processing") -> None:
    async with desk.database.transaction() as connection:
        await save_facts(connection, document, 1, facts, made_by)


async def correct(desk: Desk, owner: UUID, document: UUID, **said: str | None) -> None:
    async with desk.database.transaction() as connection:
        await edit_documents(connection, owner, [document], Edit(facts=said))


async def shown(desk: Desk, owner: UUID, document: UUID) -> tuple[Document, dict[str, FactView]]:
    async with desk.database.connection() as connection:
        facts = {one.name: one for one in reversed(await list_facts(connection, owner, document))}
        return await show_document(connection, owner, document), facts


async def test_print_counts_more_than_metadata_and_a_check_more_than_print(
    desk: Desk, owner: UUID, document: UUID
) -> None:
    found = [
        fact("date", "2022-09-26", "metadata", sure=0.99),
        fact("date", "2018-03-06", sure=0.95),
        fact("date", "2018-03-05", status=CHECKED, sure=0.8),
        fact("author", "python-docx", "metadata"),
        fact("amount", "529.87"),
        fact("currency", "EUR"),
        fact("kind", "invoice"),
    ]
    await save(desk, document, found)
    await save(desk, document, [fact("title", "A model's title", "model")], DESCRIPTION)
    one, facts = await shown(desk, owner, document)
    assert (one.document_date, one.author, one.title) == (date(2018, 3, 5), "python-docx", "A model's title")
    assert (one.kind, one.amount, one.currency) == ("invoice", 529.87, "EUR")
    assert (facts["date"].value, facts["author"].source) == ("2018-03-05", "metadata")


async def test_a_persons_word_is_kept_and_each_source_replaces_only_its_own(
    desk: Desk, owner: UUID, document: UUID
) -> None:
    await save(desk, document, [fact("sender", "Hansen GmbH", "layout", CHECKED), fact("number", "1")])
    await save(desk, document, [fact("number", "2", "mapping", CHECKED, 0.95)], "mapping:invoice_v1")
    await correct(desk, owner, document, sender="Hansen Großhandel", amount="1.234,50 €", number=None)
    await save(desk, document, [fact("sender", "Somebody else", "layout", CHECKED, 0.99), fact("amount", "7")])
    await save(desk, document, [], "mapping:invoice_v1")
    one, facts = await shown(desk, owner, document)
    sender = facts["sender"]
    assert (one.sender, sender.source, sender.status) == ("Hansen Großhandel", "person", "confirmed")
    assert (sender.page, sender.box, sender.quote) == (1, (10.0, 20.0, 30.0, 40.0), "Hansen GmbH")
    assert (one.amount, facts["amount"].normalized) == (1234.5, "1234.50")
    assert "number" not in facts
    kept = await desk.rows("SELECT made_by, value FROM facts WHERE document_id = %s AND name = 'sender'", document)
    assert len(kept) == 2


async def test_the_fields_of_a_document_are_facts_of_a_person(desk: Desk, owner: UUID, document: UUID) -> None:
    async with desk.database.transaction() as connection:
        edit = Edit(title="The lease", author=None, document_date=date(2014, 4, 19))
        await edit_documents(connection, owner, [document], edit)
    await save(desk, document, [fact("title", "Lease", status=CHECKED), fact("author", "A. Writer", status=CHECKED)])
    one, facts = await shown(desk, owner, document)
    assert (one.title, one.author, one.document_date) == ("The lease", None, date(2014, 4, 19))
    assert (facts["title"].status, facts["date"].source) == ("confirmed", "person")
    detail = await desk.one(
        "SELECT detail FROM events WHERE document_id = %s AND kind = 'edited' ORDER BY id DESC LIMIT 1", document
    )
    assert "facts" not in detail


async def test_a_composed_title_follows_corrections_and_their_undoing(desk: Desk, owner: UUID, document: UUID) -> None:
    old, corrected = "Invoice A-17 · 2024-08-15 · € 12.50", "Invoice A-17 · 2024-08-15 · € 12.75"
    parts = [("kind", "invoice"), ("number", "A-17"), ("date", "2024-08-15"), ("amount", "12.50"), ("currency", "EUR")]
    await save(desk, document, [fact("title", old), *(fact(*part) for part in parts)])
    await save(desk, document, [fact("amount", "12.75", "mapping", CHECKED, 0.95)], "mapping:invoice_v1")
    assert (await shown(desk, owner, document))[0].title == corrected
    change = uuid4()
    async with desk.database.transaction() as connection:
        await edit_documents(connection, owner, [document], Edit(document_date=date(2024, 9, 1)), change=change)
    assert (await shown(desk, owner, document))[0].title == "Invoice A-17 · 2024-09-01 · € 12.75"
    await undo_change(desk.database, owner, change)
    assert (await shown(desk, owner, document))[0].title == corrected
    await correct(desk, owner, document, title="Crane")
    await correct(desk, owner, document, amount="1")
    assert (await shown(desk, owner, document))[0].title == "Crane"


async def test_a_title_on_the_page_is_not_replaced(desk: Desk, owner: UUID, document: UUID) -> None:
    await save(desk, document, [fact("title", "Crane", "layout"), fact("kind", "invoice"), fact("number", "A-17")])
    await correct(desk, owner, document, amount="1")
    assert (await shown(desk, owner, document))[0].title == "Crane"


@pytest.mark.parametrize(("name", "value"), [("date", "soon"), ("amount", "much"), ("currency", "money")])
async def test_a_value_of_another_type_is_refused(
    desk: Desk, owner: UUID, document: UUID, name: str, value: str
) -> None:
    with pytest.raises(BadInput, match=name):
        await correct(desk, owner, document, **{name: value})


async def test_documents_are_filtered_by_facts(desk: Desk, owner: UUID, document: UUID) -> None:
    await desk.add(owner, b"Another document")
    await correct(desk, owner, document, kind="Invoice", sender="Coolblue B.V.", date="19 April 2014", amount="717.97")
    await correct(desk, owner, document, language="fr-CH")
    fitting = [
        Filters(kind="invoice"),
        Filters(kind="invoice", sender="coolblue"),
        Filters(sender="coolblue"),
        Filters(language="fr"),
        Filters(after=date(2014, 4, 19), before=date(2014, 4, 20)),
        Filters(amount_min=700, amount_max=717.97),  # pyright: ignore[reportArgumentType]
    ]
    for filters in [*fitting, Filters(kind="letter"), Filters(language="f"), Filters(before=date(2014, 4, 19))]:
        async with desk.database.connection() as connection:
            found = [one.id for one in (await list_documents(connection, owner, filters)).items]
            count = await count_documents(connection, owner, filters)
        assert found == ([document] if filters in fitting else []), filters
        assert count == len(found), filters
