"""The same for a picture, from what it shows."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.ai.calls import Part, Picture, Quoted, Words
from octavo.ai.tasks.classify_document import ANSWER_TOKENS, classify_here
from octavo.ai.tasks.task import Task
from octavo.language.insights import DocumentInsight, Passage, Source

MOST_CHARACTERS = 8000


@dataclass(frozen=True, slots=True)
class ImageToClassify:
    """`text` is what was recognised in it."""

    picture: Picture
    filename: str
    text: str = ""

    @property
    def as_source(self) -> Source:
        """What is left of it for whoever cannot see."""
        return Source([Passage(self.text)] if self.text else [], kind="image", filename=self.filename)


def show(image: ImageToClassify) -> list[Part]:
    parts: list[Part] = [Words("Catalogue this picture."), Quoted("file-name", image.filename), image.picture]
    if image.text:
        parts.append(Quoted("recognised-text", image.text[:MOST_CHARACTERS]))
    return parts


CLASSIFY_IMAGE: Task[ImageToClassify, DocumentInsight] = Task(
    name="classify_image",
    output=DocumentInsight,
    show=show,
    expect=lambda _image: ANSWER_TOKENS,
    output_tokens=5 * ANSWER_TOKENS,
    check=lambda _image, answer: answer,
    local=lambda image: classify_here(image.as_source),
)
