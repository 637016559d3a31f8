"""Rates the importance of a chunk in its document, from 0 to 1.

    importance = 0.6 · topic + 0.2 · substance + 0.2 · place

topic      weight of the document's concepts in the chunk, relative to the chunk with the highest weight
substance  share of words that are in sentences, reduced for chunks with few words
place      1 under a heading such as "Abstract" or "Conclusion", 0.75 for the first and last chunk, 0.5 elsewhere

Under a heading such as "References" or "Index", the result is divided by three.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from octavo.language.insights import ChunkText
from octavo.language.parsed_chunks import ParsedChunk

_TOPIC, _SUBSTANCE, _PLACE = 0.6, 0.2, 0.2
_ENOUGH_WORDS = 80
_EDGE, _MIDDLE = 0.75, 0.5
_BACK_MATTER_FACTOR = 1 / 3
_CORE = re.compile(
    r"\b(abstract|summary|overview|key (findings|points|takeaways)|conclusions?|results|recommendations|zusammenfassung"
    r"|fazit|ergebnisse|résumé|conclusión|resumen|conclusioni|sintesi|conclusão|samenvatting|conclusie)\b",
    re.IGNORECASE,
)
_BACK_MATTER = re.compile(
    r"\b(references|bibliography|index|(table of )?contents|acknowledge?ments?|copyright|colophon|imprint|glossary"
    r"|appendix|further reading|about the authors?|license|literaturverzeichnis|inhalt(sverzeichnis)?|impressum"
    r"|danksagung|bibliographie|remerciements|bibliografía|índice|bibliografia|indice|sommario|literatuur(lijst)?|inhoud(sopgave)?"
    r")\b",
    re.IGNORECASE,
)


def rate_chunks(parsed_chunks: Sequence[ParsedChunk], topics: Sequence[float]) -> list[float]:
    """Return the importance of each chunk, from 0 to 1.

    `topics` contains the weight of the document's concepts in each chunk.
    """
    most = max(topics, default=0.0)
    last = len(parsed_chunks) - 1
    return [
        _rate(parsed, topic / most if most else _MIDDLE, is_edge=place in {0, last})
        for place, (parsed, topic) in enumerate(zip(parsed_chunks, topics, strict=True))
    ]


def _rate(parsed: ParsedChunk, topic: float, *, is_edge: bool) -> float:
    place = 1.0 if has_core_heading(parsed.chunk) else _EDGE if is_edge else _MIDDLE
    total = _TOPIC * topic + _SUBSTANCE * _substance(parsed) + _PLACE * place
    return round(total * (_BACK_MATTER_FACTOR if has_back_matter_heading(parsed.chunk) else 1), 3)


def has_core_heading(chunk: ChunkText) -> bool:
    return any(_CORE.search(heading) for heading in chunk.headings)


def has_back_matter_heading(chunk: ChunkText) -> bool:
    return any(_BACK_MATTER.search(heading) for heading in chunk.headings)


def _substance(parsed: ParsedChunk) -> float:
    in_sentences = sum(len(sentence.words) for sentence in parsed.sentences if sentence.whole)
    words = max(len(parsed.text.split()), 1)
    return min(in_sentences / words, 1.0) * min(words / _ENOUGH_WORDS, 1.0)
