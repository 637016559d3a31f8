"""What cannot both be true is found; what only looks so is passed over. One case a line."""

from __future__ import annotations

from uuid import uuid4

import pytest

from octavo.connect.contradiction import find_contradictions
from octavo.connect.engine_types import ChunkPair, ComparableChunk, DetectedConnection
from octavo.connect.evidence import ClaimCache
from octavo.records.search import Status


def compare(first: str, second: str, **more: object) -> DetectedConnection | None:
    chunks = [ComparableChunk(uuid4(), uuid4(), text, **more) for text in (first, second)]  # pyright: ignore[reportArgumentType]
    found = find_contradictions([ChunkPair(chunks[0], chunks[1], 0.7)], ClaimCache())
    return found[0] if found else None


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("negation", "Engineers consider the bridge safe.", "Engineers do not consider the bridge safe."),
        ("negation", "A man is playing the guitar.", "There is no man playing the guitar."),
        ("negation", "The alarm rang in the museum.", "The alarm did not ring in the museum."),
        ("antonym", "Hunting otters is forbidden in the valley.", "Hunting otters is permitted in the valley."),
        ("antonym", "Sales of bread rose in spring.", "Sales of bread fell in spring."),
        ("antonym", "The staircase of the tower is safe.", "The staircase of the tower is unsafe."),
        ("number", "The ferry carried 117 passengers.", "The ferry carried 89 passengers."),
        ("number", "The bridge carries forty thousand cars a day.", "The bridge carries sixty thousand cars a day."),
        ("number", "The castle wall is 3 metres high.", "The castle wall is 250 cm high."),
        ("date", "The museum opened in 1987.", "The museum opened in 1992."),
        ("date", "The council approved the budget on 14 March.", "The council approved the budget on 2 April."),
        ("date", "The market takes place in town every Friday.", "The market takes place in town every Tuesday."),
    ],
)
def test_statements_that_cannot_both_be_true_are_found(kind: str, first: str, second: str) -> None:
    found = compare(first, second)
    assert found is not None
    assert (found.detail["kind"], found.status) == (kind, Status.POSSIBLE)
    assert found.quotes == (first, second)
    swapped = compare(second, first)
    assert swapped is not None
    assert swapped.detail["kind"] == kind


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # the same in other words
        ("The bridge carries forty thousand cars a day.", "Roughly forty thousand cars a day use the bridge."),
        ("The route is 8 kilometres long.", "The route is 8,000 metres long."),
        ("It is not impossible to cross the river.", "It is possible to cross the river."),
        ("The dam did not open until 2019.", "The dam opened in 2019."),
        # rounded, or a bound
        ("The reef lost 41,300 corals.", "The reef lost 40,000 corals."),
        ("The test was taken by 5,300 children.", "The test was taken by more than 5,000 children."),
        ("The hut sleeps at least 40 people.", "The hut sleeps 48 people."),
        # not for certain, not said by the author, asked
        ("The dam broke in the storm.", "Engineers feared that the dam might not break in the storm."),
        ("Caffeine affects sleep.", "If taken early, caffeine does not affect sleep."),
        ("The alarm rang in the museum.", "Did the alarm not ring in the museum?"),
        # of something else, or of a part
        ("A vial is stable for thirty days.", "A vial of the solvent is stable for ninety days."),
        ("The eastern section has recovered.", "The western section has not recovered."),
        ("The train to Lisbon takes ten hours.", "The train to Porto takes three hours."),
        ("Some birds avoid the turbines.", "Some birds do not avoid the turbines."),
        ("A man is dancing.", "There is no man dancing on the road."),
        # of another time
        ("Shooting wolves is legal here.", "Shooting wolves was formerly illegal here."),
        ("In 2003 biologists counted 12 otters.", "Biologists counted 34 otters."),
        ("The museum was renovated in 1995.", "The museum was founded in 1887."),
        # about nothing that is shared
        ("The bread is not ready.", "The harbour is closed to ships."),
    ],
)
def test_what_can_be_true_together_is_left_alone(first: str, second: str) -> None:
    assert compare(first, second) is None


def test_a_claim_in_both_passages_is_not_a_contradiction() -> None:
    text = "The tower is open to visitors in May. The tower is not open to visitors at night in May."
    assert compare(text, text) is None


def test_shared_concepts_with_opposite_tones_are_possible_contradictions() -> None:
    good = ComparableChunk(
        uuid4(), uuid4(), "The harvest of the valley was a wonderful success.", {"harvest": 0.9}, polarity=0.6
    )
    bad = ComparableChunk(
        uuid4(), uuid4(), "The harvest of the valley was a horrible disaster.", {"harvest": 0.8}, polarity=-0.6
    )
    (found,) = find_contradictions([ChunkPair(good, bad, 0.6)], ClaimCache())
    assert (found.detail["kind"], found.status) == ("polarity", Status.POSSIBLE)


def test_other_languages_than_english_are_not_judged() -> None:
    first, second = "The gate is open in winter.", "The gate is not open in winter."
    assert compare(first, second, language="en") is not None
    assert compare(first, second, language="nl") is None


@pytest.mark.parametrize("tag", ["en-US", "en-GB", "en_AU", "EN"])
def test_every_variety_of_english_is_judged(tag: str) -> None:
    assert compare("The gate is open in winter.", "The gate is not open in winter.", language=tag) is not None
    assert compare("The gate is open in winter.", "The gate is not open in winter.", language="nl-BE") is None
