"""The pieces that a transcript comes in, without what nobody said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from octavo.extract.contract import Moment
from octavo.extract.markdown.escape import escape
from octavo.extract.words import count_words

# In the languages that generated transcripts name sounds in most often. Other words in brackets were said or matter.
_SOUNDS = (
    *("music", "musik", "musique", "música", "musica", "muziek", "музыка", "音楽", "音乐"),
    *("applause", "applaus", "beifall", "aplausos", "applaudissements", "applausi", "аплодисменты", "拍手"),
    *("laughter", "laughs", "laughing", "lachen", "gelächter", "risas", "rires", "risate", "risos", "смех", "笑い"),
    *("cheering", "cheers", "foreign", "silence", "stille"),
)
_SOUND = re.compile(rf"[\[(]\s*(?:{'|'.join(_SOUNDS)})\s*[\])]|[♪♫]+", re.IGNORECASE)
_SPEAKER = re.compile(r"\s*(?:>>+|&gt;&gt;)\s*")


@dataclass(frozen=True, slots=True)
class Snippet:
    """`start` is None for words that stand before the first time. `new_speaker`: somebody else goes on."""

    text: str
    start: float | None
    duration: float = 0.0
    new_speaker: bool = False


def clean_snippets(snippets: Iterable[Snippet]) -> list[Snippet]:
    """In the order of time, without sounds, marks of speakers and empty ones."""
    cleaned = [piece for snippet in snippets for piece in _split_speakers(snippet)]
    return sorted((piece for piece in cleaned if piece.text), key=_time)


def _time(snippet: Snippet) -> float:
    return -1.0 if snippet.start is None else snippet.start


def _split_speakers(snippet: Snippet) -> Iterator[Snippet]:
    """What stands between two marks belongs to one speaker."""
    for number, part in enumerate(_SPEAKER.split(_SOUND.sub(" ", snippet.text))):
        yield replace(snippet, text=" ".join(part.split()), new_speaker=snippet.new_speaker or number > 0)


ENOUGH_WORDS = 60
MOST_WORDS = 120
PAUSE_SECONDS = 2.0
WORDS_BEFORE_PAUSE = 20
_SENTENCE_END = re.compile(r"[.!?…。！？]['\"”’»)\]]*$")  # noqa: RUF001 - full-width marks end sentences too


@dataclass(frozen=True, slots=True)
class TranscriptText:
    markdown: str
    moments: tuple[Moment, ...]


@dataclass(slots=True)
class _Paragraph:
    """Words with the second at which each snippet among them begins."""

    words: list[tuple[str, float | None]] = field(default_factory=list[tuple[str, float | None]])
    size: int = 0

    def add(self, word: str, second: float | None) -> None:
        self.words.append((word, second))
        self.size += count_words(word)

    @property
    def is_due(self) -> bool:
        ended = _SENTENCE_END.search(self.words[-1][0]) is not None
        return self.size >= MOST_WORDS or (self.size >= ENOUGH_WORDS and ended)


def write_transcript(snippets: Iterable[Snippet]) -> TranscriptText:
    """The text, and for each snippet the place where it begins."""
    parts: list[str] = []
    moments: list[Moment] = []
    length = 0
    for paragraph in _paragraphs(snippets):
        if parts:
            parts.append("\n\n")
            length += 2
        # Marks are escaped within their line, because most mean something only where they stand there.
        shown = escape(" ".join(word for word, _ in paragraph.words)).split(" ")
        for number, (word, (_, second)) in enumerate(zip(shown, paragraph.words, strict=True)):
            separator = " " if number else ""
            if second is not None:
                moments.append(Moment(length + len(separator), second))
            parts += (separator, word)
            length += len(separator) + len(word)
    return TranscriptText("".join(parts), tuple(moments))


def _paragraphs(snippets: Iterable[Snippet]) -> Iterator[_Paragraph]:
    paragraph = _Paragraph()
    before: Snippet | None = None
    for snippet in snippets:
        if paragraph.words and before and _begins_anew(paragraph, before, snippet):
            yield paragraph
            paragraph = _Paragraph()
        for number, word in enumerate(snippet.text.split()):
            if paragraph.words and paragraph.is_due:
                yield paragraph
                paragraph = _Paragraph()
            paragraph.add(word, snippet.start if number == 0 else None)
        before = snippet
    if paragraph.words:
        yield paragraph


def _begins_anew(paragraph: _Paragraph, before: Snippet, snippet: Snippet) -> bool:
    if snippet.new_speaker or before.start is None or snippet.start is None:
        return snippet.new_speaker or snippet.start is not None
    pause = snippet.start - before.start - before.duration
    return before.duration > 0 and pause > PAUSE_SECONDS and paragraph.size >= WORDS_BEFORE_PAUSE


LEAST_STAMPS = 3
# "0:00 words", "12:34" alone, "1:02:03", "[00:12]", "(0:05)", with a dash or a colon after it or without.
_STAMP = re.compile(
    r"[ \t]*(?P<open>[\[(]?)(?:(?P<hours>\d{1,3}):)?(?P<minutes>\d{1,3}):(?P<seconds>[0-5]\d)(?:[.,]\d{1,3})?[\])]?"
    r"(?![\d:])(?:[ \t]*[-\u2013\u2014:][ \t]+|[ \t]+|$)"
)
_MINUTES_OF_AN_HOUR = 60
# Times of day are round; of moments in speech only some are.
_ROUND = 5
_EARLY_SECONDS = 300


@dataclass(frozen=True, slots=True)
class _Stamp:
    seconds: int
    is_plain: bool


def read_stamps(text: str) -> list[Snippet] | None:
    """The words behind each time, or None where the text is no transcript. What stands before the first time stays."""
    snippets: list[tuple[_Stamp | None, list[str]]] = [(None, [])]
    for line in text.split("\n"):
        found = _STAMP.match(line)
        stamp = _read(found) if found else None
        if found and stamp:
            snippets.append((stamp, []))
        snippets[-1][1].append(line[found.end() :] if found and stamp else line)
    stamps = [stamp for stamp, _ in snippets if stamp]
    if not _is_transcript(stamps):
        return None
    return [Snippet(" ".join(lines), stamp.seconds if stamp else None) for stamp, lines in snippets]


def _read(found: re.Match[str]) -> _Stamp | None:
    hours, minutes = found["hours"], int(found["minutes"])
    if hours and minutes >= _MINUTES_OF_AN_HOUR:
        return None
    seconds = int(hours or 0) * 3600 + minutes * 60 + int(found["seconds"])
    return _Stamp(seconds, is_plain=not hours and not found["open"])


def _is_transcript(stamps: list[_Stamp]) -> bool:
    times = [stamp.seconds for stamp in stamps]
    if len(set(times)) < LEAST_STAMPS or times != sorted(times):
        return False
    agenda = all(stamp.is_plain and stamp.seconds % _ROUND == 0 for stamp in stamps)
    return not (agenda and times[0] >= _EARLY_SECONDS)


@dataclass(frozen=True, slots=True)
class RawSnippet:
    text: str
    start: float
    duration: float


@dataclass(frozen=True, slots=True)
class RawTranscript:
    """`kind`: whether a person wrote it. `language` is a code, as `en`."""

    video_id: str
    language: str
    kind: Literal["manual", "generated"]
    snippets: list[RawSnippet]
    title: str | None = None
    author: str | None = None


def write_raw_transcript(raw: RawTranscript) -> bytes:
    return json.dumps(asdict(raw), ensure_ascii=False, indent=1).encode()


def read_raw_transcript(document: bytes) -> RawTranscript:
    read: dict[str, Any] = json.loads(document)
    snippets = [RawSnippet(**one) for one in read.pop("snippets")]
    return RawTranscript(snippets=snippets, **read)
