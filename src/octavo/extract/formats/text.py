"""Reads plain text, source code, logs, Markdown and pasted text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from octavo.core.errors import Empty
from octavo.core.languages import count_words
from octavo.extract.decode import decode
from octavo.extract.extracted import Block, BlockKind, Extracted, Metadata, Page, SourceType
from octavo.extract.formats import transcripts, web
from octavo.extract.markdown import FrontMatter, outline_of, read_blocks, read_front_matter
from octavo.extract.markdown.escape import fence
from octavo.extract.plain_text import ConvertedText, convert
from octavo.extract.registry import Hints, Processor
from octavo.extract.text_kinds import text_kind
from octavo.extract.transcript import linked_urls, read_timestamps

_HEAD_CHARACTERS = 64 * 1024
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
    ".kt": "kotlin",
    ".lua": "lua",
    ".js": "javascript",
    ".log": "text",
    ".php": "php",
    ".pl": "perl",
    ".ps1": "powershell",
    ".py": "python",
    ".r": "r",
    ".rb": "ruby",
    ".rs": "rust",
    ".sh": "sh",
    ".sql": "sql",
    ".swift": "swift",
    ".toml": "toml",
    ".ts": "typescript",
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


# Markdown -----------------------------------------------------------------------------------------------------------


def extract_markdown(path: Path, _hints: Hints) -> Extracted:
    markdown = decode(path.read_bytes())
    snippets = read_timestamps(markdown) if linked_urls(markdown) else None
    if snippets is not None:
        return transcripts.from_snippets(snippets, SourceType.MARKDOWN, Metadata())
    return from_markdown(markdown)


def from_markdown(markdown: str) -> Extracted:
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


# Pasted text --------------------------------------------------------------------------------------------------------


def extract_pasted(path: Path, hints: Hints) -> Extracted:
    return replace(from_pasted(decode(path.read_bytes()), hints.url), source_type=SourceType.PASTE)


def from_pasted(pasted: str, url: str = "") -> Extracted:
    """Read pasted text as a transcript if it has timestamps, as a web page if it is HTML, and otherwise as Markdown."""
    if not pasted.strip():
        raise Empty("The pasted content contains no text.")
    snippets = read_timestamps(pasted)
    if snippets is not None:
        return transcripts.from_snippets(snippets, SourceType.PASTE, Metadata())
    kind = text_kind(pasted[:_HEAD_CHARACTERS], ".txt", "text/plain")
    if kind is SourceType.HTML:
        return web.from_html(pasted, url)
    return from_markdown(pasted) if kind is SourceType.MARKDOWN else from_text(pasted)


PROCESSOR = Processor((SourceType.TEXT,), extract)
MARKDOWN = Processor((SourceType.MARKDOWN,), extract_markdown)
PASTE = Processor((SourceType.PASTE,), extract_pasted)
