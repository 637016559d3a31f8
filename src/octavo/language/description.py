"""Describes a document offline: its title, author and summary, and each chunk.

Each chunk is parsed once; word weights are computed over the whole document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octavo.language.concepts import NamedConcepts, Topics, WordWeights, name_concepts, score_phrases
from octavo.language.dates import find_date
from octavo.language.document_types import find_type
from octavo.language.importance import rate_chunks
from octavo.language.insights import ChunkInsight, ChunkText, DocumentInsight, DocumentSource
from octavo.language.languages import detect_document_language
from octavo.language.markdown_segments import SegmentKind, blank_markup, split_segments
from octavo.language.parsed_chunks import ParsedChunk, parse_chunk
from octavo.language.summaries import plain_text, shorten, summarise, summarise_document
from octavo.language.tone import find_tone

MADE_BY = "local"
_HEAD, _TAIL = 6000, 2000


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a document and of its chunks, which are in the order of the source."""

    document: DocumentInsight
    chunks: list[ChunkInsight]
    made_by: str = MADE_BY


def describe(source: DocumentSource) -> Description:
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
    return Description(_describe_document(source, language, parsed_chunks, topics, insights), insights)


def prepare() -> None:
    """Load all data that describing and answering need, so that processes forked later need not open any files."""
    describe(DocumentSource([ChunkText("This is a good sentence of some length. It is only there to be read once.")]))


def _word_weights(parsed: ParsedChunk, weights: WordWeights) -> dict[str, float]:
    return {stem: weights.weigh(stem) * count**0.5 for stem, count in parsed.stems.items()}


def _describe_document(
    source: DocumentSource,
    language: str | None,
    parsed_chunks: Sequence[ParsedChunk],
    topics: Topics,
    insights: Sequence[ChunkInsight],
) -> DocumentInsight:
    text = "\n\n".join(parsed.text for parsed in parsed_chunks[:20])[:_HEAD]
    tail = parsed_chunks[-1].text[-_TAIL:] if parsed_chunks else ""
    title = find_title(source)
    return DocumentInsight(
        title=title,
        author=find_author(source),
        summary=summarise_document(parsed_chunks, topics.word_weights()) or next((one.summary for one in insights), ""),
        date=find_date(text, source.date, language),
        language=language,
        type=find_type(
            kind=source.kind,
            title=title,
            head=f"{text}\n{tail}",
            words=sum(parsed.word_count for parsed in parsed_chunks),
        ),
        tags=topics.tags(),
    )


_MAX_CHARACTERS = 200
_LONGEST_LINE = 120
_SENTENCE_ENDS = (".", "\u2026", "\u3002")
# Programs often put the file name or their own name into the title field.
_PLACEHOLDER_TITLE = re.compile(
    r"(untitled|unbenannt|sans titre|document|dokument|slide|page|scan|image|img|dsc|new)?[\s_()-]*\d*"
    r"|.*\.(docx?|pdf|indd|odt|rtf|txt|tex|dvi|ps|pptx?|xlsx?|html?|md|qxd|pages)|untitled.*|(microsoft )?powerpoint .*"
    r"|(the )?(table of )?contents|cover( image)?|inhalt(sverzeichnis)?|sommaire|índice|indice|abstract|.*[:,;]",
    re.IGNORECASE,
)
_TITLE_PREFIX = re.compile(
    r"^(microsoft word|microsoft powerpoint|\[[^\[\]]{1,60}\]|\([^()]{1,60}\))\s*[-\u2013]?\s*", re.IGNORECASE
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_BYLINE = re.compile(
    r"^[ \t]*(?:(?:written |edited )?by|authors?:|von|par|por|di|door|autor(?:in|es)?:|auteurs?:)[ \t]+(\S.{2,150})$",
    re.IGNORECASE | re.MULTILINE,
)
_NAME = re.compile(r"[^\W\d_][\w.'\u2019-]*,?")
_BETWEEN_NAMES = frozenset({"and", "und", "et", "y", "e", "en", "&", "de", "del", "da", "van", "von", "der", "la"})
_MIN_NAMES, _MAX_NAMES = 2, 12
_BYLINE_HEAD = 1500


def find_title(source: DocumentSource) -> str | None:
    """Find the title: in the metadata, else the first heading, else a short first line that is not a sentence."""
    for candidate in _candidates(source):
        text = _TITLE_PREFIX.sub("", plain_text(candidate)).strip(" -\u2013|")
        if _LETTERS.search(text) and not _PLACEHOLDER_TITLE.fullmatch(text):
            return shorten(text, _MAX_CHARACTERS)
    return None


def _candidates(source: DocumentSource) -> Iterator[str]:
    if source.title:
        yield source.title
    first = source.chunks[0] if source.chunks else None
    if first and first.headings:
        yield first.headings[0]
    if first:
        text = blank_markup(first.content)
        parts = list(split_segments(first.content))
        yield from (text[part.start : part.end] for part in parts if part.part is SegmentKind.HEADING)
        lines = [text[part.start : part.end].strip() for part in parts[:1] if len(parts) > 1]
        yield from (line for line in lines if len(line) <= _LONGEST_LINE and not line.endswith(_SENTENCE_ENDS))


def find_author(source: DocumentSource) -> str | None:
    """Find the author: in the metadata, else in a byline near the beginning."""
    if source.author and _LETTERS.search(source.author):
        return shorten(plain_text(source.author), _MAX_CHARACTERS)
    head = blank_markup(source.chunks[0].content[:_BYLINE_HEAD]) if source.chunks else ""
    return next((name.strip(" ,") for name in map(plain_text, _BYLINE.findall(head)) if _is_name(name)), None)


def _is_name(text: str) -> bool:
    """Whether a text looks like names: at least two capitalised words, ignoring particles and conjunctions."""
    words = [word for word in text.split() if word not in _BETWEEN_NAMES]
    if not _MIN_NAMES <= len(words) <= _MAX_NAMES:
        return False
    return all(_NAME.fullmatch(word) and word[0].isupper() for word in words)
