"""What differs between two texts makes the one of the other and names the words, in time that grows as they do."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.library.differences import change, compare, split_paragraphs
from octavo.records.documents import Part

# Few words, so that they come again and again, and everything that can stand between paragraphs.
pieces = st.sampled_from(
    ["one", "two", "three", " ", " ", "\n", "\n\n", "\n \n", ".", "東", "京", "é", "\U0001f600", "\t"]
)
texts = st.lists(pieces, max_size=60).map("".join)


@given(texts, texts)
def test_the_differences_make_the_other_text(old: str, new: str) -> None:
    changes = compare(old, new)
    assert change(old, changes) == new
    for one in changes:
        assert "".join(part.text for part in one.parts if part.kind != "added") == old[one.old_start : one.old_end]
        assert "".join(part.text for part in one.parts if part.kind != "removed") == new[one.new_start : one.new_end]


@given(texts)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert compare(text, text) == []
    assert "".join(split_paragraphs(text)) == text


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        # A word is changed, and what stands around it is the same.
        (
            "First.\n\nThe fee is 100 euros a month.\n\nLast.",
            "First.\n\nThe fee is 120 euros a month.\n\nLast.",
            [("same", "The fee is "), ("removed", "100"), ("added", "120"), ("same", " euros a month.")],
        ),
        # Words side by side are one change.
        (
            "It was a very cold winter in the north of it.",
            "It was a rather mild winter in the north of it.",
            [
                ("same", "It was a "),
                ("removed", "very cold"),
                ("added", "rather mild"),
                ("same", " winter in the north of it."),
            ],
        ),
        # What only came in.
        ("One.\n\nTwo.", "One.\n\nBetween.\n\nTwo.", [("added", "Between.\n\n")]),
        # What has nothing in common is told as a whole.
        ("A red house.", "Nobody pays!", [("removed", "A red house."), ("added", "Nobody pays!")]),
        # Scripts without spaces, by their characters.
        ("料は百円。", "料は千円。", [("same", "料は"), ("removed", "百"), ("added", "千"), ("same", "円。")]),
    ],
)  # fmt: skip
def test_words_that_changed_are_named(old: str, new: str, parts: list[tuple[str, str]]) -> None:
    (only,) = compare(old, new)
    assert only.parts == tuple(Part(kind, text) for kind, text in parts)  # pyright: ignore[reportArgumentType]


def test_a_paragraph_that_comes_last_changes_none_before_it() -> None:
    (only,) = compare("One.\n\nTwo.", "One.\n\nTwo.\n\nThree.")
    assert only.parts == (Part("added", "\n\nThree."),)


def book(paragraphs: int, seed: int) -> list[str]:
    words = [f"word{number}" for number in range(2000)]
    chance = random.Random(seed)
    return [" ".join(chance.choices(words, k=60)) for _ in range(paragraphs)]


def edited(paragraphs: list[str], seed: int) -> list[str]:
    chance = random.Random(seed)
    return [one if chance.random() < 0.9 else one.replace("word1", "term1") for one in paragraphs]


def repeated(paragraphs: int) -> tuple[str, str]:
    """The worst: nothing stands once, so that nothing anchors."""
    chance = random.Random(3)
    sides = ("\n\n".join(chance.choices(["a b", "b a", "a a"], k=paragraphs)) for _ in range(2))
    return next(sides), next(sides)


def processor_seconds(old: str, new: str) -> float:
    started = time.process_time()
    changes = compare(old, new)
    taken = time.process_time() - started
    assert change(old, changes) == new
    return taken


@pytest.mark.long  # it compares processor times, which a busy machine distorts
def test_four_times_the_text_takes_about_four_times_as_long() -> None:
    """1,000 pages are 6,000 paragraphs of 60 words; also where nothing anchors."""
    sizes = (500, 2000)
    usual = [
        min(processor_seconds("\n\n".join(book(size, 1)), "\n\n".join(edited(book(size, 1), 2))) for _ in range(2))
        for size in sizes
    ]
    assert usual[1] < 10 * usual[0]
    worst = [processor_seconds(*repeated(size)) for size in (5_000, 20_000)]
    assert worst[1] < 10 * worst[0]
