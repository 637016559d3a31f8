"""How similar the nearest chunk has to be before it is an answer."""

from __future__ import annotations

from octavo.language import NAME
from octavo.search.ranking import MEASURED, least_similarity


def test_more_chunks_need_a_nearer_one_up_to_a_limit() -> None:
    limits = [least_similarity(NAME, chunks) for chunks in (0, 1, 10, 100, 1000, 100_000, 10**7)]
    assert limits == sorted(limits)
    assert limits[0] == limits[1] == MEASURED[NAME].one
    assert limits[-1] == limits[-2] == MEASURED[NAME].most


def test_a_model_that_was_never_measured_hides_nothing() -> None:
    assert least_similarity("openai:text-embedding-9", 10**6) == 0
