"""Combines an extracted document with the sections that a model rewrote.

A section keeps its extracted text if the model returned no text for it, or if the new text drops or adds too many
words. Then the positions of pages, headings, boxes and recording times in the new text are determined.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from octavo.core.texts import count_words
from octavo.extract.by_model.seams import common_places, index_words
from octavo.extract.by_model.sections import Section, sections_of
from octavo.extract.extracted import (
    Block,
    Box,
    Extracted,
    Figure,
    Moment,
    OutlineEntry,
    Page,
    Quality,
    from_json,
    to_json,
)
from octavo.extract.markdown import outline_of, read_blocks
from octavo.extract.pdf.page_batches import read_ranges, write_ranges
from octavo.sandbox import Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import Sandbox

_BETWEEN = "\n\n"
# The share of words that a model may remove or add: it removes running headers, joins split words, adds headings.
MOST_CHANGED = 0.15
# The same for pages read by OCR, where the extracted text may be worse than the model's.
MOST_CHANGED_RECOGNISED = 0.5
FEW_WORDS = 5
# Text that only the model writes: descriptions of pictures and marks for illegible words. It is not compared.
_BY_MODEL = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)|\[illegible\]")
_REFERENCE = re.compile(r"!\[[^\]\n]*\]\(figures/([1-9][0-9]{0,5})\.png\)")


async def rewrite_in_sandbox(sandbox: Sandbox, plain: Extracted, texts: Mapping[int, str], made_by: str) -> Extracted:
    """Run `rewrite` in the sandbox, because a model's answer is untrusted text and has to be parsed."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output:
        given.write(await asyncio.to_thread(to_json, plain) + b"\n" + json.dumps(texts).encode())
        given.flush()
        await sandbox.run(rewrite_document.call(made_by=made_by), input_file=given, output_file=output)
        return await asyncio.to_thread(lambda: from_json(output.read()))


@sandboxed
def rewrite_document(task: Task, *, made_by: str) -> None:
    """Read a document from the input file, and replace sections with a model's text. Runs in the sandbox.

    The input has two lines, both JSON: the document, and an object that maps section indexes to new texts.
    """
    plain = from_json(task.input.readline())
    texts = {int(place): text for place, text in json.loads(task.input.readline()).items()}
    task.output.write(to_json(rewrite(plain, texts, made_by)))


def rewrite(plain: Extracted, texts: Mapping[int, str], made_by: str) -> Extracted:
    """Replace sections of a document with a model's text.

    `texts` maps indexes into `sections_of(plain)` to new texts. A section keeps its extracted text if there is no new
    text for it, or if the new text changes too many words. `metadata.extra` lists the sections that kept their text,
    except empty ones and those that are never rewritten (`fixed`).
    """
    sections = sections_of(plain)
    recognised = set(read_ranges(plain.metadata.extra.get("pages_by_ocr", "")))
    document = _Document(plain)
    kept: list[int] = []
    for place, section in enumerate(sections):
        before, text = plain.markdown[section.start : section.end], texts.get(place)
        if text is not None and is_faithful(before, text, recognised=section.page in recognised):
            document.add(section, text)
        else:
            document.keep(section)
            kept += [place] if before and not section.fixed else []
    extra = {**plain.metadata.extra, "text_by": made_by}
    markdown = "".join(document.parts)
    return replace(
        plain,
        markdown=markdown,
        word_count=count_words(markdown),
        quality=_quality(plain, sections, texts),
        pages=tuple(document.pages),
        blocks=tuple(document.blocks),
        outline=_outline(plain, document),
        metadata=replace(plain.metadata, extra=extra | _kept_note(kept, sections)),
        moments=tuple(document.moments),
        figures=_figures_in(markdown, plain.figures),
    )


def _figures_in(markdown: str, figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Return the figures that the new text still refers to, with their new offsets."""
    places = {int(found[1]): found.start() for found in _REFERENCE.finditer(markdown)}
    return tuple(replace(one, start=places[one.number]) for one in figures if one.number in places)


def _kept_note(kept: Sequence[int], sections: Sequence[Section]) -> dict[str, str]:
    if not kept:
        return {}
    pages = [page for place in kept if (page := sections[place].page) is not None]
    numbers = write_ranges(pages)
    noun = "page" if numbers.isdecimal() else "pages"
    return {"kept_plain": f"{noun} {numbers}" if pages else f"{len(kept)} of {len(sections)} parts"}


def _quality(plain: Extracted, sections: Sequence[Section], texts: Mapping[int, str]) -> Quality:
    """Return the quality of the new document.

    Only `PARTIAL` and `EMPTY` can change, and only if the model returned an answer for every section. It has then also
    read the pages that contain only images. `PARTIAL` becomes `FULL`. `EMPTY` becomes `OCR` if any answer contains
    text.
    """
    if plain.quality not in {Quality.EMPTY, Quality.PARTIAL} or not all(
        place in texts for place in range(len(sections))
    ):
        return plain.quality
    if plain.quality is Quality.PARTIAL:
        return Quality.FULL
    return Quality.OCR if any(texts.values()) else Quality.EMPTY


class _Document:
    """Builds the new document section by section. Sections are separated by an empty line."""

    def __init__(self, plain: Extracted) -> None:
        self._plain = plain
        self._block_starts = [block.start for block in plain.blocks]
        self._moment_starts = [moment.start for moment in plain.moments]
        self._pages = {page.number: page for page in plain.pages}
        self._end = 0
        self.parts: list[str] = []
        self.pages: list[Page] = []
        self.blocks: list[Block] = []
        self.moments: list[Moment] = []

    def keep(self, section: Section) -> None:
        """Add a section with its extracted text. Used if the model's text is missing or not usable."""
        start = self._write(section, self._plain.markdown[section.start : section.end])
        shift = start - section.start
        for block in self._blocks_of(section):
            self.blocks.append(replace(block, start=block.start + shift, end=block.end + shift))
        self.moments += [replace(one, start=one.start + shift) for one in self._moments_of(section)]

    def add(self, section: Section, text: str) -> None:
        """Add a section with the text that the model wrote."""
        start = self._write(section, text)
        blocks = list(read_blocks(text))
        boxes = _find_boxes(blocks, self._blocks_of(section))
        for number, block in enumerate(blocks):
            box = boxes.get(number)
            moved = replace(block, start=block.start + start, end=block.end + start, page=section.page, box=box)
            self.blocks.append(moved)
        moments = self._moments_of(section)
        if moments:
            before = self._plain.markdown[section.start : section.end]
            places = common_places(before, text)
            local = [replace(one, start=one.start - section.start) for one in moments]
            found = [replace(one, start=one.start + start) for one in _find_moments(local, places)]
            # A heading that the model added belongs to the first moment of its section.
            first = [Moment(start, moments[0].seconds)] if local[0].start == 0 else []
            self.moments += [*first, *(one for one in found if not first or one.seconds > first[0].seconds)]

    def _write(self, section: Section, text: str) -> int:
        if text and self._end:
            self.parts.append(_BETWEEN)
            self._end += len(_BETWEEN)
        start = self._end
        self.parts.append(text)
        self._end += len(text)
        if section.page is not None:
            self.pages.append(replace(self._pages[section.page], start=start, end=self._end))
        return start

    def _blocks_of(self, section: Section) -> Sequence[Block]:
        first, last = (bisect_left(self._block_starts, place) for place in (section.start, section.end))
        return self._plain.blocks[first:last]

    def _moments_of(self, section: Section) -> Sequence[Moment]:
        first, last = (bisect_left(self._moment_starts, place) for place in (section.start, section.end))
        return self._plain.moments[first:last]


def _find_boxes(blocks: Sequence[Block], before: Sequence[Block]) -> dict[int, Box]:
    """Map the index of each new block to its box, which is the area that it covers on the page.

    Each old block's box is assigned to the new block that shares the most words with the old block.
    """
    if not any(block.box for block in before):
        return {}
    words = [Counter(index_words(block.text).words) for block in blocks]
    boxes: dict[int, Box] = {}
    for old in before:
        own = Counter(index_words(old.text).words)
        shared, number = max(((own & one).total(), -number) for number, one in enumerate(words)) if words else (0, 0)
        if old.box and shared:
            known = boxes.get(-number)
            boxes[-number] = _union(known, old.box) if known else old.box
    return boxes


def _union(one: Box, other: Box) -> Box:
    return Box(
        min(one.left, other.left),
        min(one.top, other.top),
        max(one.right, other.right),
        max(one.bottom, other.bottom),
    )


def _find_moments(moments: Sequence[Moment], places: Sequence[tuple[int, int]]) -> Iterator[Moment]:
    """Find the position of each recording time in the new text.

    `places` contains the offsets of shared words in the old and in the new text. A time moves to the first shared word
    at or after its old position. A time is dropped if there is no such word before the next recording time.
    """
    lefts = [left for left, _ in places]
    last = -1
    for number, moment in enumerate(moments):
        at = bisect_left(lefts, moment.start)
        end = moments[number + 1].start if number + 1 < len(moments) else None
        if at < len(places) and (end is None or lefts[at] < end) and places[at][1] > last:
            last = places[at][1]
            yield replace(moment, start=last)


def _outline(plain: Extracted, document: _Document) -> tuple[OutlineEntry, ...]:
    """Make the new outline.

    If the old outline was made from the headings, the new one is made from the new headings. Otherwise the old entries
    are kept, and each points to the new start of its page.
    """
    if plain.outline == outline_of(plain.blocks):
        return outline_of(document.blocks)
    starts = {page.number: page.start for page in document.pages}
    return tuple(replace(entry, start=starts.get(entry.page or 0)) for entry in plain.outline)


def is_faithful(plain: str, written: str, *, recognised: bool = False) -> bool:
    """Whether a rewritten text keeps nearly all words of the original and adds only a few others.

    The order of words is ignored. If the original has no words, any text is accepted. If `recognised` is true, the
    original comes from OCR, and more words can differ.
    """
    before, after = (Counter(index_words(_BY_MODEL.sub(" ", text)).words) for text in (plain, written))
    if not before:
        return True
    most = FEW_WORDS + (MOST_CHANGED_RECOGNISED if recognised else MOST_CHANGED) * before.total()
    return (before - after).total() <= most and (after - before).total() <= most
