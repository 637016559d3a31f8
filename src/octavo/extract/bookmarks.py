"""What a file's own table of contents says of each page and the text does not say itself."""

from __future__ import annotations

import re
from collections import defaultdict

from octavo.extract.contract import BlockKind, Extracted

_WORD = re.compile(r"\w+")


def bookmarks_by_page(extracted: Extracted) -> dict[int, list[tuple[int, str]]]:
    """Level and title of each entry that no heading of the text stands for, in order."""
    headings = {block.start: block.text for block in extracted.blocks if block.kind is BlockKind.HEADING}
    found: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for entry in extracted.outline:
        heading = headings.get(entry.start, "") if entry.start is not None else ""
        # An entry without a heading begins where its page does, and another one's heading may stand there.
        if entry.page is not None and not _words(entry.title) & _words(heading):
            found[entry.page].append((entry.level, entry.title))
    return dict(found)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
