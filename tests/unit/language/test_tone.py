"""Praise and blame have opposite signs, denied feelings do not count, and other languages are not judged at all."""

from __future__ import annotations

import time

import pytest

from octavo.language.insights import ChunkText, Emotion, Tone
from octavo.language.phrases import parse_chunk
from octavo.language.tone import UNKNOWN, find_tone


def tone(text: str, language: str = "en") -> Tone:
    return find_tone(parse_chunk(ChunkText(text), language))


def test_praise_and_blame_are_opposites() -> None:
    praise = tone("Engineers consider the bridge safe and the cables are in excellent condition.")
    blame = tone("Engineers do not consider the bridge safe, and the cables are in poor, dangerous condition.")
    assert praise.polarity > 0.2
    assert blame.polarity < -0.2


@pytest.mark.parametrize(
    ("text", "emotion"),
    [
        ("The children were happy and laughed with delight.", Emotion.JOY),
        ("She wept at the funeral, in deep sorrow.", Emotion.SADNESS),
        ("He was furious, and his rage grew.", Emotion.ANGER),
        ("They were afraid of the danger that threatened them.", Emotion.FEAR),
        ("The smell was vile and disgusting.", Emotion.DISGUST),
        ("To everyone's surprise the result was astonishing.", Emotion.SURPRISE),
        ("She is honest and reliable, and we trust her.", Emotion.TRUST),
        ("The table has four legs and a drawer.", Emotion.NEUTRAL),
        ("They were not afraid.", Emotion.NEUTRAL),
        ("He didn't fear them.", Emotion.NEUTRAL),
        ("", Emotion.NEUTRAL),
    ],
)
def test_feelings(text: str, emotion: Emotion) -> None:
    assert tone(text).primary_emotion is emotion


def test_one_word_of_feeling_in_a_page_is_none() -> None:
    page = "The table has four legs and a drawer. " * 40
    assert tone(page + "He was sad.").primary_emotion is Emotion.NEUTRAL


def test_texts_in_other_languages_are_not_judged() -> None:
    german = "Die Brücke ist gefährlich und in einem schrecklichen Zustand, sagen die Ingenieure der Stadt."
    assert tone(german, "de") == UNKNOWN
    assert tone(german, "en") == UNKNOWN  # also inside of an English document
    assert tone("4711", "xx") == UNKNOWN


def test_a_sentence_without_end_is_read_in_time() -> None:
    text = "the good and the bad but the ugly " * 3000
    start = time.process_time()
    tone(text)
    assert time.process_time() - start < 5


def test_every_variety_of_english_has_a_tone() -> None:
    praise = "Engineers consider the bridge safe and the cables are in excellent condition."
    assert tone(praise, "en-GB") == tone(praise, "en_US") == tone(praise)
