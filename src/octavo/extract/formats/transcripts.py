"""Reads video transcripts and caption files (VTT, SRT) as text with timestamps."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from octavo.core.errors import Empty
from octavo.core.languages import count_words
from octavo.extract.decode import clean, decode
from octavo.extract.extracted import Extracted, Metadata, SourceType
from octavo.extract.markdown import read_blocks
from octavo.extract.registry import Hints, Processor
from octavo.extract.transcript import Snippet, add_sentences, clean_snippets, read_raw_transcript, write_transcript

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_CUE = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?!\d)")
_VOICE = re.compile(r"<v(?:\.[^\s>]{0,100})?\s+([^>]{1,200})>", re.IGNORECASE)
# Formatting in cues: tags, and positions such as "{\an8}".
_FORMATTING = re.compile(r"</?[a-z0-9][^<>]{0,200}>|\{\\[^{}]{0,100}\}", re.IGNORECASE)
_LANGUAGE = re.compile(r"^Language:[ \t]*([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)[ \t]*$", re.MULTILINE)
_HEAD_CHARACTERS = 1000


def extract(path: Path, _hints: Hints) -> Extracted:
    raw = read_raw_transcript(path.read_bytes())
    extra = {"video": raw.video_id, "transcript": raw.kind}
    about = Metadata(raw.title or f"Video {raw.video_id}", raw.author, language=raw.language, extra=extra)
    snippets = [Snippet(clean(one.text), max(0.0, one.start), one.duration) for one in raw.snippets]
    return from_snippets(snippets, SourceType.YOUTUBE, about)


def from_snippets(snippets: Iterable[Snippet], source_type: SourceType, metadata: Metadata) -> Extracted:
    text = write_transcript(add_sentences(clean_snippets(snippets)))
    if not text.markdown:
        raise Empty("The transcript contains no text.")
    return Extracted(
        source_type=source_type,
        markdown=text.markdown,
        word_count=count_words(text.markdown),
        blocks=tuple(read_blocks(text.markdown)),
        metadata=metadata,
        moments=text.moments,
    )


# Caption files ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cue:
    start: float
    end: float
    lines: list[str] = field(default_factory=list[str])


def extract_captions(path: Path, hints: Hints) -> Extracted:
    text = decode(path.read_bytes())
    language = _LANGUAGE.search(text[:_HEAD_CHARACTERS])
    about = Metadata(language=language[1] if language else None)
    return from_snippets(_snippets(_without_repeats(_cues(text))), hints.source_type, about)


def _cues(text: str) -> Iterator[_Cue]:
    """Yield the cues (captions with a start and end time).

    A cue ends at an empty line. Lines outside cues are skipped. They contain numbers, styles and comments.
    """
    cue: _Cue | None = None
    for line in text.split("\n"):
        timing = _CUE.match(line)
        if cue is not None and (timing or not line.strip()):
            yield cue
            cue = None
        if timing:
            cue = _Cue(_seconds(timing, 1), _seconds(timing, 5))
        elif cue is not None:
            cue.lines.append(line.strip())
    if cue is not None:
        yield cue


def _seconds(timing: re.Match[str], first: int) -> float:
    hours, minutes, seconds, fraction = timing.group(first, first + 1, first + 2, first + 3)
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")


def _without_repeats(cues: Iterable[_Cue]) -> Iterator[_Cue]:
    """Remove the first line of a caption if it repeats the last line of the caption before, as in captions that scroll
    up.
    """
    last, end = "", 0.0
    for cue in cues:
        shown = [_FORMATTING.sub("", line).strip() for line in cue.lines]
        repeated = cue.start <= end and bool(last) and last in shown
        first = shown.index(last) + 1 if repeated else 0
        cue.lines = cue.lines[first:]
        last, end = next((line for line in reversed(shown) if line), last), cue.end
        if any(cue.lines):
            yield cue


def _snippets(cues: Iterable[_Cue]) -> Iterator[Snippet]:
    """Convert captions to snippets of text with times. The speaker's name is added where the speaker changes."""
    speaker = ""
    for cue in cues:
        text = " ".join(cue.lines)
        voice = _VOICE.search(text)
        named = html.unescape(voice[1]).strip() if voice else ""
        is_new = bool(named) and named != speaker
        speaker = named or speaker
        words = html.unescape(_FORMATTING.sub("", text))
        yield Snippet(f"{named}: {words}" if is_new else words, cue.start, max(0.0, cue.end - cue.start), is_new)


PROCESSOR = Processor((SourceType.YOUTUBE,), extract)
CAPTIONS = Processor((SourceType.VTT, SourceType.SRT), extract_captions)
