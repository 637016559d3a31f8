"""Everything that `local` tells of a document, in one go: passages are read once, and all figures are of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from octavo.language.concepts import Named, Topics, Weights, name_concepts, score
from octavo.language.dates import find_date
from octavo.language.document_types import find_type
from octavo.language.importance import rate_passages
from octavo.language.insights import ChunkInsight, DocumentInsight, Passage, Source
from octavo.language.languages import detect_most
from octavo.language.parsed_chunks import Reading, read
from octavo.language.summaries import summarise, summarise_document
from octavo.language.titles import find_author, find_title
from octavo.language.tone import judge

MADE_BY = "local"
_HEAD, _TAIL = 6000, 2000


@dataclass(frozen=True, slots=True)
class Description:
    """`chunks` stand in the order of the passages."""

    document: DocumentInsight
    chunks: list[ChunkInsight]
    made_by: str = MADE_BY


def describe(source: Source) -> Description:
    language = detect_most([passage.content for passage in source.passages], source.language)
    readings = [read(passage, language) for passage in source.passages]
    weights = Weights([reading.phrases for reading in readings], language)
    named: list[Named] = [name_concepts(reading.phrases, score(reading.phrases, weights)) for reading in readings]
    topics = Topics(named)
    summaries = [summarise(reading, _word_weights(reading, weights)) for reading in readings]
    importances = rate_passages(readings, [topics.weigh(concepts) for concepts in named])
    chunks = [
        ChunkInsight(
            themes=topics.themes(reading, concepts),
            concepts=[concept for _, concept in concepts],
            tone=judge(reading),
            importance=importance,
            summary=summary,
        )
        for reading, concepts, summary, importance in zip(readings, named, summaries, importances, strict=True)
    ]
    return Description(_describe_document(source, language, readings, topics, chunks), chunks)


def prepare() -> None:
    """Loads all that describing and answering need, so that a child that is forked afterwards needs no file."""
    describe(Source([Passage("This is a good sentence of some length. It is only there to be read once.")]))


def _word_weights(reading: Reading, weights: Weights) -> dict[str, float]:
    return {stem: weights.weigh(stem) * count**0.5 for stem, count in reading.stems.items()}


def _describe_document(
    source: Source, language: str | None, readings: Sequence[Reading], topics: Topics, chunks: Sequence[ChunkInsight]
) -> DocumentInsight:
    text = "\n\n".join(reading.text for reading in readings[:20])[:_HEAD]
    tail = readings[-1].text[-_TAIL:] if readings else ""
    title = find_title(source)
    return DocumentInsight(
        title=title,
        author=find_author(source),
        summary=summarise_document(readings, topics.word_weights()) or next((one.summary for one in chunks), ""),
        date=find_date(text, source.date, language),
        language=language,
        type=find_type(
            kind=source.kind,
            title=title,
            head=f"{text}\n{tail}",
            words=sum(reading.word_count for reading in readings),
        ),
        tags=topics.tags(),
    )
