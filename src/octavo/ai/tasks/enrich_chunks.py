"""Model task: find themes, concepts, tone, importance and a summary for each of up to 50 chunks in one call."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.ai.calls import InstructionText, Part, QuotedText
from octavo.ai.tasks.task import Task, UnusableAnswer
from octavo.language.insights import ChunkInsight, ChunkText, DocumentSource, Output

MAX_CHUNKS = 50
TOKENS_PER_CHUNK = 300


class NumberedInsight(ChunkInsight):
    passage: int


class ChunkInsights(Output):
    """The themes, concepts, tone, importance and summary of each chunk, in order.

    `passage` is the index of the chunk.
    """

    chunks: list[NumberedInsight]


def build_parts(chunks: Sequence[ChunkText]) -> list[Part]:
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
    build_parts=build_parts,
    estimate_tokens=lambda chunks: TOKENS_PER_CHUNK * len(chunks),
    output_tokens=2 * TOKENS_PER_CHUNK * MAX_CHUNKS,
    check=check_order,
    offline=describe_offline,
)
