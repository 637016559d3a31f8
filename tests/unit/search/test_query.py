"""What is typed into the search box: taken apart, or refused with a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.search.query import MOST_CHARACTERS, MOST_WORDS, EmptyQuery, QueryTooLong, SearchQuery, parse_query


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("bog moss", SearchQuery(("bog", "moss"))),
        ('"raised bog" moss', SearchQuery(("raised", "bog", "moss"), ("raised bog",))),
        ("„raised bog“", SearchQuery(("raised", "bog"), ("raised bog",))),
        ("bog -moss", SearchQuery(("bog",), (), ("moss",))),
        ('bog -"peat moss"', SearchQuery(("bog",), (), ("peat moss",))),
        # A minus inside of a word, or before nothing, is only a sign.
        ("well-known 5 - 3", SearchQuery(("well-known", "5", "3"))),
        # Never closed: to the end.
        ('bog "raised', SearchQuery(("bog", "raised"), ("raised",))),
        ("a & b | !c", SearchQuery(("a", "b", "!c"))),
        ("bog\0moss", SearchQuery(("bog", "moss"))),
        ("水質檢查", SearchQuery(("水質檢查",))),
    ],
)
def test_words_phrases_and_what_is_not_wanted(typed: str, asked: SearchQuery) -> None:
    assert parse_query(typed) == asked


@pytest.mark.parametrize("typed", ["", "   ", '""', "-moss", "!!! ??", "\ud800", "-", "\0"])
def test_nothing_to_look_for_is_refused(typed: str) -> None:
    with pytest.raises(EmptyQuery):
        parse_query(typed)


def test_too_much_is_refused() -> None:
    with pytest.raises(QueryTooLong, match="1001"):
        parse_query("x" * (MOST_CHARACTERS + 1))


@given(st.text(max_size=MOST_CHARACTERS))
def test_whatever_is_typed_can_be_given_to_a_database(typed: str) -> None:
    try:
        asked = parse_query(typed)
    except EmptyQuery:
        return
    assert 0 < len(asked.words) <= MOST_WORDS
    for said in (*asked.words, *asked.phrases, *asked.excluded):
        assert said.strip()
        assert "\0" not in said
        said.encode()


@pytest.mark.parametrize(
    ("text", "words", "facts"),
    [
        ('from:coolblue type:Invoice "fridge"', ("fridge",), {"sender": "coolblue", "kind": "invoice"}),
        ('from:"Coolblue B.V." after:2014 before:2014-05', (), {
            "sender": "Coolblue B.V.", "after": "2014-01-01", "before": "2014-05-01",
        }),
        ("amount:>500 fridge", ("fridge",), {"amount_min": "500"}),
        ("amount:100..200", (), {"amount_min": "100", "amount_max": "200"}),
        ("amount:717.97", (), {"amount_min": "717.97", "amount_max": "717.97"}),
        ('field:Project field:"Cost centre: 12"', (), {"field": "Cost centre", "field_value": "12"}),
        ("field::x tide", ("field::x", "tide"), {}),
        ("before:lunch amount:much http://type:a", ("before:lunch", "amount:much", "http://type:a"), {}),
    ],
)  # fmt: skip
def test_operators_select_documents_by_their_facts(text: str, words: tuple[str, ...], facts: dict[str, str]) -> None:
    query = parse_query(text)
    assert (query.words, query.facts) == (words, facts)
