"""Generates a document's summary and tags, and the themes, concepts and summary of each chunk, without a model.

The title and other facts are passed in. Each chunk is parsed only once. Word weights are computed over the whole
document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from octavo.language.insights import ChunkInsight, ChunkText, DocumentFacts, DocumentInsight, DocumentSource
from octavo.language.languages import detect_document_language
from octavo.language.phrases import (
    NamedConcepts,
    ParsedChunk,
    Sentence,
    Topics,
    WordWeights,
    name_concepts,
    parse_chunk,
    score_phrases,
)
from octavo.language.tags import TagSource, choose_tags
from octavo.language.tone import find_tone
from octavo.language.vocabulary import fold

MADE_BY = "local"


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a document, and the summaries, themes and concepts of its chunks in document order."""

    document: DocumentInsight
    chunks: list[ChunkInsight]
    made_by: str = MADE_BY


def describe(source: DocumentSource, facts: DocumentFacts | None = None) -> Description:
    language = detect_document_language([chunk.content for chunk in source.chunks], source.language)
    parsed_chunks = [parse_chunk(chunk, language) for chunk in source.chunks]
    weights = WordWeights([parsed.phrases for parsed in parsed_chunks], language)
    named: list[NamedConcepts] = [
        name_concepts(parsed.phrases, score_phrases(parsed.phrases, weights)) for parsed in parsed_chunks
    ]
    topics = Topics(named)
    summaries = [summarise(parsed, _word_weights(parsed, weights)) for parsed in parsed_chunks]
    importances = rate_chunks(parsed_chunks, [topics.weigh(concepts) for concepts in named])
    insights = [
        ChunkInsight(
            themes=topics.themes(parsed, concepts),
            concepts=[concept for _, concept in concepts],
            tone=find_tone(parsed),
            importance=importance,
            summary=summary,
        )
        for parsed, concepts, summary, importance in zip(parsed_chunks, named, summaries, importances, strict=True)
    ]
    document = _describe_document(source, facts or DocumentFacts(), language, parsed_chunks, topics, insights)
    return Description(document, insights)


def prepare() -> None:
    """Load all data that is needed to summarise documents and answer questions.

    Processes that are forked later then open no files.
    """
    describe(DocumentSource([ChunkText("This is a good sentence of some length. It is only there to be read once.")]))


def _word_weights(parsed: ParsedChunk, weights: WordWeights) -> dict[str, float]:
    return {stem: weights.weigh(stem) * count**0.5 for stem, count in parsed.stems.items()}


def _describe_document(
    source: DocumentSource,
    facts: DocumentFacts,
    language: str | None,
    parsed_chunks: Sequence[ParsedChunk],
    topics: Topics,
    insights: Sequence[ChunkInsight],
) -> DocumentInsight:
    title = facts.title or source.title or ""
    tags = TagSource(topics.weights, topics.forms, parsed_chunks, language, facts.type, title, source.known_tags)
    return DocumentInsight(
        title=facts.title,
        author=facts.author,
        summary=summarise_document(parsed_chunks, topics.word_weights()) or next((one.summary for one in insights), ""),
        date=facts.date,
        language=language,
        type=facts.type,
        tags=choose_tags(tags),
    )


# Summaries ------------------------------------------------------------------------------------------------------------


_MIN_WORDS, _MAX_WORDS = 5, 45
# If the best sentence is shorter than this, a second one is added.
_SHORT_WORDS = 15
_MAX_CHARACTERS, _MAX_FIRST_WORDS, _MAX_OF_DOCUMENT = 400, 240, 600
_EARLY_PART, _EARLY_CHUNKS = 5, 3
# Sentences about the document itself, such as "This report shows …". They name its subject.
SELF_REFERENCE = re.compile(
    r"\b(this|the present) (paper|article|report|book|document|study|guide|manual|thesis|essay|policy|agreement|note)\b"
    r"|\bwe (present|propose|describe|introduce|show)\b|\bdiese[rs]? (buch|bericht|artikel|dokument|arbeit)\b"
    r"|\bcet (article|ouvrage)\b",
    re.IGNORECASE,
)
SELF_REFERENCE_BONUS = 1.6
_SPACES = re.compile(r"\s+")
# The time and the speaker of a line in a transcript.
_TRANSCRIPT_LINE = re.compile(
    r"^ ?(?:\[\d{1,2}:\d\d(?::\d\d)?\]|\d{1,2}:\d\d:\d\d) (?:[A-Z][\w.-]*(?: [A-Z][\w.-]*)?: )?"
)
_BEFORE_MARK = re.compile(r"\s+(?=[,.;:!?])|[(\[]\s*[)\]]")


def summarise(parsed: ParsedChunk, weights: Mapping[str, float]) -> str:
    """Summarise a chunk with the one or two sentences whose words have the highest weights.

    A chunk without sentences is summarised by its first words.
    """
    good = good_sentences(parsed) or [one for one in parsed.sentences if len(one.words) >= _MIN_WORDS]
    if not good:
        return shorten(plain_text(_first_words(parsed)), _MAX_FIRST_WORDS)
    scores = {one: rate_sentence(one, weights, place / len(good), parsed.language) for place, one in enumerate(good)}
    best, *others = sorted(good, key=lambda one: (-scores[one], one.start))
    chosen = [best]
    if len(best.words) < _SHORT_WORDS and others:
        chosen = sorted([best, others[0]], key=lambda one: one.start)
    return shorten(" ".join(plain_text(parsed.text[one.start : one.end]) for one in chosen))


def summarise_document(parsed_chunks: Sequence[ParsedChunk], weights: Mapping[str, float]) -> str:
    """Summarise a document with two sentences from its beginning (the first fifth), preferably from the abstract.

    Returns an empty string if there is no suitable sentence.
    """
    early = parsed_chunks[: max(len(parsed_chunks) // _EARLY_PART, _EARLY_CHUNKS)]
    early = [one for one in early if has_core_heading(one.chunk)] or early
    pairs = [(parsed, sentence) for parsed in early for sentence in good_sentences(parsed)]
    scores = [
        rate_sentence(sentence, weights, place / len(pairs), parsed.language)
        * (SELF_REFERENCE_BONUS if SELF_REFERENCE.search(_text(parsed, sentence)) else 1)
        for place, (parsed, sentence) in enumerate(pairs)
    ]
    places = {plain_text(_text(*pair)): place for place, pair in reversed(list(enumerate(pairs)))}  # each text once
    best = sorted(places, key=lambda text: -scores[places[text]])[:2]
    return shorten(" ".join(sorted(best, key=lambda text: places[text])), _MAX_OF_DOCUMENT)


def good_sentences(parsed: ParsedChunk) -> list[Sentence]:
    return [one for one in parsed.sentences if one.whole and _MIN_WORDS <= len(one.words) <= _MAX_WORDS]


def _text(parsed: ParsedChunk, sentence: Sentence) -> str:
    return parsed.text[sentence.start : sentence.end]


def rate_sentence(sentence: Sentence, weights: Mapping[str, float], place: float, language: str | None) -> float:
    """Score a sentence: the weight of its words relative to its length, plus a small bonus for an early position."""
    weight = fsum(weights.get(word, 0.0) for word in {fold(word, language) for word in sentence.words})
    return weight / sqrt(len(sentence.words)) * (1.2 - 0.4 * place)


def plain_text(text: str) -> str:
    return _BEFORE_MARK.sub("", _TRANSCRIPT_LINE.sub("", _SPACES.sub(" ", text))).strip()


def shorten(text: str, most: int = _MAX_CHARACTERS) -> str:
    if len(text) <= most:
        return text
    cut = text.rfind(" ", most // 2, most)
    return text[: cut if cut > 0 else most - 1].rstrip(" ,;:") + "…"


def _first_words(parsed: ParsedChunk) -> str:
    parts: Sequence[str] = [parsed.text[part.start : part.end].strip(" |") for part in parsed.segments]
    return ". ".join(part.replace("|", ",") for part in parts if part)[: 4 * _MAX_CHARACTERS]


# Importance -----------------------------------------------------------------------------------------------------------


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


# importance = 0.6 · topic + 0.2 · substance + 0.2 · place
#
# topic      weight of the document's concepts in the chunk, relative to the chunk with the highest weight
# substance  share of words that are in sentences, reduced for chunks with few words
# place      1 under a heading such as "Abstract" or "Conclusion", 0.75 for the first and last chunk, 0.5 elsewhere
#
# Under a heading such as "References" or "Index", the result is divided by three.


def rate_chunks(parsed_chunks: Sequence[ParsedChunk], topics: Sequence[float]) -> list[float]:
    """Return the importance of each chunk, from 0 to 1.

    `topics` says, for each chunk, how important its concepts are in the whole document.
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
