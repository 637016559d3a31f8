"""Model task: find the title, summary, type and tags of a picture."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.ai.calls import InstructionText, Part, Picture, QuotedText
from octavo.ai.tasks.classify_document import ANSWER_TOKENS, classify_offline
from octavo.ai.tasks.task import Task
from octavo.language.insights import ChunkText, DocumentInsight, DocumentSource

MAX_CHARACTERS = 8000


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


def build_parts(image: ImageToClassify) -> list[Part]:
    parts: list[Part] = [
        InstructionText("Catalogue this picture."),
        QuotedText("file-name", image.filename),
        image.picture,
    ]
    if image.text:
        parts.append(QuotedText("recognised-text", image.text[:MAX_CHARACTERS]))
    return parts


CLASSIFY_IMAGE: Task[ImageToClassify, DocumentInsight] = Task(
    name="classify_image",
    output=DocumentInsight,
    build_parts=build_parts,
    estimate_tokens=lambda _image: ANSWER_TOKENS,
    output_tokens=5 * ANSWER_TOKENS,
    check=lambda _image, answer: answer,
    offline=lambda image: classify_offline(image.as_source),
)
