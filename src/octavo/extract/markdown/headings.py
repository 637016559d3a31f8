"""The plain text of headings, and the outline made from them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from octavo.extract.extracted import Block, BlockKind, OutlineEntry

# A heading is repeated in the outline and in every chunk below it, so very long ones are cut.
MOST_CHARACTERS = 200
_MOST_MARKUP = 1000

_MARKS = re.compile(r"\A {0,3}#{1,6}(?:[ \t]+|$)|(?:^|[ \t])#+[ \t]*\Z|\n {0,3}(?:=+|-+)[ \t]*\Z")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_ATTRIBUTES = re.compile(r"[ \t]*\{[#.][^{}]*\}\Z")
_TAG = re.compile(r"</?[a-z][^<>]*>|<!--.*?-->", re.IGNORECASE)
# Code is kept; escaping backslashes and emphasis markers at word boundaries are removed.
_INLINE = re.compile(
    r"(?P<ticks>`+)(?P<code>[^`]+)(?P=ticks)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|\*+(?=\S)|(?<=\S)\*+|~~|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)"
)
_SPACE = re.compile(r"\s+")


def plain_title(heading: str) -> str:
    """The text of a Markdown heading without its markers, links, emphasis and escapes."""
    title = _MARKS.sub("", heading[:_MOST_MARKUP].strip())
    title = _ATTRIBUTES.sub("", _TAG.sub("", _LINK.sub(r"\1", title)))
    return shorten(html.unescape(_INLINE.sub(_inline_text, title)))


def _inline_text(found: re.Match[str]) -> str:
    return found["code"] or found["escaped"] or ""


def shorten(title: str) -> str:
    """Put a title on one line and limit its length."""
    title = _SPACE.sub(" ", title).strip()
    return title if len(title) <= MOST_CHARACTERS else title[: MOST_CHARACTERS - 1].rstrip() + "…"


def outline_of(blocks: Iterable[Block]) -> tuple[OutlineEntry, ...]:
    """Make the outline from all headings that have text."""
    return tuple(
        OutlineEntry(block.level or 1, block.text, block.page, block.start)
        for block in blocks
        if block.kind is BlockKind.HEADING and block.text
    )
