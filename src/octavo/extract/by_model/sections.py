"""Splits a text into sections: its pages or, if it has none, groups of blocks.

A section is either replaced as a whole by the model's text or kept unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from octavo.extract.by_model.page_calls import find_page_markers, page_marker
from octavo.extract.extracted import Block, BlockKind, Extracted

# The most characters in a call: enough for context, but few enough that an unusable answer is a small loss.
MOST_CHARACTERS = 12_000
# Longer code blocks are never rewritten.
MOST_CODE = 2000


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the text, `markdown[start:end]`, that a model rewrites as a whole.

    `page` is None if the document has no pages. A `fixed` section is never rewritten.
    """

    start: int
    end: int
    page: int | None = None
    fixed: bool = False


def sections_of(plain: Extracted) -> list[Section]:
    """Split the document into sections. All text belongs to a section; only white space is left between sections."""
    if plain.pages:
        return [Section(page.start, page.end, page.number) for page in plain.pages]
    return [_trimmed(plain.markdown, section) for section in _split_at_blocks(plain)]


def _split_at_blocks(plain: Extracted) -> Iterator[Section]:
    start, fixed = 0, False
    for block in plain.blocks:
        is_fixed = _is_fixed(block)
        if block.start > start and (is_fixed or fixed or block.end - start > MOST_CHARACTERS):
            yield Section(start, block.start, fixed=fixed)
            start = block.start
        fixed = is_fixed
    yield Section(start, len(plain.markdown), fixed=fixed)


def _is_fixed(block: Block) -> bool:
    is_listing = block.kind is BlockKind.CODE and block.end - block.start > MOST_CODE
    return is_listing or block.kind is BlockKind.FRONT_MATTER


def _trimmed(markdown: str, section: Section) -> Section:
    text = markdown[section.start : section.end]
    start = section.start + len(text) - len(text.lstrip())
    return Section(start, start + len(text.strip()), fixed=section.fixed)


def group_into_calls(sections: Sequence[Section]) -> list[list[int]]:
    """Group section indexes into model calls.

    Only sections that are pages can share a call, because page markers separate them in the answer.
    """
    calls: list[list[int]] = []
    remaining = 0
    for place, section in enumerate(sections):
        length = section.end - section.start
        if section.fixed or not length:
            continue
        if section.page is None or length > remaining or not calls:
            calls.append([])
            remaining = MOST_CHARACTERS
        calls[-1].append(place)
        remaining -= length
    return calls


def write_sections(plain: str, sections: Iterable[Section]) -> str:
    """Return the text of several sections, as it is sent to a model."""
    texts = ((section.page, plain[section.start : section.end]) for section in sections)
    return "\n\n".join(text if page is None else f"{page_marker(page)}\n\n{text}" for page, text in texts)


def split_answer(markdown: str, sections: Mapping[int, Section]) -> dict[int, str]:
    """Split a model's answer into the texts of sections, keyed by section index.

    The text of a page follows its marker. Pages without a marker are left out, except that the first page gets the text
    before the first marker. If the first page has a marker, the text before it is a remark by the model and is dropped.
    If the document has no pages, the whole answer is the text of one section.
    """
    first = min(sections)
    if sections[first].page is None:
        return {first: markdown.strip()}
    marks = sorted((place, page) for page, place in find_page_markers(markdown).items())
    ends = [place for place, _ in marks[1:]] + [len(markdown)]
    texts = {page: _after_marker(markdown[place:end]) for (place, page), end in zip(marks, ends, strict=True)}
    before = markdown[: marks[0][0]] if marks else markdown
    found: dict[int, str] = {}
    for place, section in sections.items():
        if (text := texts.get(section.page or 0)) is not None:
            found[place] = text
        elif place == first and before.strip():
            found[place] = before.strip()
    return found


def _after_marker(text: str) -> str:
    return text.partition("-->")[2].strip()
