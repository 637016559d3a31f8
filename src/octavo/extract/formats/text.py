"""Reads plain text, source code, logs, Markdown, pasted text, video transcripts and captions (VTT, SRT).

Also reads files in formats that extensions add. The entry point of an extension is named after a file suffix, such as
`.ics`. The entry point is a function that takes the path of a file and returns Markdown. The function runs in the
sandbox.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from octavo.core.errors import Empty, ExtensionFailed, NotSupported, OctavoError
from octavo.core.extensions import ExtensionKind, load_extension
from octavo.core.texts import count_words
from octavo.extract.decode import clean, decode
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Block, BlockKind, Extracted, Metadata, Page, SourceType
from octavo.extract.formats import web
from octavo.extract.markdown import FrontMatter, outline_of, read_blocks, read_front_matter
from octavo.extract.markdown.escape import fence
from octavo.extract.plain_text import ConvertedText, convert
from octavo.extract.text_kinds import text_kind
from octavo.extract.transcript import (
    Snippet,
    add_sentences,
    clean_snippets,
    linked_urls,
    read_raw_transcript,
    read_timestamps,
    write_transcript,
)

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_CUE = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?!\d)")
_VOICE = re.compile(r"<v(?:\.[^\s>]{0,100})?\s+([^>]{1,200})>", re.IGNORECASE)
# Formatting in cues: tags, and positions such as "{\an8}".
_FORMATTING = re.compile(r"</?[a-z0-9][^<>]{0,200}>|\{\\[^{}]{0,100}\}", re.IGNORECASE)
_LANGUAGE = re.compile(r"^Language:[ \t]*([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)[ \t]*$", re.MULTILINE)
_TRANSCRIPT_HEAD = 1000


def extract_transcript(path: Path, _hints: Hints) -> Extracted:
    raw = read_raw_transcript(path.read_bytes())
    extra = {"video": raw.video_id, "transcript": raw.kind}
    about = Metadata(raw.title or f"Video {raw.video_id}", raw.author, language=raw.language, extra=extra)
    snippets = [Snippet(clean(one.text), max(0.0, one.start), one.duration) for one in raw.snippets]
    return from_snippets(snippets, SourceType.YOUTUBE, about)


def from_snippets(snippets: Iterable[Snippet], source_type: SourceType, metadata: Metadata) -> Extracted:
    text = write_transcript(add_sentences(clean_snippets(snippets)))
    if not text.markdown:
        raise Empty("The transcript contains no text.")
    return Extracted(
        source_type=source_type,
        markdown=text.markdown,
        word_count=count_words(text.markdown),
        blocks=tuple(read_blocks(text.markdown)),
        metadata=metadata,
        moments=text.moments,
    )


# Caption files ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cue:
    start: float
    end: float
    lines: list[str] = field(default_factory=list[str])


def extract_captions(path: Path, hints: Hints) -> Extracted:
    text = decode(path.read_bytes())
    language = _LANGUAGE.search(text[:_TRANSCRIPT_HEAD])
    about = Metadata(language=language[1] if language else None)
    return from_snippets(_snippets(_without_repeats(_cues(text))), hints.source_type, about)


def _cues(text: str) -> Iterator[_Cue]:
    """Yield the cues (captions with a start and end time).

    A cue ends at an empty line. Lines outside cues, such as numbers, styles and comments, are skipped.
    """
    cue: _Cue | None = None
    for line in text.split("\n"):
        timing = _CUE.match(line)
        if cue is not None and (timing or not line.strip()):
            yield cue
            cue = None
        if timing:
            cue = _Cue(_seconds(timing, 1), _seconds(timing, 5))
        elif cue is not None:
            cue.lines.append(line.strip())
    if cue is not None:
        yield cue


def _seconds(timing: re.Match[str], first: int) -> float:
    hours, minutes, seconds, fraction = timing.group(first, first + 1, first + 2, first + 3)
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction}")


def _without_repeats(cues: Iterable[_Cue]) -> Iterator[_Cue]:
    """Remove the lines at the start of a caption that repeat the end of the previous caption.

    Captions that scroll up contain such lines.
    """
    last, end = "", 0.0
    for cue in cues:
        shown = [_FORMATTING.sub("", line).strip() for line in cue.lines]
        repeated = cue.start <= end and bool(last) and last in shown
        first = shown.index(last) + 1 if repeated else 0
        cue.lines = cue.lines[first:]
        last, end = next((line for line in reversed(shown) if line), last), cue.end
        if any(cue.lines):
            yield cue


def _snippets(cues: Iterable[_Cue]) -> Iterator[Snippet]:
    """Convert captions to snippets of text with times. The speaker's name is added where the speaker changes."""
    speaker = ""
    for cue in cues:
        text = " ".join(cue.lines)
        voice = _VOICE.search(text)
        named = html.unescape(voice[1]).strip() if voice else ""
        is_new = bool(named) and named != speaker
        speaker = named or speaker
        words = html.unescape(_FORMATTING.sub("", text))
        yield Snippet(f"{named}: {words}" if is_new else words, cue.start, max(0.0, cue.end - cue.start), is_new)


TRANSCRIPT = Processor((SourceType.YOUTUBE,), extract_transcript)
CAPTIONS = Processor((SourceType.VTT, SourceType.SRT), extract_captions)


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
    """Convert a text to Markdown. If `language` is given, the whole text is written as code in that language."""
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
        return from_snippets(snippets, SourceType.MARKDOWN, Metadata())
    return from_markdown(markdown)


def from_markdown(markdown: str) -> Extracted:
    """Read the structure of a Markdown text. The text is not changed: even the front matter stays in it."""
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
        return from_snippets(snippets, SourceType.PASTE, Metadata())
    kind = text_kind(pasted[:_HEAD_CHARACTERS], ".txt", "text/plain")
    if kind is SourceType.HTML:
        return web.from_html(pasted, url)
    return from_markdown(pasted) if kind is SourceType.MARKDOWN else from_text(pasted)


PROCESSOR = Processor((SourceType.TEXT,), extract)
MARKDOWN = Processor((SourceType.MARKDOWN,), extract_markdown)
PASTE = Processor((SourceType.PASTE,), extract_pasted)


def extract_by_extension(path: Path, hints: Hints) -> Extracted:
    suffix = PurePosixPath(hints.filename.lower()).suffix
    read = load_extension(ExtensionKind.FORMAT, suffix)
    if read is None:
        raise NotSupported(f"The extension that reads {suffix or 'these'} files is not installed.")
    try:
        markdown = read(path)
    except OctavoError:
        raise
    except Exception as error:
        raise ExtensionFailed(f"Reading the {suffix} file failed with {type(error).__name__}.") from error
    if not isinstance(markdown, str):
        raise ExtensionFailed(f"The extension for {suffix} files did not return text.")
    return replace(from_markdown(markdown), source_type=SourceType.EXTENSION)


EXTENSION = Processor((SourceType.EXTENSION,), extract_by_extension)
