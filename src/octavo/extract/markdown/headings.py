"""Reads front matter (the fields between `---` lines at the top of a file) and headings, and makes the outline."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import NamedTuple

from octavo.extract.extracted import Block, BlockKind, Metadata, OutlineEntry

# A heading is repeated in the outline and in every chunk below it, so very long headings are cut.
MOST_CHARACTERS = 200
_MOST_MARKUP = 1000

_MARKS = re.compile(r"\A {0,3}#{1,6}(?:[ \t]+|$)|(?:^|[ \t])#+[ \t]*\Z|\n {0,3}(?:=+|-+)[ \t]*\Z")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_ATTRIBUTES = re.compile(r"[ \t]*\{[#.][^{}]*\}\Z")
_TAG = re.compile(r"</?[a-z][^<>]*>|<!--.*?-->", re.IGNORECASE)
# Code is kept. Backslash escapes, and emphasis markers at word boundaries, are removed.
_INLINE = re.compile(
    r"(?P<ticks>`+)(?P<code>[^`]+)(?P=ticks)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|\*+(?=\S)|(?<=\S)\*+|~~|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)"
)
_SPACE = re.compile(r"\s+")


def plain_title(heading: str) -> str:
    """Return the text of a Markdown heading without its markers, links, emphasis and escapes."""
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


_MOST_CHARACTERS = 16 * 1024
_MOST_EXTRA = 50

_FENCES = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# Only single-line values are read: lists and nested values would need a YAML parser and are never shown.
_FIELD = re.compile(r"^([A-Za-z][\w .-]{0,60}?)[ \t]*:[ \t]+(\S[^\n]*)$", re.MULTILINE)
_COMMENT = re.compile(r"[ \t]+#.*\Z")
_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?(?=\Z|[T ])")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


class FrontMatter(NamedTuple):
    """The metadata in the front matter. `end` is the offset at which the text of the document starts."""

    metadata: Metadata
    end: int


def read_front_matter(text: str) -> FrontMatter | None:
    """Read the front matter. Returns None if the text has none, or if the dashes are a horizontal rule."""
    fences = _FENCES.match(text[:_MOST_CHARACTERS])
    fields = {name.lower(): _value(value) for name, value in _FIELD.findall(fences[1])} if fences else {}
    return FrontMatter(_metadata(fields), fences.end()) if fences and fields else None


def _value(written: str) -> str:
    quote = written[0]
    if quote in "\"'" and written.rstrip().endswith(quote):
        return shorten(written.strip()[1:-1])
    return shorten(_COMMENT.sub("", written))


def _metadata(fields: dict[str, str]) -> Metadata:
    date = _DATE.match(fields.get("date", ""))
    language = fields.pop("language", None) or fields.pop("lang", None)
    if date:
        del fields["date"]
    return Metadata(
        title=fields.pop("title", None),
        author=fields.pop("author", None),
        date=date.group() if date else None,
        language=language if language and _LANGUAGE.fullmatch(language) else None,
        extra=dict(list(fields.items())[:_MOST_EXTRA]),
    )
