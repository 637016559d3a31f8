"""The language is told by the text, by what the file says where the text is silent, and never guessed from a word."""

from __future__ import annotations

import pytest

from octavo.language.languages import confirm_language, detect_document_language, detect_language

ENGLISH = "The council decided on Tuesday that the old bridge will be closed to traffic until the autumn."
GERMAN = "Der Rat hat am Dienstag beschlossen, dass die alte Brücke bis zum Herbst für den Verkehr gesperrt wird."
FRENCH = "Le conseil a décidé mardi que le vieux pont sera fermé à la circulation jusqu'à l'automne."
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。"


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (GERMAN, "de"), (FRENCH, "fr"), (JAPANESE, "ja")])
def test_languages_are_told_apart(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize("text", ["", "4711", "Total 12.00", "| 1 | 2 |", "x = y + z"])
def test_too_little_text_tells_nothing(text: str) -> None:
    assert detect_language(text) is None


def test_most_of_a_document_decides() -> None:
    assert detect_document_language([GERMAN, ENGLISH, ENGLISH], claimed="fr") == "en"


@pytest.mark.parametrize(
    ("claimed", "language"), [("en-US", "en"), ("DE", "de"), ("xx", None), ("", None), (None, None)]
)
def test_what_the_file_says_counts_where_the_text_is_silent(claimed: str | None, language: str | None) -> None:
    assert detect_document_language(["4711"], claimed) == language


def test_a_passage_in_another_language_is_noticed() -> None:
    assert confirm_language(FRENCH, "en") == "fr"
    assert confirm_language(ENGLISH, "en") == "en"
    assert confirm_language("4711", "en") == "en"
