"""Answers are read strictly in form and mildly in number; quotes are kept only where they stand in the text."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.ai.calls import clean_text, fit_to_schema, plain_schema, whole_schema
from octavo.ai.tasks import CLASSIFY_DOCUMENT, ENRICH_CHUNKS, ChunkInsights
from octavo.ai.tasks.task import UnusableAnswer
from octavo.core.types import JSON
from octavo.language.insights import ChunkInsight, ChunkText, DocumentInsight, DocumentSource
from octavo.language.text_positions import find_quote

DOCUMENT = DocumentSource([ChunkText("Text.")])
GOOD: dict[str, JSON] = {
    "title": "A title",
    "author": None,
    "summary": "What it says.",
    "date": "2024-05",
    "language": "en",
    "type": "report",
    "tags": ["council"],
}


def read(**changes: JSON) -> DocumentInsight:
    return CLASSIFY_DOCUMENT.read(json.dumps(GOOD | changes), DOCUMENT)


def test_a_good_answer_is_read_also_from_a_fence() -> None:
    assert read().title == "A title"
    assert CLASSIFY_DOCUMENT.read(f"```json\n{json.dumps(GOOD)}\n```\n", DOCUMENT) == read()


def test_values_over_their_limits_are_cut() -> None:
    cut = read(title="x" * 500, tags=[*"abcdefghij", ""], summary="y" * 5000, author="  ")
    assert (len(cut.title or ""), len(cut.tags), len(cut.summary), cut.author) == (200, 8, 1000, None)


@pytest.mark.parametrize(("tag", "language"), [("en-US", "en"), ("pt_BR", "pt"), ("DE", "de"), (None, None)])
def test_a_language_with_a_region_is_the_language(tag: str | None, language: str | None) -> None:
    assert read(language=tag).language == language


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"type": "novel"}, "type: "),
        ({"date": "May 2024"}, "date: "),
        ({"summary": None}, "summary: "),
        ({"surprise": 1}, "surprise: "),
        ({"tags": "council"}, "tags: "),
        ({"language": "English"}, "language: "),
        ({"language": 3}, "language: "),
    ],
)
def test_validation_errors_do_not_repeat_the_input(wrong: dict[str, JSON], said: str) -> None:
    with pytest.raises(UnusableAnswer) as refused:
        read(**wrong)
    assert said in str(refused.value)
    assert "novel" not in str(refused.value).replace("'novel'", "")
    assert "May 2024" not in str(refused.value)


@pytest.mark.parametrize("answer", ["", "no", "[1]", "{", "null", '"text"', "[" * 5000, "[" * 900 + "]" * 900])
def test_anything_else_is_of_no_use(answer: str) -> None:
    with pytest.raises(UnusableAnswer):
        CLASSIFY_DOCUMENT.read(answer, DOCUMENT)


JSONS = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(GOOD)), inner, max_size=4),
    max_leaves=8,
)


@given(JSONS)
def test_no_answer_breaks_the_reader(value: JSON) -> None:
    for task, given_to in ((CLASSIFY_DOCUMENT, DOCUMENT), (ENRICH_CHUNKS, [ChunkText("Text.")])):
        with suppress(UnusableAnswer):
            task.read(json.dumps(value), given_to)  # pyright: ignore[reportArgumentType]


@given(st.text())
def test_what_was_cleaned_can_be_kept(text: str) -> None:
    assert "\x00" not in clean_text(text)
    clean_text(text).encode()


def test_numbers_are_moved_to_their_limits() -> None:
    schema = whole_schema(ChunkInsight)
    fitted = fit_to_schema({"importance": 7, "tone": {"polarity": -3}, "themes": [" a ", ""]}, schema)
    assert fitted == {"importance": 1, "tone": {"polarity": -1}, "themes": ["a"]}


def test_providers_get_a_schema_without_unsupported_keywords() -> None:
    text = json.dumps(plain_schema(ChunkInsights))
    assert "$ref" not in text
    for unknown in ("maxItems", "maxLength", "minimum", "pattern", 'title":'):
        assert unknown not in text
    properties = plain_schema(DocumentInsight)["properties"]
    assert properties["title"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert "invoice" in properties["type"]["enum"]


# Quotes -------------------------------------------------------------------------------------------------------------

TEXT = "The council met on\nTuesday. It cost 4.50 (four fifty) in   all."


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("The council met", "The council met"),
        ("met on Tuesday", "met on\nTuesday"),
        ("  4.50 (four fifty) in all.", "4.50 (four fifty) in   all."),
        ("4x50", None),
        ("the council met", None),
        ("The council never met", None),
        ("", None),
        ("in", None),
        (".*", None),
    ],
)
def test_a_quote_is_verbatim_text_of_the_chunk(quote: str, found: str | None) -> None:
    place = find_quote(quote, TEXT)
    assert (place.text if place else None) == found
    if place:
        assert TEXT[place.start : place.end] == place.text


def test_quotes_that_are_not_in_the_text_are_dropped() -> None:
    quotes = ["on Tuesday", "on Monday", "in all"]
    assert [match.text for quote in quotes if (match := find_quote(quote, TEXT))] == [
        "on\nTuesday",
        "in   all",
    ]
