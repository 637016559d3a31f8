"""The title of a document and who wrote it, as far as the document says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo.language.insights import Source
from octavo.language.markdown_segments import Part, blank, segments
from octavo.language.summaries import plain, shorten

_MOST_CHARACTERS = 200
_LONGEST_LINE = 120
_SENTENCE_ENDS = (".", "\u2026", "\u3002")
# Programs write the name of a file or of themselves where a title should be.
_NO_TITLE = re.compile(
    r"(untitled|unbenannt|sans titre|document|dokument|slide|page|scan|image|img|dsc|new)?[\s_()-]*\d*"
    r"|.*\.(docx?|pdf|indd|odt|rtf|txt|tex|dvi|ps|pptx?|xlsx?|html?|md|qxd|pages)|untitled.*|(microsoft )?powerpoint .*"
    r"|(the )?(table of )?contents|cover( image)?|inhalt(sverzeichnis)?|sommaire|índice|indice|abstract|.*[:,;]",
    re.IGNORECASE,
)
_FRAME = re.compile(
    r"^(microsoft word|microsoft powerpoint|\[[^\[\]]{1,60}\]|\([^()]{1,60}\))\s*[-\u2013]?\s*", re.IGNORECASE
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_BYLINE = re.compile(
    r"^[ \t]*(?:(?:written |edited )?by|authors?:|von|par|por|di|door|autor(?:in|es)?:|auteurs?:)[ \t]+(\S.{2,150})$",
    re.IGNORECASE | re.MULTILINE,
)
_NAME = re.compile(r"[^\W\d_][\w.'\u2019-]*,?")
_BETWEEN_NAMES = frozenset({"and", "und", "et", "y", "e", "en", "&", "de", "del", "da", "van", "von", "der", "la"})
_FEWEST_NAMES, _MOST_NAMES = 2, 12
_HEAD = 1500


def find_title(source: Source) -> str | None:
    """What the file says of itself, the first heading, or a first line that is short, no sentence, and not all."""
    for candidate in _candidates(source):
        text = _FRAME.sub("", plain(candidate)).strip(" -\u2013|")
        if _LETTERS.search(text) and not _NO_TITLE.fullmatch(text):
            return shorten(text, _MOST_CHARACTERS)
    return None


def _candidates(source: Source) -> Iterator[str]:
    if source.title:
        yield source.title
    first = source.passages[0] if source.passages else None
    if first and first.headings:
        yield first.headings[0]
    if first:
        text = blank(first.content)
        parts = list(segments(first.content))
        yield from (text[part.start : part.end] for part in parts if part.part is Part.HEADING)
        lines = [text[part.start : part.end].strip() for part in parts[:1] if len(parts) > 1]
        yield from (line for line in lines if len(line) <= _LONGEST_LINE and not line.endswith(_SENTENCE_ENDS))


def find_author(source: Source) -> str | None:
    """What the file says of itself, else a line near the beginning that names somebody."""
    if source.author and _LETTERS.search(source.author):
        return shorten(plain(source.author), _MOST_CHARACTERS)
    head = blank(source.passages[0].content[:_HEAD]) if source.passages else ""
    return next((name.strip(" ,") for name in map(plain, _BYLINE.findall(head)) if _is_name(name)), None)


def _is_name(text: str) -> bool:
    """Two words at least, all of which begin with a capital, but for those that stand between names."""
    words = [word for word in text.split() if word not in _BETWEEN_NAMES]
    if not _FEWEST_NAMES <= len(words) <= _MOST_NAMES:
        return False
    return all(_NAME.fullmatch(word) and word[0].isupper() for word in words)
