"""Writes fetched or pasted transcripts as paragraphs.

The functions are pure. Each timestamp becomes a "moment": a position in the text and the time in the recording at which
the words are spoken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from octavo.core.texts import count_words
from octavo.extract.extracted import Moment
from octavo.extract.markdown.escape import escape

# Names of sounds in the most common languages of generated transcripts. Other words in brackets are kept.
_SOUNDS = (
    *("music", "musik", "musique", "música", "musica", "muziek", "музыка", "音楽", "音乐"),
    *("applause", "applaus", "beifall", "aplausos", "applaudissements", "applausi", "аплодисменты", "拍手"),
    *("laughter", "laughs", "laughing", "lachen", "gelächter", "risas", "rires", "risate", "risos", "смех", "笑い"),
    *("cheering", "cheers", "foreign", "silence", "stille"),
)
_SOUND = re.compile(rf"[\[(]\s*(?:{'|'.join(_SOUNDS)})\s*[\])]|[♪♫]+", re.IGNORECASE)
_SPEAKER = re.compile(r"\s*(?:>>+|&gt;&gt;)\s*")
ENOUGH_WORDS = 60
MOST_WORDS = 120
PAUSE_SECONDS = 2.0
WORDS_BEFORE_PAUSE = 20
_SENTENCE_END = re.compile(r"[.!?…。！？]['\"”’»)\]]*$")  # noqa: RUF001 - full-width marks end sentences too
LEAST_TIMESTAMPS = 3
# "0:00 words", "12:34" without words, "1:02:03", "[00:12]" or "(0:05)", each with or without a dash or colon after it.
_TIMESTAMP = re.compile(
    r"[ \t]*(?P<open>[\[(]?)(?:(?P<hours>\d{1,3}):)?(?P<minutes>\d{1,3}):(?P<seconds>[0-5]\d)(?:[.,]\d{1,3})?[\])]?"
    r"(?![\d:])(?:[ \t]*[-\u2013\u2014:][ \t]+|[ \t]+|$)"
)
# "[[12:34](https://…)]" anywhere, or "[12:34](https://…)" at the start of a line: a timestamp that links to the video.
_LINKED_TIMESTAMP = re.compile(
    r"(?:(?P<outer>\[)|^[ \t]*)\[(?P<time>(?:\d{1,3}:)?\d{1,3}:[0-5]\d)\]\((?P<url>https?://[^\s()]{1,1000})\)"
    r"(?(outer)\])[ \t]*(?:[-\u2013\u2014:][ \t]+)?",
    re.MULTILINE,
)
# Notes about a video also have such links, but more lines without one.
_LINES_PER_LINK = 4
_MINUTES_OF_AN_HOUR = 60
# In an agenda, all times of day are round numbers. In a transcript, only some timestamps are.
_ROUND = 5
_EARLY_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Snippet:
    """A few words of a transcript with their time.

    `start` is None for words before the first timestamp. `new_speaker` is true if another speaker starts here.
    """

    text: str
    start: float | None
    duration: float = 0.0
    new_speaker: bool = False


def clean_snippets(snippets: Iterable[Snippet]) -> list[Snippet]:
    """Clean snippets and sort them by time.

    Sounds such as "[music]" and empty snippets are removed. Snippets are split where the speaker changes (">>").
    """
    cleaned = [part for snippet in snippets for part in _split_speakers(snippet)]
    return sorted((part for part in cleaned if part.text), key=_time)


def _time(snippet: Snippet) -> float:
    return -1.0 if snippet.start is None else snippet.start


def _split_speakers(snippet: Snippet) -> Iterator[Snippet]:
    """Split a snippet where the speaker changes (">>"), and remove sounds such as "[music]"."""
    for number, part in enumerate(_SPEAKER.split(_SOUND.sub(" ", snippet.text))):
        yield replace(snippet, text=" ".join(part.split()), new_speaker=snippet.new_speaker or number > 0)


@dataclass(frozen=True, slots=True)
class TranscriptText:
    markdown: str
    moments: tuple[Moment, ...]


@dataclass(slots=True)
class _Paragraph:
    """The words of a paragraph.

    The first word of each snippet is stored with the time in seconds at which it is spoken.
    """

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
    """Write snippets as paragraphs, with the time at which each snippet starts.

    A paragraph ends after a pause, before another speaker, and when it is long enough.
    """
    parts: list[str] = []
    moments: list[Moment] = []
    length = 0
    for paragraph in _paragraphs(snippets):
        if parts:
            parts.append("\n\n")
            length += 2
        # Escaped as whole lines, because the meaning of most characters depends on their position.
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
        if paragraph.words and before and _starts_paragraph(paragraph, before, snippet):
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


def _starts_paragraph(paragraph: _Paragraph, before: Snippet, snippet: Snippet) -> bool:
    if snippet.new_speaker or before.start is None or snippet.start is None:
        return snippet.new_speaker or snippet.start is not None
    pause = snippet.start - before.start - before.duration
    return before.duration > 0 and pause > PAUSE_SECONDS and paragraph.size >= WORDS_BEFORE_PAUSE


@dataclass(frozen=True, slots=True)
class _Timestamp:
    seconds: int
    is_plain: bool


def read_timestamps(text: str) -> list[Snippet] | None:
    """Split a text at its timestamps, keeping text before the first timestamp.

    Returns None if it is not a transcript.
    """
    snippets: list[tuple[_Timestamp | None, list[str]]] = [(None, [])]
    for line in _unlink(text).split("\n"):
        found = _TIMESTAMP.match(line)
        stamp = _read(found) if found else None
        if found and stamp:
            snippets.append((stamp, []))
        snippets[-1][1].append(line[found.end() :] if found and stamp else line)
    stamps = [stamp for stamp, _ in snippets if stamp]
    if not _is_transcript(stamps):
        return None
    return [Snippet(" ".join(lines), stamp.seconds if stamp else None) for stamp, lines in snippets]


def linked_urls(text: str) -> list[str]:
    """Return the URLs that the timestamps in a transcript link to.

    Returns an empty list if the timestamps are not links, or if the text is not a transcript.
    """
    urls = [found["url"] for found in _LINKED_TIMESTAMP.finditer(text)]
    return urls if _unlink(text) != text and read_timestamps(text) is not None else []


def _unlink(text: str) -> str:
    """Put each timestamp that links to a video on a new line, without its URL. Texts with few such links are not
    changed.
    """
    unlinked, count = _LINKED_TIMESTAMP.subn(r"\n[\g<time>] ", text)
    lines = sum(not line.isspace() for line in text.splitlines() if line)
    return unlinked if count >= LEAST_TIMESTAMPS and count * _LINES_PER_LINK >= lines else text


def _read(found: re.Match[str]) -> _Timestamp | None:
    hours, minutes = found["hours"], int(found["minutes"])
    if hours and minutes >= _MINUTES_OF_AN_HOUR:
        return None
    seconds = int(hours or 0) * 3600 + minutes * 60 + int(found["seconds"])
    return _Timestamp(seconds, is_plain=not hours and not found["open"])


def _is_transcript(stamps: list[_Timestamp]) -> bool:
    times = [stamp.seconds for stamp in stamps]
    if len(set(times)) < LEAST_TIMESTAMPS or times != sorted(times):
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
    """A transcript as fetched.

    `kind` says whether a person wrote it or a program generated it. `language` is a code such as `en`.
    """

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


# Sentences ----------------------------------------------------------------------------------------------------------

# Generated transcripts have no punctuation. Pauses between snippets, and words that usually begin a sentence, decide
# where a sentence ends. It gets a full stop, and the next one a capital letter. No word is added or removed.

# A transcript with fewer sentence ends than one per this many words has no punctuation.
_WORDS_PER_END = 60
_FEWEST_WORDS = 30
_ANY_MARK = re.compile(r"[.!?…。！？,;:]['\"”’»)\]]*$")  # noqa: RUF001 - full-width marks end sentences too
# Speaking a word takes about this long. Any further time of a snippet is a pause.
_SECONDS_PER_WORD = 0.38
_PAUSE_SECONDS = 0.8
# After this many words, a sentence ends before a pause, before an opening word, at a snippet end, and in any case.
_AFTER_PAUSE, _BEFORE_OPENER, _AT_SNIPPET, _LONGEST = 6, 10, 24, 36
_OPENERS = frozenset(
    """
    so but now okay well then however anyway finally today aber dann jetzt nun deshalb heute
    mais donc alors maintenant pero entonces ahora
    """.split()  # noqa: SIM905 - easier to read
)
# A sentence does not end after the first group of words, and does not begin with the second.
_NEVER_LAST = frozenset(
    """
    and or but because if when that which the a an my your our their this of to in on at for with from by is are
    was were und oder aber weil wenn dass der die das den dem ein eine zu von mit auf et ou mais que le la les un
    une de à en y o pero el los las una con
    """.split()  # noqa: SIM905 - easier to read
)
_NEVER_FIRST = frozenset(
    """
    is are was were be been has have had can could will would should of to and or than
    und oder als ist sind war et ou est y o es
    """.split()  # noqa: SIM905 - easier to read
)


@dataclass(slots=True)
class _Sentence:
    """The sentence that is being written: its number of words, and whether the next word begins a new sentence."""

    size: int = 0
    is_ended: bool = True


def add_sentences(snippets: Sequence[Snippet]) -> list[Snippet]:
    """Add full stops and capital letters to a transcript that has no punctuation. Other transcripts are not changed."""
    if not _lacks_punctuation(snippets):
        return list(snippets)
    sentence = _Sentence()
    pairs = zip(snippets, [*snippets[1:], None], strict=True)
    return [replace(one, text=" ".join(_write(one, after, sentence))) for one, after in pairs]


def _lacks_punctuation(snippets: Sequence[Snippet]) -> bool:
    words = [word for one in snippets for word in one.text.split()]
    # Texts in scripts without spaces have far more words than spaces.
    if len(words) < _FEWEST_WORDS or count_words(" ".join(words)) > 2 * len(words):
        return False
    return sum(_SENTENCE_END.search(word) is not None for word in words) * _WORDS_PER_END < len(words)


def _write(snippet: Snippet, after: Snippet | None, sentence: _Sentence) -> Iterator[str]:
    words = snippet.text.split()
    for number, word in enumerate(words):
        shown = word[:1].upper() + word[1:] if sentence.is_ended else word
        sentence.size += 1
        next_word = words[number + 1] if number + 1 < len(words) else _first_word(after)
        is_last = number + 1 == len(words)
        is_pause = is_last and _pauses(snippet, after)
        sentence.is_ended = _ends(sentence.size, next_word, is_pause, is_last) and _may_end(word, next_word)
        if sentence.is_ended:
            sentence.size = 0
            shown = shown if _ANY_MARK.search(shown) else f"{shown}."
        yield shown


def _first_word(snippet: Snippet | None) -> str | None:
    return next(iter(snippet.text.split()), None) if snippet else None


def _pauses(snippet: Snippet, after: Snippet | None) -> bool:
    if after is None or after.new_speaker or snippet.start is None or after.start is None:
        return True
    spoken = len(snippet.text.split()) * _SECONDS_PER_WORD
    return after.start - snippet.start - spoken > _PAUSE_SECONDS


def _may_end(word: str, next_word: str | None) -> bool:
    return next_word is None or (word.lower() not in _NEVER_LAST and next_word.lower() not in _NEVER_FIRST)


def _ends(size: int, next_word: str | None, is_pause: bool, is_snippet_end: bool) -> bool:  # noqa: FBT001 - two facts
    if next_word is None or size >= _LONGEST:
        return True
    if (is_pause and size >= _AFTER_PAUSE) or (is_snippet_end and size >= _AT_SNIPPET):
        return True
    return size >= _BEFORE_OPENER and next_word.lower() in _OPENERS
