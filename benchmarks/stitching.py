"""How well answers of a model that share pages are joined: `python -m benchmarks.stitching FOLDER`.

The pages of every PDF in the folder, and of all of them as one document, are cut into calls. What a model would answer
is played: every call gets the text with noise of its own, and of every word it is known which one it was. So it can be
counted which words are there once and in order, which are lost, and which are there twice.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from octavo.extract import extract
from octavo.extract.by_model import CallLimits, PageAnswer, PageRange, Seam, find_seam, plan_calls, stitch
from octavo.extract.by_model.sections import page_marker

GOAL = 0.99
SEEDS = range(3)
SIZES = ((5, 1), (10, 2), (30, 5), (100, 10))
TAIL, HEAD = 2000, 3000  # what is compared where only the ends are
PREAMBLE = "Here is the text of the pages as Markdown:\n\n"
HEADING = re.compile(r"#+(?= )")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Noise:
    """Shares of words, blocks, pages and answers to which something happens."""

    name: str
    dropped: float = 0.0
    changed: float = 0.0
    recased: float = 0.0
    hyphened: float = 0.0
    reflowed: float = 0.0
    unmarked: float = 0.0
    headed: float = 0.0
    cut: float = 0.0


NOISES = (
    Noise("none"),
    Noise("light", 0.005, 0.005, 0.01, 0.01, 0.5, 0.1, 0.5, 0.1),
    Noise("heavy", 0.03, 0.05, 0.05, 0.03, 1.0, 0.5, 0.5, 0.3),
    Noise("awful", 0.08, 0.12, 0.2, 0.05, 1.0, 1.0, 0.5, 0.5),
)


@dataclass(slots=True)
class Told:
    """An answer, with the number of each of its words in the document and where it stands."""

    text: str = ""
    words: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def say(self, text: str, number: int | None = None) -> None:
        if number is not None:
            self.words.append((len(self.text), number))
        self.text += text

    def numbers(self, start: int = 0, end: int | None = None) -> list[int]:
        end = len(self.text) if end is None else end
        return [number for place, number in self.words if start <= place < end]


@dataclass(slots=True)
class Count:
    words: int = 0
    lost: int = 0
    twice: int = 0
    pages_lost: int = 0
    seams: int = 0
    found: int = 0
    exact: int = 0
    by_ends: int = 0

    @property
    def share(self) -> float:
        return 1 - (self.lost + self.twice) / self.words


Page = list[list[tuple[str, int | None]]]


def main(folder: Path) -> int:
    books = {path.stem[:20]: read_pages(path) for path in sorted(folder.glob("*.pdf"))}
    books["all"] = [page for pages in books.values() for page in pages]
    numbered = {name: number_words(pages) for name, pages in books.items()}
    worst = 1.0
    print(
        "pages overlap noise   words    once and in order   lost twice pages lost  seams found exact  by the ends alone"
    )
    for batch, overlap in SIZES:
        for noise in NOISES:
            count = Count()
            for seed in SEEDS:
                for name, pages in numbered.items():
                    measure(pages, CallLimits(0, batch, overlap), noise, random.Random(f"{seed}{name}"), count)
            worst = min(worst, count.share)
            print(
                f"{batch:5} {overlap:7} {noise.name:6} {count.words:7}  {count.share:18.4%} {count.lost:6} "
                f"{count.twice:5} {count.pages_lost:10} {count.seams:6} {count.found:5} {count.exact:5}  "
                f"{count.by_ends:17}"
            )
    print(f"worst {worst:.4%} (goal {GOAL:.0%})")
    return 0 if worst >= GOAL else 1


def read_pages(path: Path) -> list[str]:
    extracted = extract(path)
    return [extracted.markdown[page.start : page.end] for page in extracted.pages]


def number_words(pages: Iterable[str]) -> list[Page]:
    """Pages as blocks of words; those with letters have a number."""
    number = 0
    numbered: list[Page] = []
    for page in pages:
        blocks: Page = []
        for block in re.split(r"\n\s*\n", page):
            words: list[tuple[str, int | None]] = []
            for word in re.findall(r"\S+\s*", block):
                counts = re.search(r"[^\W_]", word) is not None
                words.append((word, number if counts else None))
                number += counts
            blocks.append(words)
        numbered.append(blocks)
    return numbered


def measure(pages: Sequence[Page], limits: CallLimits, noise: Noise, chance: random.Random, count: Count) -> None:
    calls = plan_calls([1] * len(pages), limits)
    told = [answer(pages, call, noise, chance) for call in calls]
    stitched = stitch([PageAnswer(call, one.text) for call, one in zip(calls, told, strict=True)])
    kept = [one.numbers(*ends) for one, ends in zip(told, kept_ranges(told, stitched.seams), strict=True)]
    assert len(stitched.seams) == len(calls) - 1
    for place, seam in enumerate(stitched.seams):
        lost, twice = at_seam(told[place : place + 2], kept[place : place + 2])
        count.lost += lost
        count.twice += twice
        count.exact += not (lost or twice)
        count.found += seam is not None
        count.by_ends += find_seam(told[place].text[-TAIL:], told[place + 1].text[:HEAD]) is not None
    count.seams += len(stitched.seams)
    there = {number for numbers in kept for number in numbers}
    told_of = {number for one in told for number in one.numbers()}
    for page in pages:
        numbers = [number for block in page for _, number in block if number is not None]
        count.words += len(numbers)
        count.pages_lost += there.isdisjoint(numbers) and not told_of.isdisjoint(numbers)


def kept_ranges(told: Sequence[Told], seams: Sequence[Seam | None]) -> Iterator[tuple[int, int | None]]:
    start = 0
    for _, seam in zip(told, [*seams, None], strict=True):
        yield start, start + seam.end if seam else None
        start = seam.start if seam else 0


def at_seam(told: Sequence[Told], kept: Sequence[list[int]]) -> tuple[int, int]:
    """Words that one of the answers had and that are in neither part that was kept, and words that are in both."""
    before, after = kept
    last, first = before[-1] if before else -1, after[0] if after else -1
    had = {number for one in told for number in one.numbers()}
    lost = sum(number in had for number in range(last + 1, first))
    return lost, len(set(before) & set(after))


def answer(pages: Sequence[Page], call: PageRange, noise: Noise, chance: random.Random) -> Told:
    told = Told()
    if chance.random() < noise.cut:
        told.say(PREAMBLE)
    for number in range(call.first, call.last + 1):
        if chance.random() >= noise.unmarked:
            told.say(page_marker(number) + "\n\n")
        if chance.random() < noise.headed:
            told.say(f"*A running head  {number}*\n\n")
        for block in pages[number - 1]:
            say_block(told, block, noise, chance)
    if chance.random() < noise.cut:
        end = int(len(told.text) * chance.uniform(0.97, 1))
        told.text = told.text[:end]
        told.words = [(place, number) for place, number in told.words if place < end]
    return told


def say_block(told: Told, block: Sequence[tuple[str, int | None]], noise: Noise, chance: random.Random) -> None:
    reflowed = chance.random() < noise.reflowed
    width = chance.randint(40, 120)
    column = 0
    for word, number in block:
        said = spoil(word.strip(), noise, chance)
        if not said:
            continue
        column += len(said) + 1
        space = "\n" if reflowed and column > width else " " if reflowed else word[len(word.rstrip()) :] or " "
        column = 0 if space == "\n" else column
        told.say(said, number)
        told.say(space * (1 + (reflowed and chance.random() < 0.02)))
    told.say("\n\n")


def spoil(word: str, noise: Noise, chance: random.Random) -> str:
    drawn = chance.random()
    if HEADING.fullmatch(word):
        return "#" * chance.randint(1, 4) if noise.reflowed else word
    if drawn < noise.dropped:
        return ""
    if drawn < noise.dropped + noise.changed:
        return "".join(chance.choice(LETTERS) if one.isalpha() else one for one in word)
    if drawn < noise.dropped + noise.changed + noise.recased:
        return word.swapcase()
    if len(word) > 7 and word.isalpha() and chance.random() < noise.hyphened:
        return f"{word[:4]}-\n{word[4:]}"
    return word


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
