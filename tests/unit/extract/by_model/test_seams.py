"""Answers that share pages become one text: nothing twice, nothing lost, in order."""

from __future__ import annotations

import random
import re
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.extract.by_model import PageAnswer, PageRange, find_seam, plan_calls, stitch
from octavo.extract.by_model.sections import CallLimits, page_marker

COMMON = ["the", "of", "and", "a", "page", "which", "library", "is", "to", "in", "every", "text", "not", "it"]
patient = settings(deadline=None, max_examples=40)
chances = st.integers(0, 10**9).map(random.Random)


def book(pages: int, chance: random.Random, words: tuple[int, int] = (60, 200)) -> list[list[str]]:
    """Pages of paragraphs. Every third word is there once in the book, as in books the rare ones are."""
    numbers = count()
    return [
        [
            " ".join(
                f"w{next(numbers)}" if n % 3 == 0 else chance.choice(COMMON) for n in range(chance.randint(*words) // 3)
            )
            for _ in range(3)
        ]
        for _ in range(pages)
    ]


def answer(pages: list[list[str]], call: PageRange, chance: random.Random, noise: float, marked: float) -> str:
    """As a model tells it: other line ends, another level of headings, other words now and then."""
    told: list[str] = []
    for number in range(call.first, call.last + 1):
        told += [page_marker(number)] if chance.random() < marked else []
        for paragraph in pages[number - 1]:
            words = [spoiled(word, chance) if chance.random() < noise else word for word in paragraph.split()]
            lines = re.sub(r" ", lambda _: chance.choice([" ", " ", "\n"]), " ".join(filter(None, words)))
            told.append("#" * chance.randint(1, 3) + " " + lines.replace("\n", " ") if chance.random() < 0.2 else lines)
    return "\n\n".join(told)


def spoiled(word: str, chance: random.Random) -> str:
    return chance.choice(["", word.upper(), f"**{word}**", "else", word[::-1]])


def numbers_in(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"\bw(\d+)\b", text, re.IGNORECASE)]


def joined(pages: list[list[str]], limits: CallLimits, chance: random.Random, noise: float, marked: float) -> str:
    calls = plan_calls([1] * len(pages), limits)
    return stitch([PageAnswer(call, answer(pages, call, chance, noise, marked)) for call in calls]).markdown


sizes = st.tuples(st.integers(4, 12), st.integers(1, 4)).map(lambda size: CallLimits(0, *size))


@patient
@given(st.integers(1, 40), sizes, chances, st.sampled_from([0.0, 0.5, 1.0]))
def test_without_noise_the_text_is_exactly_that_of_the_book(
    pages: int, limits: CallLimits, chance: random.Random, marked: float
) -> None:
    written = book(pages, chance)
    text = joined(written, limits, chance, 0.0, marked)
    assert numbers_in(text) == numbers_in(" ".join(paragraph for page in written for paragraph in page))


@patient
@given(st.integers(5, 40), sizes, chances, st.floats(0.0, 0.1))
def test_with_noise_nothing_is_twice_and_all_is_in_order(
    pages: int, limits: CallLimits, chance: random.Random, noise: float
) -> None:
    written = book(pages, chance)
    found = numbers_in(joined(written, limits, chance, noise, 0.9))
    there = numbers_in(" ".join(paragraph for page in written for paragraph in page))
    assert found == sorted(set(found))
    # A word is gone where the answer that tells it left it out, or changed it; nothing is gone beside that.
    assert len(found) >= (1 - 0.6 * noise) * len(there) - 0.05 * len(there)


@patient
@given(st.text(max_size=300), st.text(max_size=300))
def test_whatever_the_answers_are_they_are_joined(before: str, after: str) -> None:
    parts = [PageAnswer(PageRange(1, 5), before), PageAnswer(PageRange(5, 9), after)]
    stitched = stitch(parts)
    (seam,) = stitched.seams
    if seam is None:
        assert stitched.markdown == f"{before.rstrip()}\n\n{after}"
    else:
        assert 0 <= seam.end <= len(before)
        assert 0 <= seam.start <= len(after)


def text_of(*numbers: range) -> str:
    return "\n\n".join(" ".join(f"w{10 * number + word} is" for word in range(10)) for one in numbers for number in one)


def test_pages_that_are_not_shared_are_set_one_behind_the_other() -> None:
    stitched = stitch([PageAnswer(PageRange(1, 1), "One.\n"), PageAnswer(PageRange(2, 2), "Two.")])
    assert (stitched.markdown, stitched.seams) == ("One.\n\nTwo.", ())


def test_answers_that_share_nothing_are_both_kept_and_it_is_told() -> None:
    before, after = text_of(range(20)), text_of(range(40, 60))
    stitched = stitch([PageAnswer(PageRange(1, 9), before), PageAnswer(PageRange(9, 12), after)])
    assert stitched.seams == (None,)
    assert stitched.markdown == f"{before}\n\n{after}"


def test_an_answer_that_was_cut_short_goes_on_in_the_next() -> None:
    before = text_of(range(50))[:-1500]
    stitched = stitch([PageAnswer(PageRange(1, 9), before), PageAnswer(PageRange(7, 12), text_of(range(20, 80)))])
    assert numbers_in(stitched.markdown) == list(range(800))


def test_a_phrase_with_which_every_answer_begins_is_no_seam() -> None:
    hello = "Here is the text of these pages as Markdown, as you have asked me for it:\n\n"
    before, after = hello + text_of(range(4)), hello + text_of(range(3, 9))
    stitched = stitch([PageAnswer(PageRange(1, 4), before), PageAnswer(PageRange(4, 9), after)])
    assert numbers_in(stitched.markdown) == list(range(90))


def test_a_seam_is_at_the_beginning_of_a_block() -> None:
    table = "| name | number |\n|---|---|\n" + "\n".join(f"| w{n} | it is number {n} |" for n in range(100, 130))
    lines = "\n".join(f"w{n} it is number {n}" for n in range(100, 130))
    before = f"{text_of(range(10))}\n\n{table}\n\n## w500 begins here and goes on\n\nThe end of w501 is not far."
    after = f"name number\n{lines}\n\n# W500 begins here and goes on\n\nThe end of w501 is not far. w502"
    found = find_seam(before, after)
    assert found is not None
    assert (before[found.end :].split(maxsplit=1)[0], found.at_block) == ("##", True)
    assert after[found.start :].startswith("# W500")


def test_no_seam_is_in_the_middle_of_a_program() -> None:
    code = "```python\n" + "\n\n".join(f"w{n} = call(w{n}, {n})" for n in range(100, 140)) + "\n```"
    shared = f"Before w99 it is all the same in both.\n\n{code}\n\nBehind w200 it is so again."
    before, after = f"{text_of(range(5))}\n\n{shared}", f"{shared}\n\n{text_of(range(60, 70))}"
    found = find_seam(before, after)
    assert found is not None
    assert before[found.end :].split(maxsplit=1)[0] in {"Before", "```python", "Behind"}


@pytest.mark.parametrize(
    "script", ["吾輩は猫である名前はまだ無いどこで生れたかとんと見当がつかぬ", "ภาษาไทยไม่มีช่องว่างระหว่างคำ"]
)
def test_scripts_without_spaces_are_joined_too(script: str) -> None:
    chance = random.Random(7)
    letters = sorted(set(script))
    text = "".join(chance.choice(letters) for _ in range(900))
    found = find_seam(text[:600], text[400:])
    assert found is not None
    assert text[:600][: found.end] + text[400:][found.start :] == text
