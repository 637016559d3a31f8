"""Makes a document's summary and tags, and the themes, concepts and summary of each chunk, without a model.

The title and other facts are passed in. Each chunk is parsed once. Word weights are computed over the whole document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from octavo.language.concepts import NamedConcepts, Topics, WordWeights, name_concepts, score_phrases
from octavo.language.importance import rate_chunks
from octavo.language.insights import ChunkInsight, ChunkText, DocumentFacts, DocumentInsight, DocumentSource
from octavo.language.languages import detect_document_language
from octavo.language.parsed_chunks import ParsedChunk, parse_chunk
from octavo.language.summaries import summarise, summarise_document
from octavo.language.tags import TagSource, choose_tags
from octavo.language.tone import find_tone

MADE_BY = "local"


@dataclass(frozen=True, slots=True)
class Description:
    """The title, summary and tags of a document, and the summaries, themes and concepts of its chunks in document
    order.
    """

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
