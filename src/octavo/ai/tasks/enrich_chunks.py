"""Themes, concepts, tone, importance and a summary for each of some passages: up to 50 in one call."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.ai.calls import Part, Quoted, Words
from octavo.ai.tasks.task import Task, Unusable
from octavo.language.insights import ChunkInsight, Output, Passage, Source

MOST_PASSAGES = 50
TOKENS_A_PASSAGE = 300


class PassageInsight(ChunkInsight):
    passage: int


class ChunkInsights(Output):
    """One for each passage, in their order; `passage` is the place of it, from 0."""

    chunks: list[PassageInsight]


def show(passages: Sequence[Passage]) -> list[Part]:
    parts: list[Part] = [Words(f"Describe these {len(passages)} passages, numbered from 0.")]
    for number, passage in enumerate(passages):
        head = f"{' > '.join(passage.headings)}\n\n" if passage.headings else ""
        parts.append(Quoted(f"passage-{number}", head + passage.content))
    return parts


def in_order(passages: Sequence[Passage], answer: ChunkInsights) -> ChunkInsights:
    chunks = sorted(answer.chunks, key=lambda one: one.passage)
    if [one.passage for one in chunks] != list(range(len(passages))):
        raise Unusable(f"there must be one entry for each passage from 0 to {len(passages) - 1}")
    return ChunkInsights(chunks=chunks)


def describe_here(passages: Sequence[Passage]) -> ChunkInsights:
    from octavo.language import describe

    found = enumerate(describe(Source(passages)).chunks)
    return ChunkInsights(chunks=[PassageInsight(passage=number, **dict(one)) for number, one in found])


ENRICH_CHUNKS: Task[Sequence[Passage], ChunkInsights] = Task(
    name="enrich_chunks",
    output=ChunkInsights,
    show=show,
    expect=lambda passages: TOKENS_A_PASSAGE * len(passages),
    output_tokens=2 * TOKENS_A_PASSAGE * MOST_PASSAGES,
    check=in_order,
    local=describe_here,
)
