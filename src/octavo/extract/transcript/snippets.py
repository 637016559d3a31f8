"""The pieces that a transcript comes in, without what nobody said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

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
