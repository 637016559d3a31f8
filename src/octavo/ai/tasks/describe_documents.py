"""Model tasks that describe documents, pictures and chunks.

The description of a document or picture contains its title, summary, type and tags, and the author, date and language
if they are known. The description of a chunk contains its themes, concepts, tone, importance and summary. One call
describes up to 50 chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from octavo.ai.calls import InstructionText, Part, Picture, QuotedText
from octavo.ai.tasks.task import Task, UnusableAnswer
from octavo.language.insights import ChunkInsight, ChunkText, DocumentInsight, DocumentSource, Output

# The beginning shows the subject and type of a document; the headings cover the rest.
MAX_CHARACTERS = 24_000
MAX_HEADINGS = 100
MAX_PICTURE_CHARACTERS = 8000
ANSWER_TOKENS = 400
MAX_CHUNKS = 50
TOKENS_PER_CHUNK = 300


def build_parts(source: DocumentSource) -> list[Part]:
    parts: list[Part] = [InstructionText(f"Catalogue this document. Source type: {source.kind}.")]
    known = {"file name": source.filename, "title": source.title, "author": source.author, "date": source.date}
    metadata = "\n".join(f"{name}: {value}" for name, value in known.items() if value)
    if metadata:
        parts.append(QuotedText("file-metadata", metadata))
    headings = list(dict.fromkeys(heading for chunk in source.chunks for heading in chunk.headings))
    if headings:
        parts.append(QuotedText("headings", "\n".join(headings[:MAX_HEADINGS])))
    text = "\n\n".join(chunk.content for chunk in source.chunks)
    parts.append(QuotedText("document", text[:MAX_CHARACTERS]))
    return parts


def classify_offline(source: DocumentSource) -> DocumentInsight:
    from octavo.facts.sheet import describe_chunks
    from octavo.language import describe

    return describe(source, describe_chunks(source)).document


CLASSIFY_DOCUMENT: Task[DocumentSource, DocumentInsight] = Task(
    name="classify_document",
    output=DocumentInsight,
    build_parts=build_parts,
    estimate_tokens=lambda _source: ANSWER_TOKENS,
    output_tokens=5 * ANSWER_TOKENS,
    check=lambda _source, answer: answer,
    offline=classify_offline,
)


@dataclass(frozen=True, slots=True)
class ImageToClassify:
    """A picture. `text` is the text that was recognised in it."""

    picture: Picture
    filename: str
    text: str = ""

    @property
    def as_source(self) -> DocumentSource:
        """The text that was recognised in the picture, for the `local` provider, which cannot read pictures."""
        return DocumentSource([ChunkText(self.text)] if self.text else [], kind="image", filename=self.filename)


def build_picture_parts(image: ImageToClassify) -> list[Part]:
    parts: list[Part] = [
        InstructionText("Catalogue this picture."),
        QuotedText("file-name", image.filename),
        image.picture,
    ]
    if image.text:
        parts.append(QuotedText("recognised-text", image.text[:MAX_PICTURE_CHARACTERS]))
    return parts


CLASSIFY_IMAGE: Task[ImageToClassify, DocumentInsight] = Task(
    name="classify_image",
    output=DocumentInsight,
    build_parts=build_picture_parts,
    estimate_tokens=lambda _image: ANSWER_TOKENS,
    output_tokens=5 * ANSWER_TOKENS,
    check=lambda _image, answer: answer,
    offline=lambda image: classify_offline(image.as_source),
)


# Chunks -------------------------------------------------------------------------------------------------------------


class NumberedInsight(ChunkInsight):
    passage: int


class ChunkInsights(Output):
    """The themes, concepts, tone, importance and summary of each chunk, in order.

    `passage` is the index of the chunk.
    """

    chunks: list[NumberedInsight]


def build_chunk_parts(chunks: Sequence[ChunkText]) -> list[Part]:
    parts: list[Part] = [InstructionText(f"Describe these {len(chunks)} passages, numbered from 0.")]
    for number, chunk in enumerate(chunks):
        head = f"{' > '.join(chunk.headings)}\n\n" if chunk.headings else ""
        parts.append(QuotedText(f"passage-{number}", head + chunk.content))
    return parts


def check_order(chunks: Sequence[ChunkText], answer: ChunkInsights) -> ChunkInsights:
    insights = sorted(answer.chunks, key=lambda one: one.passage)
    if [one.passage for one in insights] != list(range(len(chunks))):
        raise UnusableAnswer(f"there must be one entry for each passage from 0 to {len(chunks) - 1}")
    return ChunkInsights(chunks=insights)


def describe_offline(chunks: Sequence[ChunkText]) -> ChunkInsights:
    from octavo.language import describe

    insights = enumerate(describe(DocumentSource(chunks)).chunks)
    return ChunkInsights(chunks=[NumberedInsight(passage=number, **dict(one)) for number, one in insights])


ENRICH_CHUNKS: Task[Sequence[ChunkText], ChunkInsights] = Task(
    name="enrich_chunks",
    output=ChunkInsights,
    build_parts=build_chunk_parts,
    estimate_tokens=lambda chunks: TOKENS_PER_CHUNK * len(chunks),
    output_tokens=2 * TOKENS_PER_CHUNK * MAX_CHUNKS,
    check=check_order,
    offline=describe_offline,
)
