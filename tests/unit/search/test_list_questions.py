"""Questions for the documents that mention something become a search for all of its words."""

from __future__ import annotations

import pytest

from octavo.search.ask import read_list_question


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("Which documents mention birches?", '"birches"'),
        ("In which files do you find it?", None),
        ("which of my letters talk about the crane lease?", 'type:letter "crane" "lease"'),
        ("List all invoices that mention Coolblue", 'type:invoice "Coolblue"'),
        ("Welche Dokumente erwähnen Birken?", '"Birken"'),
        ("In welchen Dokumenten geht es um die Miete?", '"Miete"'),
        ("Which document is the newest?", None),
        ("What mentions of birches are there?", None),
        ("Which documents mention the?", None),
    ],
)
def test_only_a_question_for_documents_is_read_as_a_list(question: str, query: str | None) -> None:
    assert read_list_question(question) == query
