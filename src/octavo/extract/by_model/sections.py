"""Plans what a model reads or rewrites in each call.

For rewriting, a text is split into sections: its pages or, without pages, groups of blocks. A section is either
replaced as a whole by the model's text or kept unchanged.

The answer to a call must fit within the model's output limit. If a document is read in several calls, consecutive calls
share pages, so that their answers can be joined. The prompt asks the model to write a marker line before each page, so
that each page can be found in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from octavo.core.errors import TokenLimit
from octavo.extract.extracted import Block, BlockKind, Extracted

# Estimate for a printed page as Markdown, if its text is unknown.
PAGE_TOKENS = 600
_MARKER_TOKENS = 10
_CHARACTERS_PER_TOKEN = 4  # for ASCII; other characters take up to one token each
_MARKER = re.compile(r"^[ \t]*<!--[ \t]*page[ \t]+(\d{1,9})[ \t]*-->[ \t]*$", re.MULTILINE | re.IGNORECASE)


class PageRange(NamedTuple):
    """A range of page numbers. `first` and `last` are included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits for planning model calls.

    A document of up to `single_pages` pages is read in one call. A longer one is split into calls of `batch_pages`
    pages, and neighbouring calls share `overlap_pages` pages. `output_tokens` is the largest number of tokens that the
    model can return. `filled` is the fraction of `output_tokens` that a planned call may use, because page lengths are
    estimates.
    """

    single_pages: int = 200
    batch_pages: int = 100
    overlap_pages: int = 10
    output_tokens: int = 65_536
    filled: float = 0.8

    @property
    def tokens(self) -> float:
        return self.output_tokens * self.filled


def estimate_tokens(text: str) -> int:
    """Estimate how many output tokens a page needs, from a rough version of its text.

    The estimate is deliberately high.
    """
    ascii_only = len(text.encode("ascii", errors="ignore"))
    return ascii_only // _CHARACTERS_PER_TOKEN + len(text) - ascii_only + _MARKER_TOKENS


def plan_calls(tokens: Sequence[int], limits: CallLimits | None = None) -> list[PageRange]:
    """Plan the model calls that read a document: one call if all pages fit into it, otherwise several overlapping
    calls.

    `tokens` contains the estimated output tokens of each page. A single page that exceeds the limit still gets its own
    call.
    """
    limits = limits or CallLimits()
    if not tokens:
        return []
    if len(tokens) <= limits.single_pages and sum(tokens) <= limits.tokens:
        return [PageRange(1, len(tokens))]
    return list(_batches(tokens, limits))


def _batches(tokens: Sequence[int], limits: CallLimits) -> Iterator[PageRange]:
    sums = list(accumulate(tokens, initial=0))

    def fits(first: int, last: int) -> bool:
        return sums[last] - sums[first - 1] <= limits.tokens

    first, last = 1, 0
    while last < len(tokens):
        if last:
            # Share at most a third of the pages, so that most are read only once. The next page must still fit after
            # the shared ones.
            shared = min(limits.overlap_pages, (last - first + 1) // 3)
            first = next((start for start in range(last + 1 - shared, last + 1) if fits(start, last + 1)), last + 1)
        most = min(first + limits.batch_pages - 1, len(tokens))
        last = next((end for end in range(most, last + 1, -1) if fits(first, end)), last + 1)
        yield PageRange(first, last)


def halve_call(pages: PageRange, limits: CallLimits) -> list[PageRange]:
    """Split a call into two, because its answer exceeded the model's output limit and was cut off.

    Raises `TokenLimit` if the call has only one page.
    """
    count = pages.last - pages.first + 1
    if count == 1:
        raise TokenLimit(f"Affected: page {pages.first}.")
    middle = pages.first + count // 2
    shared = min(limits.overlap_pages, count // 6)
    return [PageRange(pages.first, middle - 1 + shared), PageRange(middle, pages.last)]


def page_marker(page: int) -> str:
    return f"<!-- page {page} -->"


def find_page_markers(markdown: str) -> dict[int, int]:
    """Find the page markers that the model wrote. Maps each page number to the offset of its marker in the text."""
    places: dict[int, int] = {}
    for found in _MARKER.finditer(markdown):
        places.setdefault(int(found[1]), found.start())
    return places


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
    """Split the document into sections. Together they contain all of the text except white space."""
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
    """Join the texts of several sections for a model call, with a page marker before each page."""
    texts = ((section.page, plain[section.start : section.end]) for section in sections)
    return "\n\n".join(text if page is None else f"{page_marker(page)}\n\n{text}" for page, text in texts)


def split_answer(markdown: str, sections: Mapping[int, Section]) -> dict[int, str]:
    """Split a model's answer into the texts of sections, keyed by section index.

    The text of a page follows its marker. Text before the first marker belongs to the first page if that page has no
    marker. Otherwise it is a remark by the model and is dropped. Other pages without a marker are left out. If the
    document has no pages, the whole answer is the text of one section.
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
