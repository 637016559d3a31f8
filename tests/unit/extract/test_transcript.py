"""Spoken words become paragraphs in which every passage knows when it was said."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import Empty
from octavo.core.texts import count_words
from octavo.extract.detect import Hints
from octavo.extract.extracted import Metadata, SourceType
from octavo.extract.formats import text
from octavo.extract.transcript import (
    ENOUGH_WORDS,
    MOST_WORDS,
    RawSnippet,
    RawTranscript,
    Snippet,
    add_sentences,
    clean_snippets,
    read_raw_transcript,
    write_raw_transcript,
    write_transcript,
)

SPOKEN = ("so", "well.", "the", "river,", "Rome", "why?", "1999", "don\u2019t", "end!", "a_b", "x*y")
MARKS = (">>", "#", "-", "*", "1.", ">", "`", "_", "---", "[x]", "\\")
words = st.lists(st.sampled_from(SPOKEN), min_size=1, max_size=40).map(" ".join)
marked = st.lists(st.sampled_from(SPOKEN + MARKS), max_size=12).map(" ".join)
times = st.floats(0, 40_000, allow_nan=False)
snippet_lists = st.lists(st.builds(Snippet, marked, times, st.floats(0, 9)), max_size=30)


def said(text: str) -> list[str]:
    return re.findall(r"[A-Za-z0-9]+", text)


@given(snippet_lists)
def test_no_word_is_lost_and_every_moment_is_where_its_words_are(snippets: list[Snippet]) -> None:
    cleaned = clean_snippets(snippets)
    written = write_transcript(cleaned)
    assert said(written.markdown) == [word for one in cleaned for word in said(one.text)]
    assert len(written.moments) == len(cleaned)
    for moment, snippet in zip(written.moments, cleaned, strict=True):
        assert moment.seconds == snippet.start
        first = snippet.text.split()[0]
        assert written.markdown[moment.start :].replace("\\", "").startswith(first.replace("\\", ""))


@given(snippet_lists)
def test_moments_only_grow(snippets: list[Snippet]) -> None:
    moments = write_transcript(clean_snippets(snippets)).moments
    assert all(one.start < two.start and one.seconds <= two.seconds for one, two in pairwise(moments))


@given(st.lists(st.builds(Snippet, words, times, st.just(1.0)), min_size=1, max_size=30))
def test_no_paragraph_is_longer_than_one_can_read(snippets: list[Snippet]) -> None:
    paragraphs = write_transcript(clean_snippets(snippets)).markdown.split("\n\n")
    assert max(count_words(paragraph) for paragraph in paragraphs) <= MOST_WORDS


def test_a_paragraph_ends_with_a_sentence_when_it_is_long_enough() -> None:
    snippets = [Snippet("And this is what I said about it.", float(second), 1.0) for second in range(100)]
    paragraphs = write_transcript(snippets).markdown.split("\n\n")
    assert {paragraph[-1] for paragraph in paragraphs} == {"."}
    assert all(ENOUGH_WORDS <= count_words(paragraph) <= ENOUGH_WORDS + 8 for paragraph in paragraphs[:-1])


def test_a_pause_and_another_speaker_begin_a_paragraph() -> None:
    snippets = [
        Snippet("one two three four five six seven eight nine ten " * 2, 0.0, 5.0),
        Snippet("after the pause", 9.0, 1.0),
        Snippet(">> Somebody else.  >> And again.", 10.0, 1.0),
    ]
    paragraphs = write_transcript(clean_snippets(snippets)).markdown.split("\n\n")
    assert paragraphs[1:] == ["after the pause", "Somebody else.", "And again."]


@pytest.mark.parametrize(
    ("spoken", "kept"),
    [
        ("[Music] Hello [APPLAUSE] there", "Hello there"),
        ("\u266a la la \u266a", "la la"),
        ("(Laughter) so", "so"),
        ("see [1] and [inaudible]", "see [1] and [inaudible]"),
        ("&gt;&gt; quoted twice", "quoted twice"),
        ("two\nlines\u00a0here", "two lines here"),
    ],
    ids=["sounds", "notes", "laughter", "other brackets", "escaped mark", "spaces"],
)
def test_what_nobody_said_is_left_out(spoken: str, kept: str) -> None:
    assert " ".join(one.text for one in clean_snippets([Snippet(spoken, 1.0)])) == kept


@pytest.mark.parametrize("first", ["#", "-", "1.", ">", "***", "---", "+"], ids=str)
def test_nothing_that_is_said_becomes_a_heading_or_a_list(first: str) -> None:
    extracted = text.from_snippets([Snippet(f"{first} is what he said", 0.0)], SourceType.YOUTUBE, META)
    assert [block.kind for block in extracted.blocks] == ["paragraph"]


META = Metadata(title="T")


def test_a_fetched_transcript_becomes_a_document(tmp_path: Path) -> None:
    snippets = [RawSnippet("Hello there.", 0.0, 2.0), RawSnippet("[Music]", 2.0, 1.0)]
    snippets.append(RawSnippet("Goodbye now.", 3.5, 2.0))
    document = RawTranscript("dQw4w9WgXcQ", "en", "manual", snippets, "A talk", "A person")
    file = tmp_path / "transcript.json"
    file.write_bytes(write_raw_transcript(document))
    assert read_raw_transcript(file.read_bytes()) == document
    extracted = text.extract_transcript(file, Hints(SourceType.YOUTUBE))
    assert extracted.markdown == "Hello there. Goodbye now."
    assert [(one.start, one.seconds) for one in extracted.moments] == [(0, 0.0), (13, 3.5)]
    about = extracted.metadata
    assert (about.title, about.author, about.language) == ("A talk", "A person", "en")


def test_a_video_without_a_title_is_called_by_its_id(tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    file.write_text(
        json.dumps({"video_id": "x" * 11, "language": "de", "kind": "generated", "snippets": [
            {"text": "Ja.", "start": 0, "duration": 1}]})
    )  # fmt: skip
    assert text.extract_transcript(file, Hints(SourceType.YOUTUBE)).metadata.title == f"Video {'x' * 11}"


def test_a_transcript_of_sounds_only_is_empty() -> None:
    with pytest.raises(Empty):
        text.from_snippets([Snippet("[Music]", 0.0)], SourceType.YOUTUBE, META)


GENERATED = (
    "welcome to the bog today we look at how moss holds its water",
    "the upper layer is loose and quick and the lower layer of peat",
    "is dense and slow so the rain stays where it falls and",
    "the ditches have to be closed before the moss comes back",
)


def test_a_transcript_without_punctuation_gets_sentences_and_keeps_its_words_and_seconds() -> None:
    spoken = [Snippet(text, 5.0 * number, 5.0) for number, text in enumerate(GENERATED)]
    written = write_transcript(add_sentences(spoken))
    assert written.markdown == (
        "Welcome to the bog today we look at how moss holds its water the upper layer is loose and quick and the lower "
        "layer of peat is dense and slow. So the rain stays where it falls and the ditches have to be closed before "
        "the moss comes back."
    )
    assert [moment.seconds for moment in written.moments] == [0.0, 5.0, 10.0, 15.0]


def test_a_pause_ends_a_sentence() -> None:
    spoken = [Snippet(text, 9.0 * number, 5.0) for number, text in enumerate(GENERATED)]
    assert write_transcript(add_sentences(spoken)).markdown.startswith(
        "Welcome to the bog today we look at how moss holds its water. The upper layer"
    )


@given(st.lists(st.builds(Snippet, words, times, st.floats(0, 9)), max_size=30))
def test_sentences_change_no_word(snippets: list[Snippet]) -> None:
    cleaned = clean_snippets(snippets)
    changed = add_sentences(cleaned)
    assert [one.start for one in changed] == [one.start for one in cleaned]
    assert [said(one.text.lower()) for one in changed] == [said(one.text.lower()) for one in cleaned]


def test_punctuated_transcripts_stay_as_they_are() -> None:
    spoken = [Snippet(f"{text.capitalize()}.", 5.0 * number) for number, text in enumerate(GENERATED)]
    assert add_sentences(spoken) == spoken
