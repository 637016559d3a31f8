"""A plain text in sections, each of which is rewritten or kept as a whole: its pages or, without pages, some blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from octavo.extract.by_model.page_calls import find_marks, mark
from octavo.extract.contract import Block, BlockKind, Extracted

# In one call: enough to see what belongs together, and little to lose where an answer cannot be used.
MOST_CHARACTERS = 12_000
# A listing is nothing that anybody should put in order.
MOST_CODE = 2000


@dataclass(frozen=True, slots=True)
class Section:
    """`plain[start:end]`. `page` is its number, where the document has pages. `fixed`: it is never rewritten."""

    start: int
    end: int
    page: int | None = None
    fixed: bool = False


def sections_of(plain: Extracted) -> list[Section]:
    """All of the text; between sections is only white space."""
    if plain.pages:
        return [Section(page.start, page.end, page.number) for page in plain.pages]
    return [_trimmed(plain.markdown, piece) for piece in _pieces(plain)]


def _pieces(plain: Extracted) -> Iterator[Section]:
    start, fixed = 0, False
    for block in plain.blocks:
        stays = _stays(block)
        if block.start > start and (stays or fixed or block.end - start > MOST_CHARACTERS):
            yield Section(start, block.start, fixed=fixed)
            start = block.start
        fixed = stays
    yield Section(start, len(plain.markdown), fixed=fixed)


def _stays(block: Block) -> bool:
    is_listing = block.kind is BlockKind.CODE and block.end - block.start > MOST_CODE
    return is_listing or block.kind is BlockKind.FRONT_MATTER


def _trimmed(markdown: str, piece: Section) -> Section:
    text = markdown[piece.start : piece.end]
    start = piece.start + len(text) - len(text.lstrip())
    return Section(start, start + len(text.strip()), fixed=piece.fixed)


def runs_of(sections: Sequence[Section]) -> list[list[int]]:
    """Which sections go into one call, by their places: pages together, because their marks tell them apart."""
    runs: list[list[int]] = []
    room = 0
    for place, section in enumerate(sections):
        length = section.end - section.start
        if section.fixed or not length:
            continue
        if section.page is None or length > room or not runs:
            runs.append([])
            room = MOST_CHARACTERS
        runs[-1].append(place)
        room -= length
    return runs


def write_run(plain: str, sections: Iterable[Section]) -> str:
    """What a model is given of a run."""
    texts = ((section.page, plain[section.start : section.end]) for section in sections)
    return "\n\n".join(text if page is None else f"{mark(page)}\n\n{text}" for page, text in texts)


def split_answer(markdown: str, sections: Mapping[int, Section]) -> dict[int, str]:
    """What a model answered for each of these sections, by their places; those whose mark it left out are missing.

    What stands before the first mark belongs to the first page only if that has no mark: else it is a polite sentence.
    """
    first = min(sections)
    if sections[first].page is None:
        return {first: markdown.strip()}
    marks = sorted((place, page) for page, place in find_marks(markdown).items())
    ends = [place for place, _ in marks[1:]] + [len(markdown)]
    texts = {page: _after_mark(markdown[place:end]) for (place, page), end in zip(marks, ends, strict=True)}
    before = markdown[: marks[0][0]] if marks else markdown
    found: dict[int, str] = {}
    for place, section in sections.items():
        if (text := texts.get(section.page or 0)) is not None:
            found[place] = text
        elif place == first and before.strip():
            found[place] = before.strip()
    return found


def _after_mark(text: str) -> str:
    return text.partition("-->")[2].strip()
