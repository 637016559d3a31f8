"""Reads the article of a web page, without menus and advertisements."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Any

from octavo.core.errors import Empty, NotSupported, Paywalled
from octavo.core.languages import count_words
from octavo.extract.decode import clean, decode
from octavo.extract.extracted import Extracted, Metadata, SourceType
from octavo.extract.markdown import outline_of, read_blocks
from octavo.extract.registry import Hints, Processor

# A paywalled page shows a teaser, rarely longer than this.
TEASER_WORDS = 250
# Longer pages use the fast mode, because comparing several extractors takes too long.
CAREFUL_CHARACTERS = 1 << 20
_HEAD_BYTES = 4096
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_META_CHARSET = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_LANGUAGE = re.compile(r"<html\b[^>]{0,2000}?\blang\s*=\s*[\"']?([A-Za-z]{2,3})\b", re.IGNORECASE)
_HIDDEN_TEXT = re.compile(
    r"[\"']?isAccessibleForFree[\"']?\s*[:=]\s*[\"']?(?:https?://schema\.org/)?false"
    r"|<meta[^>]{0,200}article:content_tier[^>]{0,100}(?:locked|metered)",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_NOTHING = (
    "No readable article found on this page. It may be built by scripts in the browser: "
    "copy the text there and paste it."
)


def extract(path: Path, hints: Hints) -> Extracted:
    return from_html(to_text(path.read_bytes(), hints.content_type), hints.url, hints.source_type)


def from_html(html: str, url: str = "", source_type: SourceType = SourceType.HTML) -> Extracted:
    markdown, metadata = _read_article(html, url)
    words = count_words(markdown)
    if words < TEASER_WORDS and _HIDDEN_TEXT.search(html):
        raise Paywalled
    if not words:
        raise Empty(_NOTHING)
    blocks = tuple(read_blocks(markdown))
    return Extracted(
        source_type=source_type,
        markdown=markdown,
        word_count=words,
        blocks=blocks,
        outline=outline_of(blocks),
        metadata=metadata,
    )


def to_text(data: bytes, content_type: str = "") -> str:
    """Decode a web page.

    The charset comes from the HTTP header, otherwise from the page, otherwise it is detected from the bytes.
    """
    in_header = _CHARSET.search(content_type)
    in_page = _META_CHARSET.search(data[:_HEAD_BYTES])
    if not data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        for name in (in_header and in_header[1], in_page and in_page[1].decode("ascii", "replace")):
            if name and (text := _decoded(data, name)):
                return clean(text)
    return decode(data)


def _decoded(data: bytes, name: str) -> str | None:
    try:
        codec = codecs.lookup(name).name
        # "Latin-1" on the web means Windows-1252.
        return data.decode("cp1252" if codec in {"iso8859-1", "ascii"} else codec, "strict")
    except (LookupError, ValueError):
        return None


def _read_article(html: str, url: str) -> tuple[str, Metadata]:
    # Imported late: only the sandbox needs it, and its preloaded parent has already imported it.
    import trafilatura

    try:
        tree = trafilatura.load_html(html)
        if tree is None:
            return "", Metadata()
        about: Any = trafilatura.extract_metadata(tree, default_url=url or None)
        article = trafilatura.extract(
            tree,
            url=url or None,
            output_format="markdown",
            include_comments=False,
            include_tables=True,
            include_links=True,
            include_formatting=True,
            fast=len(html) > CAREFUL_CHARACTERS,
        )
    except RecursionError:
        raise NotSupported("The page is nested too deeply.") from None
    return clean(article or "").strip(), _metadata(about, html)


def _metadata(about: Any, html: str) -> Metadata:  # noqa: ANN401 - an untyped library
    language = _LANGUAGE.search(html[:_HEAD_BYTES])
    extra = {"site": about.sitename, "description": about.description}
    return Metadata(
        title=_line(about.title),
        author=_line(about.author),
        date=about.date if about.date and _DATE.fullmatch(about.date) else None,
        language=language[1].lower() if language else None,
        extra={name: text for name, value in extra.items() if (text := _line(value))},
    )


def _line(value: str | None) -> str | None:
    return " ".join(clean(value).split())[:500] or None if value else None


PROCESSOR = Processor((SourceType.HTML, SourceType.WEB), extract)
