"""A citation is verified only where its words stand on the page that it names."""

from __future__ import annotations

import pytest

from octavo.analyse.document_text import PageTexts, verify

TEXTS = PageTexts(
    {
        1: "# Terms\n\nThe **penalty** for late delivery is 4,250 euros\nper day.\n\n| a | b |",
        2: "Disputes are decided by the court of Ravenna alone. “So be it,” she said.",
        3: "Signed in Trieste. Signed in Trieste.",
        4: "Signed in Trieste. Nothing else.",
    }
)


@pytest.mark.parametrize(
    ("page", "quote", "found"),
    [
        (1, "The penalty for late delivery is 4,250 euros per day.", (1, True)),
        (1, "late delivery … per day", (1, True)),
        (1, "per day … late delivery", (1, False)),  # the order is part of it
        (2, '"So be it," she said', (2, True)),
        (1, "decided by the court of Ravenna", (2, True)),  # a page that was counted wrongly is put right
        (1, "Signed in Trieste", (1, False)),  # on two pages: nobody knows which
        (2, "decided by the court of Rimini", (2, False)),
        (9, "Disputes", (2, True)),
        (1, "…", (1, False)),
    ],
)
def test_quotes_are_looked_for_on_their_page(page: int, quote: str, found: tuple[int, bool]) -> None:
    (citation,) = verify([(page, quote, 1.0)], TEXTS)
    assert (citation.page, citation.verified) == found


def test_the_same_words_are_cited_once() -> None:
    cited = [(1, "late delivery", 0.9), (1, "late  **delivery**", 0.5)]
    assert len(verify(cited, TEXTS)) == 1
