"""Tasks: find the title, summary, type and tags of a document from its text, or of a picture.

The text of a document also has its author, date and language.
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.ai.calls import InstructionText, Part, Picture, QuotedText
from octavo.ai.tasks.task import Task
from octavo.language.insights import ChunkText, DocumentInsight, DocumentSource

# The beginning shows the subject and type of a document; the headings cover the rest.
MAX_CHARACTERS = 24_000
MAX_HEADINGS = 100
MAX_PICTURE_CHARACTERS = 8000
ANSWER_TOKENS = 400


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
        """The text that was recognised in the picture, for the provider `local`, which cannot read pictures."""
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
