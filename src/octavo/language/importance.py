"""How much of what a document is about a passage tells, from 0 to 1.

    importance = 0.6 · topic + 0.2 · substance + 0.2 · place

topic      how much the document's own concepts weigh in the passage, against the passage where they weigh most
substance  the share of its words that are in sentences, and less where there are only few of them
place      1 under a heading such as "Abstract" or "Conclusion", 0.75 for the first and the last passage, 0.5 elsewhere

Under a heading such as "References" or "Index" the sum counts only a third.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from octavo.language.insights import Passage
from octavo.language.parsed_chunks import Reading

_TOPIC, _SUBSTANCE, _PLACE = 0.6, 0.2, 0.2
_ENOUGH_WORDS = 80
_EDGE, _USUAL = 0.75, 0.5
_APPENDIX = 1 / 3
_CORE = re.compile(
    r"\b(abstract|summary|overview|key (findings|points|takeaways)|conclusions?|results|recommendations|zusammenfassung"
    r"|fazit|ergebnisse|résumé|conclusión|resumen|conclusioni|sintesi|conclusão|samenvatting|conclusie)\b",
    re.IGNORECASE,
)
_REST = re.compile(
    r"\b(references|bibliography|index|(table of )?contents|acknowledge?ments?|copyright|colophon|imprint|glossary"
    r"|appendix|further reading|about the authors?|license|literaturverzeichnis|inhalt(sverzeichnis)?|impressum"
    r"|danksagung|bibliographie|remerciements|bibliografía|índice|bibliografia|indice|sommario|literatuur(lijst)?|inhoud(sopgave)?"
    r")\b",
    re.IGNORECASE,
)


def rate_passages(readings: Sequence[Reading], topics: Sequence[float]) -> list[float]:
    """`topics` is what the document's concepts weigh in each passage."""
    most = max(topics, default=0.0)
    last = len(readings) - 1
    return [
        _rate(reading, topic / most if most else _USUAL, is_edge=place in {0, last})
        for place, (reading, topic) in enumerate(zip(readings, topics, strict=True))
    ]


def _rate(reading: Reading, topic: float, *, is_edge: bool) -> float:
    place = 1.0 if is_core(reading.passage) else _EDGE if is_edge else _USUAL
    total = _TOPIC * topic + _SUBSTANCE * _substance(reading) + _PLACE * place
    return round(total * (_APPENDIX if is_rest(reading.passage) else 1), 3)


def is_core(passage: Passage) -> bool:
    return any(_CORE.search(heading) for heading in passage.headings)


def is_rest(passage: Passage) -> bool:
    return any(_REST.search(heading) for heading in passage.headings)


def _substance(reading: Reading) -> float:
    in_sentences = sum(len(sentence.words) for sentence in reading.sentences if sentence.whole)
    words = max(len(reading.text.split()), 1)
    return min(in_sentences / words, 1.0) * min(words / _ENOUGH_WORDS, 1.0)
