"""Divides transcripts without punctuation, as programs generate them, into sentences. Pure, and works offline.

A sentence ends at a pause between snippets, or before a word that usually begins a sentence. It gets a full stop, and
the next sentence gets a capital letter. No word is added, removed or moved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from octavo.core.languages import count_words
from octavo.extract.transcript import Snippet

# A transcript with fewer sentence ends than one in this many words counts as having no punctuation.
_WORDS_PER_END = 60
_FEWEST_WORDS = 30
_ANY_MARK = re.compile(r"[.!?…。！？,;:]['\"”’»)\]]*$")  # noqa: RUF001 - full-width marks end sentences too
_END = re.compile(r"[.!?…。！？]['\"”’»)\]]*$")  # noqa: RUF001
# Speaking a word takes about this long; what a snippet takes beyond that is a pause.
_SECONDS_PER_WORD = 0.38
_PAUSE_SECONDS = 0.8
# The least words of a sentence before a pause, before an opening word, at the end of a snippet, and at all.
_AFTER_PAUSE, _BEFORE_OPENER, _AT_SNIPPET, _LONGEST = 6, 10, 24, 36
_OPENERS = frozenset(
    """
    so but now okay well then however anyway finally today aber dann jetzt nun deshalb heute
    mais donc alors maintenant pero entonces ahora
    """.split()  # noqa: SIM905 - easier to read
)
# A sentence neither ends after these words nor begins with the others.
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
    """The current sentence: its number of words, and whether the next word begins another one."""

    size: int = 0
    is_ended: bool = True


def add_sentences(snippets: Sequence[Snippet]) -> list[Snippet]:
    """The snippets with full stops and capital letters, if they have no punctuation; otherwise unchanged."""
    if not _lacks_punctuation(snippets):
        return list(snippets)
    sentence = _Sentence()
    pairs = zip(snippets, [*snippets[1:], None], strict=True)
    return [replace(one, text=" ".join(_write(one, after, sentence))) for one, after in pairs]


def _lacks_punctuation(snippets: Sequence[Snippet]) -> bool:
    words = [word for one in snippets for word in one.text.split()]
    # Scripts without spaces have far more words than spaces.
    if len(words) < _FEWEST_WORDS or count_words(" ".join(words)) > 2 * len(words):
        return False
    return sum(_END.search(word) is not None for word in words) * _WORDS_PER_END < len(words)


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
