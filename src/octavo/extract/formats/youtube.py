"""Converts a fetched video transcript to text with moments."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from octavo.core.errors import Empty
from octavo.core.languages import count_words
from octavo.extract.decode import clean
from octavo.extract.extracted import Extracted, Metadata, SourceType
from octavo.extract.markdown import read_blocks
from octavo.extract.registry import Hints, Processor
from octavo.extract.spoken_sentences import add_sentences
from octavo.extract.transcript import Snippet, clean_snippets, read_raw_transcript, write_transcript


def extract(path: Path, _hints: Hints) -> Extracted:
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


PROCESSOR = Processor((SourceType.YOUTUBE,), extract)
