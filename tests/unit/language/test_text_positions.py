"""Words are found as a person types them, in the text as it is stored."""

from __future__ import annotations

import pytest

from octavo.language.text_positions import Anchor, QuoteFinder, find_words

TEXT = (
    "The **tower crane** at [Quarry Lane](https://example.org/lane), it\u2019s new.\n\n"
    "E\u0301tude, \u00c9tude and etude by Se\u00f1or Na\u00efve.\nWrite to a.b@example.org."
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("TOWER crane", ["tower crane**"]),
        ("  crane \n at ", ["crane** at"]),
        ("at quarry lane", ["at [Quarry Lane"]),
        ("etude", ["E\u0301tude", "\u00c9tude", "etude"]),
        ("\u00c9TUDE", ["E\u0301tude", "\u00c9tude", "etude"]),
        ("senor", ["Se\u00f1or"]),
        ("na\u00efve", ["Na\u00efve"]),
        ("it's", ["it\u2019s"]),
        ("a.b@example.org", ["a.b@example.org"]),
        ("lane", ["Lane"]),
        (".*", []),
        ("   ", []),
        ("absent", []),
    ],
)
def test_words_are_found_whatever_their_case_accents_spaces_and_markup(query: str, found: list[str]) -> None:
    assert [TEXT[one.start : one.end] for one in find_words(query, TEXT, 10)] == found


def test_no_more_than_the_limit_is_found() -> None:
    assert [one.start for one in find_words("a", "a a a a", 2)] == [0, 2]


@pytest.mark.parametrize("text", ["a" + "*" * 200_000, "a *" * 100_000, "a](" * 50_000, "a (" * 100_000])
def test_no_text_makes_the_search_slow(text: str) -> None:
    find_words("a b", text, 10_000)  # a quadratic search would take minutes


def test_the_text_before_a_quote_selects_one_of_several_occurrences() -> None:
    text = "First. The fee is due. Second. The fee is due."
    for before, start in (("First.", 7), ("Second.", 31)):
        span = QuoteFinder(text).find(Anchor("The fee is due.", before))
        assert span
        assert span.start == start
