"""Markdown files: the text stays unchanged, only its structure is read. Transcripts are written as paragraphs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from octavo.core.errors import Empty
from octavo.core.languages import count_words
from octavo.extract.decode import decode
from octavo.extract.extracted import Block, BlockKind, Extracted, Metadata, SourceType
from octavo.extract.formats import transcripts
from octavo.extract.markdown import FrontMatter, outline_of, read_blocks, read_front_matter
from octavo.extract.registry import Hints, Processor
from octavo.extract.transcript import linked_urls, read_timestamps


def extract(path: Path, _hints: Hints) -> Extracted:
    markdown = decode(path.read_bytes())
    snippets = read_timestamps(markdown) if linked_urls(markdown) else None
    if snippets is not None:
        return transcripts.from_snippets(snippets, SourceType.MARKDOWN, Metadata())
    return from_text(markdown)


def from_text(markdown: str) -> Extracted:
    """Read the structure of a Markdown text. Front matter stays in the text, because the text must not change."""
    if not markdown.strip():
        raise Empty("The file contains no text.")
    front = read_front_matter(markdown)
    blocks = tuple(read_blocks(markdown, front.end if front else 0))
    outline = outline_of(blocks)
    metadata = front.metadata if front else Metadata()
    if not metadata.title and outline:
        metadata = replace(metadata, title=min(outline, key=lambda entry: entry.level).title)
    return Extracted(
        source_type=SourceType.MARKDOWN,
        markdown=markdown,
        word_count=count_words(markdown),
        blocks=(*_front_block(markdown, front), *blocks),
        outline=outline,
        metadata=metadata,
    )


def _front_block(markdown: str, front: FrontMatter | None) -> tuple[Block, ...]:
    if not front:
        return ()
    content = markdown[: front.end].rstrip()
    return (Block(BlockKind.FRONT_MATTER, 0, len(content), content),)


PROCESSOR = Processor((SourceType.MARKDOWN,), extract)
