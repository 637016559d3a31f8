"""Statements that cannot both be true are found with what differs; what only looks so is passed over."""

from __future__ import annotations

from uuid import uuid4

import pytest

from octavo.connect import contradiction
from octavo.connect.contradiction import find_candidates, judge_candidates
from octavo.connect.evidence import ChunkPair, ComparableChunk, DetectedConnection, SentenceCache
from octavo.language.small_model import CONTRADICTION_THRESHOLD
from octavo.records.search import Status


def pair_of(first: str, second: str, language: str | None = None) -> ChunkPair:
    one, other = (ComparableChunk(uuid4(), uuid4(), text, language=language) for text in (first, second))
    return ChunkPair(one, other, 0.6)


def compare(first: str, second: str, language: str | None = None) -> list[DetectedConnection]:
    return judge_candidates(find_candidates([pair_of(first, second, language)], SentenceCache()))


@pytest.mark.parametrize(
    ("kind", "explanation", "first", "second"),
    [
        (
            "negation",
            "One sentence contains a negation: “not consider the”.",
            "Engineers consider the bridge safe.",
            "Engineers do not consider the bridge safe.",
        ),
        (
            "number",
            "One says “30 days”, the other “90 days”.",
            "Either party may end the lease with a notice period of 30 days.",
            "Either party may end the lease with a notice period of 90 days.",
        ),
        (
            "number",
            "One says “10,000 EUR”, the other “12,500 EUR”.",
            "The lessee pays a deposit of 10,000 EUR before delivery.",
            "The lessee pays a deposit of 12,500 EUR before delivery.",
        ),
        (
            "wording",
            "One says “lessor”, the other “lessee”.",
            "The lessor maintains the crane and bears the cost of spare parts.",
            "The lessee maintains the crane and bears the cost of spare parts.",
        ),
        (
            "date",
            "One says “1987”, the other “1992”.",
            "The museum of the harbour opened in 1987.",
            "The museum of the harbour opened in 1992.",
        ),
        (
            "wording",
            "Only one sentence says “outside”.",
            "The farm lies in the district of Haifa, in the northern hills, about an hour from the coast.",
            "The farm lies outside of the district of Haifa.",
        ),
        (
            "date",
            "One says “12 March”, the other “19 March”.",
            "The meeting takes place on 12 March in Room 4.",
            "The meeting takes place on 19 March in Room 4.",
        ),
        (
            "number",
            "One says “14 days”, the other “30 days”.",
            "Payment is due within 14 days of the invoice date.",
            "Payment is due within 30 days of the invoice date.",
        ),
        (
            "wording",
            "One says “Anna Berg”, the other “Karl Lind”.",
            "The director of the museum is Anna Berg.",
            "The director of the museum is Karl Lind.",
        ),
    ],
)
def test_a_contradiction_names_what_differs(kind: str, explanation: str, first: str, second: str) -> None:
    (found,) = compare(first, second)
    assert (found.detail["kind"], found.status) == (kind, Status.POSSIBLE)
    assert found.explanation == explanation
    assert found.quotes == (first, second)
    (swapped,) = compare(second, first)
    assert swapped.detail["kind"] == kind
    assert swapped.strength == pytest.approx(found.strength, abs=0.01)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # the same in other words, rounded, or a bound
        ("The bridge carries forty thousand cars a day.", "Roughly forty thousand cars a day use the bridge."),
        ("The route along the coast is 8 kilometres long.", "The route along the coast is 8,000 metres long."),
        ("The clock tower leans by nine centimetres.", "The clock tower leans by 90 millimetres."),
        ("The ferry does not run on Sundays during the winter.", "During winter there is no ferry service on Sundays."),
        ("The reef lost 41,300 corals in the storm.", "The reef lost 40,000 corals in the storm."),
        ("The test was taken by 5,300 children.", "The test was taken by more than 5,000 children."),
        ("The bridge spans 1,280 metres.", "The bridge spans about 1,300 metres."),
        # asked, or about a part of the document
        ("The alarm rang in the museum.", "Did the alarm not ring in the museum?"),
        ("Section 4.2 describes how the samples were dried.", "Section 5.3 describes how the samples were dried."),
        ("Table 3 shows the results of the first test.", "Table 7 shows the results of the first test."),
        ("Fine clay settles faster in salt water [23].", "Fine clay settles faster in salt water [16]."),
        # of something else
        ("The TREC 2002 question track used 500 questions.", "The TREC 2003 question track used 413 questions."),
        ("The train to Lisbon takes ten hours.", "The train to Porto takes three hours."),
        ("Exports of timber rose by four percent.", "Imports of cement fell by four percent."),
        ("Annual rainfall in the western valleys is high.", "Annual rainfall in the eastern plains is low."),
        ("Some birds avoid the turbines.", "Some birds do not avoid the turbines."),
        ("The old bridge is closed to cars.", "The new bridge is open to cars."),
        ("The mayor of Graz is Anna Berg.", "The mayor of Linz is Karl Lind."),
        ("Invoice 4711 amounts to 300 euros.", "Invoice 4712 amounts to 450 euros."),
        ("Version 2.1 supports five languages.", "Version 3.0 supports nine languages."),
        # said by other people, or of another time
        ("We counted 12 otters along the river.", "We counted 34 otters along the river."),
        ("It was opened to the public in 1937.", "It was opened to the public in 1941."),
        ("The council met today in the town hall.", "The council did not meet today in the town hall."),
        ("In 2011 the town had 18,400 inhabitants.", "In 2021 the town had 21,900 inhabitants."),
        ("The museum was renovated in 1995.", "The museum was founded in 1887."),
        # a heading, a row of a table, a caption, a mail head, code
        ("# The gate is open in winter.", "# The gate is not open in winter."),
        ("| The gate is open in winter. |", "| The gate is not open in winter. |"),
        ("Figure 2: The gate is open in winter.", "Figure 2: The gate is not open in winter."),
        ("On Mon, 3 May 2021 at 09:14, Lena Hart wrote:", "On Wed, 5 May 2021 at 17:40, Lena Hart wrote:"),
        ("```\nThe gate is open in winter.\n```", "```\nThe gate is not open in winter.\n```"),
    ],
)
def test_what_can_be_true_together_is_left_alone(first: str, second: str) -> None:
    assert compare(first, second) == []
    assert compare(second, first) == []


def test_several_contradictions_of_two_passages_are_kept_and_repetitions_are_not() -> None:
    first = (
        "The lessee pays a deposit of 500 EUR before delivery. Either party may end the lease with 30 days' notice. "
        * 3
    )
    second = (
        "Either party may end the lease with 90 days' notice. The lessee pays a deposit of 800 EUR before delivery."
    )
    assert {one.explanation for one in compare(first, second)} == {
        "One says “500 EUR”, the other “800 EUR”.",
        "One says “30 days”, the other “90 days”.",
    }
    assert len(compare(first, second)) == 2


def test_a_contradiction_is_not_excused_by_another_sentence_of_the_passage() -> None:
    first = "The tower of the castle is open to visitors."
    second = f"The tower of the castle is not open to visitors. {first} The moat is dry."
    assert [one.quotes[1] for one in compare(first, second)] == ["The tower of the castle is not open to visitors."]


def test_the_same_sentence_contradicts_each_document_that_says_otherwise() -> None:
    notice = [f"Either party may end the lease with a notice period of {days} days." for days in (30, 90)]
    source, *targets = (ComparableChunk(uuid4(), uuid4(), text) for text in (notice[0], notice[1], notice[1]))
    pairs = [ChunkPair(source, target, 0.9) for target in targets]
    found = judge_candidates(find_candidates(pairs, SentenceCache()))
    assert {one.pair.target.document_id for one in found} == {target.document_id for target in targets}


def test_passages_that_name_other_things_are_not_compared() -> None:
    first = "Anton Berg rents the flat in Graz. The notice period of the lease is 30 days."
    second = "The crane stands at Quarry Lane. The notice period of the lease is 90 days."
    assert compare(first, second) == []
    assert compare(first, f"{second} A copy went to Graz.")


def test_tones_alone_are_no_contradiction() -> None:
    good = ComparableChunk(uuid4(), uuid4(), "The harvest was a wonderful success.", {"harvest": 0.9}, polarity=0.6)
    bad = ComparableChunk(uuid4(), uuid4(), "Hail damaged the harvest of wheat.", {"harvest": 0.8}, polarity=-0.6)
    assert judge_candidates(find_candidates([ChunkPair(good, bad, 0.6)], SentenceCache())) == []


def test_only_so_many_pairs_are_judged_and_those_that_differ_visibly_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contradiction, "MOST_JUDGED", 1)
    first = "The gate of the castle is open in winter. The lake of the castle is deep and cold in winter."
    second = "The lake of the castle is deep and very cold in winter. The gate of the castle is not open in winter."
    (found,) = compare(first, second)
    assert "not open" in found.quotes[1]


def test_the_threshold_is_never_below_that_of_the_model() -> None:
    assert contradiction.THRESHOLD >= CONTRADICTION_THRESHOLD


def test_other_languages_than_english_are_not_judged() -> None:
    first, second = "The gate is open in winter.", "The gate is not open in winter."
    assert compare(first, second, language="en")
    assert compare(first, second, language="nl") == []
    dutch = ("De poort van het kasteel is open.", "De poort van het kasteel is niet open in de winter.")
    assert find_candidates([pair_of(*dutch, language="en")], SentenceCache()) == []


@pytest.mark.parametrize("tag", ["en-US", "en-GB", "en_AU", "EN"])
def test_every_variety_of_english_is_judged(tag: str) -> None:
    assert compare("The gate is open in winter.", "The gate is not open in winter.", language=tag)
    assert compare("The gate is open in winter.", "The gate is not open in winter.", language="nl-BE") == []
