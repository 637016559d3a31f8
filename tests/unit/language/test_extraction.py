"""Prompts for names, dates, money and duties are answered by rules, with quotes, in English and German."""

from __future__ import annotations

import pytest

from octavo.ai.tasks.answer_segment import SegmentToAnswer, answer_offline
from octavo.ai.tasks.consolidate_answers import AnswersToConsolidate, SegmentResult, consolidate_offline
from octavo.analyse.document_text import PageTexts, verify
from octavo.language.extraction import Subject, extract, find_subject
from octavo.language.insights import ChunkText

PEOPLE = "Which people and organisations are named, and what is the role of each of them?"
DATES = "Which dates, periods and deadlines are given, and what happens on each of them or until then?"
MONEY = "Which amounts of money are named, for what, who pays them and to whom?"
DUTIES = "Who has to do what? Which duties, conditions, penalties and risks are there?"

LEASE = """# Lease of a tower crane

This contract is made on 14 March 2024 between Brenner Hoists GmbH, represented by Ada Brenner, and
Quarry Lane Builders Ltd, represented by Tomas Okafor.

The lessee must pay a rent of 4,250 EUR per month, due on the first working day of each month. A
deposit of 12,500 EUR is payable by 1 April 2024. The lessor shall inspect the crane every 90 days.
The lessee must report damage within 48 hours to Ada Brenner. The lessee must not lend the crane to
others. If it comes back late, a penalty of 300 EUR per day is owed."""
MIETVERTRAG = """# Mietvertrag

Zwischen der Wohnbau Nord GmbH & Co. KG, Hauptstraße 12, vertreten durch die Geschäftsführerin Dr.
Henrike von Appen, und Herrn Jonas Petersen wird folgender Vertrag geschlossen.

Das Mietverhältnis beginnt am 01.05.2023. Die Kündigungsfrist beträgt drei Monate. Die Grundmiete
beträgt 1.150,00 €. Die Vorauszahlung beträgt 210,- EUR. Die Miete ist spätestens bis zum dritten
Werktag eines jeden Monats zu zahlen.

Der Mieter ist verpflichtet, die Räume zu heizen. Der Mieter darf die Wohnung nicht untervermieten.
Schäden hat der Mieter unverzüglich anzuzeigen. Der Vermieter haftet nicht für höhere Gewalt. Das
Haus ist vom Hafen aus gut zu sehen.

Kiel, den 14. April 2023
"""
LETTER = """Dear Ms O'Neill,

I am writing for Mrs. Margaret Liu, whose cellar was flooded on 12 January 2022. The plumber, Dave
Hargreaves of Hargreaves & Sons Ltd, estimates repairs at £3,480.50. Please confirm within fourteen
days. Mr Liu pays £95 a night for a hotel.

Yours sincerely,

Thomas Achebe
"""
REPORT = """# Annual report of the Harbour Board

Revenue rose to $12.4 million, up from US$ 11.9 million in 2022. The chair, Eleanor Whitcombe,
expects costs of €2.3m. The Ministry of Transport approved the plan on 2023-06-30. The University of
Gdańsk and the World Bank advised the board. There is a risk that silt blocks the channel."""


def values(subject: Subject, text: str) -> dict[str, list[str]]:
    return {group: [one[0].value for one in found] for group, found in extract(subject, [ChunkText(text)]).groups}


def test_an_english_contract_gives_its_parties_dates_sums_and_duties() -> None:
    assert values(Subject.NAMES, LEASE) == {
        "People": ["Ada Brenner", "Tomas Okafor"],
        "Organisations": ["Brenner Hoists GmbH", "Quarry Lane Builders Ltd"],
    }
    assert values(Subject.DATES, LEASE) == {
        "Dates": ["14 March 2024", "1 April 2024"],
        "Periods and deadlines": ["the first working day of each month", "every 90 days", "within 48 hours"],
    }
    assert values(Subject.MONEY, LEASE) == {"Amounts": ["4,250 EUR", "12,500 EUR", "300 EUR"]}
    duties = values(Subject.DUTIES, LEASE)
    assert [len(duties[group]) for group in ("Duties", "Prohibitions", "Penalties and liability")] == [3, 1, 1]


def test_a_german_contract_gives_the_same() -> None:
    assert values(Subject.NAMES, MIETVERTRAG) == {
        "People": ["Henrike von Appen", "Jonas Petersen"],
        "Organisations": ["Wohnbau Nord GmbH & Co. KG"],
    }
    assert values(Subject.DATES, MIETVERTRAG) == {
        "Dates": ["01.05.2023", "14. April 2023"],
        "Periods and deadlines": ["drei Monate", "zum dritten Werktag eines jeden Monats"],
    }
    assert values(Subject.MONEY, MIETVERTRAG) == {"Amounts": ["1.150,00 €", "210,- EUR"]}
    duties = values(Subject.DUTIES, MIETVERTRAG)
    assert len(duties["Duties"]) == 3
    assert not any("Hafen" in one for one in duties["Duties"])
    assert (len(duties["Prohibitions"]), len(duties["Penalties and liability"])) == (1, 1)


def test_letters_and_reports_are_read_as_well() -> None:
    assert values(Subject.NAMES, LETTER)["People"] == ["O'Neill", "Margaret Liu", "Dave Hargreaves", "Thomas Achebe"]
    assert values(Subject.MONEY, LETTER) == {"Amounts": ["£3,480.50", "£95"]}
    assert values(Subject.MONEY, REPORT) == {"Amounts": ["$12.4 million", "US$ 11.9 million", "€2.3m"]}
    assert values(Subject.NAMES, REPORT) == {
        "People": ["Eleanor Whitcombe"],
        "Organisations": ["Ministry of Transport", "University of Gdańsk", "World Bank"],
    }
    assert values(Subject.DATES, REPORT)["Dates"] == ["2022", "2023-06-30"]
    assert values(Subject.DUTIES, REPORT)["Risks"] == ["There is a risk that silt blocks the channel."]


@pytest.mark.parametrize(
    "text",
    [
        "The Control Group met in Table 3. Section 5 describes the Method. See Figure 2.",
        "Der Bahnhof liegt an der Hauptstraße. Die Rechnung ist im Anhang. Das Wetter war gut.",
        "Pipes of 300 mm carry 4,250 litres. It must have been raining. Shall we go?",
    ],
)
def test_capital_letters_and_numbers_alone_prove_nothing(text: str) -> None:
    assert [values(subject, text) for subject in Subject] == [{}, {}, {}, {}]


@pytest.mark.parametrize("question", [PEOPLE, DATES, MONEY, DUTIES])
def test_every_shipped_prompt_has_quotes_that_are_on_their_pages(question: str) -> None:
    texts = {3: LEASE, 4: MIETVERTRAG, 5: LETTER, 6: REPORT}
    answer = answer_offline(SegmentToAnswer(question, "", list(texts.items())))
    cited = verify([(one.page, one.quote, one.relevance) for one in answer.citations], PageTexts(texts))
    assert answer.found
    assert len(cited) > 3
    assert all(one.verified for one in cited)


def test_a_long_list_is_cut_and_says_so_and_no_group_is_lost() -> None:
    text = "\n\n".join(f"Mr Stone{number}x met Quarry{number} Builders Ltd." for number in range(500))
    answer = answer_offline(SegmentToAnswer(PEOPLE, "", [(1, text)]))
    assert answer.answer.count("and 460 more") == 2
    assert len(answer.answer) < 20_000
    assert len(answer.citations) == 80


@pytest.mark.parametrize("question", [PEOPLE, DATES, MONEY, DUTIES, "What is the harbour fee of pier 17?"])
def test_what_rules_do_not_find_is_not_denied(question: str) -> None:
    answer = answer_offline(SegmentToAnswer(question, "", [(1, "Gulls cry over the water, and the wind is cold.")]))
    assert not answer.found
    assert "model" in answer.answer
    assert "offline" in answer.answer


def test_other_languages_are_reported_to_need_a_model() -> None:
    text = "Le locataire doit payer un loyer chaque mois, et le bailleur entretient la grue pendant la durée du bail."
    answer = answer_offline(SegmentToAnswer(DUTIES, "", [(1, text)]))
    assert "not in English or German" in answer.answer
    assert "model" in answer.answer


def test_parts_become_one_list_and_model_answers_stay_unchanged() -> None:
    texts = [(1, LEASE), (2, LETTER)]
    local = SegmentResult(1, 2, "", [])
    whole = consolidate_offline(AnswersToConsolidate(MONEY, "", [local], texts=texts))
    assert "**4,250 EUR**" in whole.answer
    assert "(page 2)" in whole.answer
    written = SegmentResult(3, 9, "The fee is 9 crowns [p. 5].", [], "gemini:flash")
    mixed = consolidate_offline(AnswersToConsolidate(MONEY, "", [local, written], texts=texts))
    assert "**Page 3 to 9** (gemini:flash)\n\nThe fee is 9 crowns [p. 5]." in mixed.answer
    assert "**4,250 EUR**" in mixed.answer


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        (PEOPLE, Subject.NAMES),
        ("Welche Personen und Organisationen werden genannt?", Subject.NAMES),
        ("List all dates.", Subject.DATES),
        ("Which people signed the lease?", None),
        ("What is the harbour fee of pier 17?", None),
    ],
)
def test_only_prompts_for_a_whole_list_are_answered_by_rules(question: str, subject: Subject | None) -> None:
    assert find_subject(question) is subject
