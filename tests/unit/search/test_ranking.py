"""Which passages are weighed, and one order out of several."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from octavo.core.types import new_id
from octavo.language import NAME
from octavo.search.query_terms import TermCount, TermCountCache
from octavo.search.ranking import MOST_CANDIDATES, MOST_TERMS, Term, fuse, plan_ranking, spread, vector_share


def term(word: str, found_in: int, often_in: int = 0, config: str = "english") -> Term:
    return Term(config, f"'{word}'", f"'3 {word}'", 100_000, 120.0, found_in, often_in)


counts = st.integers(0, 100_000).flatmap(lambda found: st.tuples(st.just(found), st.integers(0, found)))


def test_rare_words_bring_all_their_passages_and_common_ones_those_that_speak_of_them() -> None:
    planned = plan_ranking([term("flow", 40_000, 900), term("sphagnum", 12)])
    lookups = [one.query for one in planned.lookups]
    assert lookups == ["'sphagnum'", "'3 sphagnum'", "'sphagnum' & 'flow'", "'3 flow'"]
    weights = {one.query: one.weight for one in planned.terms}
    assert weights["'sphagnum'"] > 8 * weights["'flow'"]


def test_a_word_that_is_nowhere_counts_for_titles_only() -> None:
    planned = plan_ranking([term("almanac", 0)])
    assert planned.lookups == ()
    assert [one.query for one in planned.terms] == ["'almanac'"]


def test_a_common_word_that_nobody_uses_often_is_looked_for_as_it_is() -> None:
    assert [one.query for one in plan_ranking([term("flow", 40_000)]).lookups] == ["'flow'"]


def test_a_word_that_most_passages_use_is_not_looked_up() -> None:
    everywhere, often = term("page", 90_000, 60_000), term("flow", 40_000, 900)
    planned = plan_ranking([everywhere], browses=True)
    assert (planned.lookups, list(planned.browsed)) == ((), ["english"])
    planned = plan_ranking([everywhere, often], browses=True)
    assert [one.query for one in planned.lookups] == ["'3 flow'"]
    assert list(planned.browsed) == ["english"]
    assert plan_ranking([everywhere]).lookups, "a required phrase needs the index"


@given(st.lists(counts, min_size=1, max_size=60))
def test_what_is_weighed_stays_few(given_counts: list[tuple[int, int]]) -> None:
    terms = [term(f"w{number}", found, often) for number, (found, often) in enumerate(given_counts)]
    planned = plan_ranking(terms)
    assert len(planned.terms) <= MOST_TERMS
    known = {one.query: one.found_in for one in terms}
    taken = [known[one.query] for one in planned.lookups if one.query in known]
    assert sum(sorted(taken)[:-1]) <= MOST_CANDIDATES
    assert all(one.weight > 0 for one in planned.terms)
    assert all(one.worth > 0 for one in planned.lookups)


@given(st.lists(st.tuples(st.floats(0.1, 2), st.lists(st.integers(0, 30), unique=True, max_size=20)), max_size=4))
def test_fusing_loses_and_invents_nothing(rankings: list[tuple[float, list[int]]]) -> None:
    fused = fuse(rankings)
    assert set(fused) == {key for _, ranking in rankings for key in ranking}
    assert list(fused.values()) == sorted(fused.values(), reverse=True)
    assert all(0 < score <= 1.000001 for score in fused.values())


def test_who_is_well_placed_in_both_comes_before_who_is_first_in_one() -> None:
    assert next(iter(fuse([(1, ["a", "b"]), (1, ["c", "b"])]))) == "b"


def test_no_more_of_one_document_than_allowed() -> None:
    groups = {"a": 1, "b": 1, "c": 2, "d": 1}
    assert spread("abcd", groups, 1, 10) == ["a", "c"]
    assert spread("abcd", groups, None, 3) == ["a", "b", "c"]


def test_counts_are_remembered_until_the_texts_have_changed() -> None:
    remembered, word = TermCountCache(most=1), (new_id(), None, "english", "'flow'")
    remembered.keep(word, TermCount(10_000, 4000, 30))
    assert remembered.find(word, 10_100) == TermCount(10_000, 4000, 30)
    assert remembered.find(word, 20_000) is None
    remembered.keep((word[0], None, "english", "'bog'"), TermCount(10_000, 3, 0))
    assert remembered.find(word, 10_000), "what is rare is not kept"
    remembered.keep((word[0], None, "english", "'wing'"), TermCount(10_000, 5000, 0))
    assert remembered.find(word, 10_000) is None, "the oldest makes room"


def test_vectors_of_the_english_model_count_half_in_other_languages() -> None:
    assert [vector_share(NAME, language) for language in ("en", "en-GB", None)] == [1, 1, 1]
    assert vector_share(NAME, "de") == vector_share(NAME, "es-MX") == 0.5
    assert vector_share("openai:text-embedding-3-small", "de") == 1
    by_words, by_meaning = ["right", "other"], ["other", "wrong", "right"]
    in_english = fuse([(1, by_words), (1, by_meaning)])
    in_german = fuse([(1, by_words), (1, dict.fromkeys(by_meaning, 0.5))])
    assert (next(iter(in_english)), next(iter(in_german))) == ("other", "right")
