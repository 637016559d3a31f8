"""What is sent to a model: the same question has the same name, and text of documents stays between its marks."""

from __future__ import annotations

import re
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.ai.calls import FileReference, Picture, QuotedText
from octavo.ai.tasks import (
    ANSWER_SEGMENT,
    CLASSIFY_DOCUMENT,
    CLASSIFY_IMAGE,
    ENRICH_CHUNKS,
    TASKS,
    ImageToClassify,
    Tasks,
)
from octavo.ai.tasks.answer_segment import SegmentToAnswer
from octavo.ai.tasks.task import load_prompt
from octavo.language.insights import ChunkText, DocumentSource

OWNER = UUID(int=1)
DOCUMENT = DocumentSource([ChunkText("Text.", ("Head",))], filename="a.pdf")


@given(st.text())
def test_no_text_can_end_the_marks_around_it(text: str) -> None:
    fenced = QuotedText("document", text).fenced
    opening = re.match(r"<(document-[0-9a-f]{16})>\n", fenced)
    assert opening
    assert fenced == f"<{opening[1]}>\n{text}\n</{opening[1]}>"
    assert opening[1] not in text


def test_a_question_is_the_same_only_if_all_of_it_is() -> None:
    asked = CLASSIFY_DOCUMENT.request(DOCUMENT)
    digests = [
        asked.digest(OWNER, 0),
        asked.digest(UUID(int=2), 0),
        asked.digest(OWNER, 1),
        replace(asked, version="2.1").digest(OWNER, 0),
        replace(asked, purpose="other").digest(OWNER, 0),
        replace(asked, schema={"type": "string"}).digest(OWNER, 0),
        CLASSIFY_DOCUMENT.request(replace(DOCUMENT, filename="b.pdf")).digest(OWNER, 0),
        CLASSIFY_IMAGE.request(ImageToClassify(Picture(b"1", "image/png"), "a")).digest(OWNER, 0),
        CLASSIFY_IMAGE.request(ImageToClassify(Picture(b"2", "image/png"), "a")).digest(OWNER, 0),
    ]
    assert len(set(digests)) == len(digests)
    assert CLASSIFY_DOCUMENT.request(DOCUMENT).digest(OWNER, 0) == digests[0]


def test_tokens_are_guessed_rather_too_high() -> None:
    passages = [ChunkText("four " * 300)] * 50
    request = ENRICH_CHUNKS.request(passages)
    assert 50 * 300 * 1.3 < request.input_tokens < 50 * 300 * 3
    assert request.expected_tokens == 15_000 < request.output_tokens == 30_000
    assert ENRICH_CHUNKS.request(passages[:1]).output_tokens == 1600
    assert CLASSIFY_IMAGE.request(ImageToClassify(Picture(b"", "image/png"), "a")).input_tokens > 2500


def test_a_page_of_a_pdf_is_guessed_as_its_provider_counts_it() -> None:
    """Gemini bills 258 tokens for one; ten times as much would pause analyses that there is money for."""

    async def read() -> bytes:
        return b""

    segment = SegmentToAnswer("What?", "", [(1, "")], file=FileReference("00", "application/pdf", 175, read))
    request = ANSWER_SEGMENT.request(segment)
    assert 175 * 258 < request.tokens_for("gemini") < 3 * 175 * 258
    assert request.tokens_for("anthropic") == request.input_tokens > 175 * 2500


@pytest.mark.parametrize("name", TASKS.names)
def test_every_task_has_a_prompt_that_says_what_documents_are(name: str) -> None:
    prompt = load_prompt(name)
    assert re.fullmatch(r"\d+\.\d+", prompt.version)
    assert prompt.text.endswith("If the document does not state something, treat it as unknown.")


def test_two_tasks_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        Tasks(CLASSIFY_DOCUMENT, CLASSIFY_DOCUMENT)


def test_a_long_document_is_shown_by_its_beginning_and_its_headings() -> None:
    source = DocumentSource([ChunkText(f"{number} " + "word " * 300, (f"Part {number}",)) for number in range(200)])
    request = CLASSIFY_DOCUMENT.request(source)
    shown = [part.text for part in request.parts if isinstance(part, QuotedText)]
    assert sum(map(len, shown)) < 30_000
    assert "Part 99" in shown[0]
