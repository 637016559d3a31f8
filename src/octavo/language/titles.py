"""Finds the title and the author of a document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo.language.insights import DocumentSource
from octavo.language.markdown_segments import SegmentKind, blank_markup, split_segments
from octavo.language.summaries import plain_text, shorten

_MAX_CHARACTERS = 200
_LONGEST_LINE = 120
_SENTENCE_ENDS = (".", "\u2026", "\u3002")
# Programs often put the file name or their own name into the title field.
_PLACEHOLDER_TITLE = re.compile(
    r"(untitled|unbenannt|sans titre|document|dokument|slide|page|scan|image|img|dsc|new)?[\s_()-]*\d*"
    r"|.*\.(docx?|pdf|indd|odt|rtf|txt|tex|dvi|ps|pptx?|xlsx?|html?|md|qxd|pages)|untitled.*|(microsoft )?powerpoint .*"
    r"|(the )?(table of )?contents|cover( image)?|inhalt(sverzeichnis)?|sommaire|índice|indice|abstract|.*[:,;]",
    re.IGNORECASE,
)
_TITLE_PREFIX = re.compile(
    r"^(microsoft word|microsoft powerpoint|\[[^\[\]]{1,60}\]|\([^()]{1,60}\))\s*[-\u2013]?\s*", re.IGNORECASE
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_BYLINE = re.compile(
    r"^[ \t]*(?:(?:written |edited )?by|authors?:|von|par|por|di|door|autor(?:in|es)?:|auteurs?:)[ \t]+(\S.{2,150})$",
    re.IGNORECASE | re.MULTILINE,
)
_NAME = re.compile(r"[^\W\d_][\w.'\u2019-]*,?")
_BETWEEN_NAMES = frozenset({"and", "und", "et", "y", "e", "en", "&", "de", "del", "da", "van", "von", "der", "la"})
_MIN_NAMES, _MAX_NAMES = 2, 12
_HEAD = 1500


def find_title(source: DocumentSource) -> str | None:
    """Find the title: in the metadata, else the first heading, else a short first line that is not a sentence."""
    for candidate in _candidates(source):
        text = _TITLE_PREFIX.sub("", plain_text(candidate)).strip(" -\u2013|")
        if _LETTERS.search(text) and not _PLACEHOLDER_TITLE.fullmatch(text):
            return shorten(text, _MAX_CHARACTERS)
    return None


def _candidates(source: DocumentSource) -> Iterator[str]:
    if source.title:
        yield source.title
    first = source.chunks[0] if source.chunks else None
    if first and first.headings:
        yield first.headings[0]
    if first:
        text = blank_markup(first.content)
        parts = list(split_segments(first.content))
        yield from (text[part.start : part.end] for part in parts if part.part is SegmentKind.HEADING)
        lines = [text[part.start : part.end].strip() for part in parts[:1] if len(parts) > 1]
        yield from (line for line in lines if len(line) <= _LONGEST_LINE and not line.endswith(_SENTENCE_ENDS))


def find_author(source: DocumentSource) -> str | None:
    """Find the author: in the metadata, else in a byline near the beginning."""
    if source.author and _LETTERS.search(source.author):
        return shorten(plain_text(source.author), _MAX_CHARACTERS)
    head = blank_markup(source.chunks[0].content[:_HEAD]) if source.chunks else ""
    return next((name.strip(" ,") for name in map(plain_text, _BYLINE.findall(head)) if _is_name(name)), None)


def _is_name(text: str) -> bool:
    """Whether a text looks like names: at least two capitalised words, ignoring particles and conjunctions."""
    words = [word for word in text.split() if word not in _BETWEEN_NAMES]
    if not _MIN_NAMES <= len(words) <= _MAX_NAMES:
        return False
    return all(_NAME.fullmatch(word) and word[0].isupper() for word in words)
