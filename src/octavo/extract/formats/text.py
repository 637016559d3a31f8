"""Plain text as structured Markdown; source code and data files become a fenced code block."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from octavo.core.errors import Empty
from octavo.core.languages import count_words
from octavo.extract.decode import decode
from octavo.extract.extracted import Block, Extracted, Metadata, Page, SourceType
from octavo.extract.markdown import outline_of, read_blocks
from octavo.extract.markdown.escape import fence
from octavo.extract.plain_text import ConvertedText, convert
from octavo.extract.registry import Hints, Processor

# The name only decides how a text is shown, never whether the file is text.
_LANGUAGES = {
    ".c": "c",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".css": "css",
    ".go": "go",
    ".h": "c",
    ".ini": "ini",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".jsonl": "json",
    ".log": "text",
    ".php": "php",
    ".py": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".sh": "sh",
    ".sql": "sql",
    ".toml": "toml",
    ".ts": "typescript",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
}


def extract(path: Path, hints: Hints) -> Extracted:
    language = _LANGUAGES.get(PurePosixPath(hints.filename.lower()).suffix)
    return from_text(decode(path.read_bytes()), language)


def from_text(text: str, language: str | None = None) -> Extracted:
    """Convert a text to Markdown. If `language` is given, the whole text is code in that language."""
    if not text.strip():
        raise Empty("The file contains no text.")
    converted = _as_code(text, language) if language else convert(text)
    pages = tuple(Page(number, str(number), *range_) for number, range_ in enumerate(converted.pages, 1))
    blocks = tuple(_on_pages(read_blocks(converted.markdown), pages))
    outline = outline_of(blocks)
    return Extracted(
        source_type=SourceType.TEXT,
        markdown=converted.markdown,
        word_count=count_words(converted.markdown),
        pages=pages,
        blocks=blocks,
        outline=outline,
        metadata=Metadata(title=outline[0].title if outline and outline[0].level == 1 else None),
    )


def _as_code(text: str, language: str) -> ConvertedText:
    return ConvertedText(fence(text.replace("\f", "").strip("\n").split("\n"), language), [])


def _on_pages(blocks: Iterable[Block], pages: Sequence[Page]) -> Iterator[Block]:
    filled = [page for page in pages if page.end > page.start]
    starts = [page.start for page in filled]
    for block in blocks:
        yield replace(block, page=filled[bisect_right(starts, block.start) - 1].number) if filled else block


PROCESSOR = Processor((SourceType.TEXT,), extract)
