"""Reads HTML. For a web page, only the article is kept. For an HTML file, the whole body is kept, except some menus."""

from __future__ import annotations

import codecs
import re
from base64 import b64decode
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from octavo.core.errors import Empty, NotFound, NotSupported, Paywalled
from octavo.core.texts import count_words
from octavo.extract.decode import clean, decode
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, SourceType
from octavo.extract.markdown import outline_of, read_blocks
from octavo.extract.markdown.escape import escape_inside
from octavo.extract.markdown.inline import safe_link
from octavo.extract.office.assemble import (
    Figures,
    clean_date,
    clean_language,
    clean_line,
    clean_title,
    is_picture,
    non_empty,
    to_extracted,
)
from octavo.extract.office.html import to_markdown
from octavo.extract.office.xml import (
    HEADING_TAGS,
    Element,
    attribute,
    body_of,
    caption_of,
    is_spacer,
    read_html,
    remove,
    text_of,
)
from octavo.extract.zips import reject_deep_nesting

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
_DATES = ("article:published_time", "dcterms.created", "dcterms.date", "dc.date", "date", "article:modified_time")
_SCRIPT_TAGS = re.compile(r"</?su[bp]>")
# Elements inside a line of text.
_INLINE = frozenset(
    {*("a", "abbr", "b", "br", "cite", "code", "em", "font", "i", "img", "mark", "q", "s", "small", "span"),
     *("strong", "sub", "sup", "time", "u")}
)  # fmt: skip
_EMPTY_LINES = re.compile(r"\n{2,}")
_LINK = re.compile(r"\[([^\[\]]*)\]\((?:<[^<>]*>|[^()\s]*)\)")
_SCRIPT_LINK = re.compile(r"\[([^\[\]]*)\]\(<?(?:javascript|data):[^()<>]*(?:\([^()]*\)[^()<>]*)*>?\)", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W_]+")
_LINK_TARGET = re.compile(r"\[([^\[\]]*)\]\(<?([^()<>\s]*)>?\)")
_BOX_NAMES = re.compile(r"(?:- #{1,6} [^\n]{0,200}(?:\n|$)){2,}")
_MOST_ADDITION = 300
# The share of the text of a page that a form or a hidden element may have, to be left out.
_MOST_ASIDE = 0.15
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_ASIDE = re.compile(
    r"(?<![a-z])(?:cookie|consent|gdpr|newsletter|modal|popup|pop-up|sign-?up)(?![a-z]{4})", re.IGNORECASE
)
# The share of the letters of a paragraph that belong to links, if it is a list of links.
_MOSTLY = 0.6
_MOST_CAPTION = 80
# The share of an article that can be links at its end. A longer list is what the page is about.
_MOST_LINKS = 0.3
_MOST_CONTACT, _LEAST_ITEMS = 12, 3
_DATA = "data:"
_SAMPLE_CHARACTERS = 4096
_NOTHING = (
    "No readable article found on this page. If the page is built by scripts, "
    "copy the text from your browser and paste it."
)


def extract(path: Path, hints: Hints) -> Extracted:
    html = to_text(path.read_bytes(), hints.content_type)
    return (
        from_document(html) if hints.source_type is SourceType.HTML else from_html(html, hints.url, hints.source_type)
    )


def from_document(html: str) -> Extracted:
    """Read an HTML file: its whole body, without scripts and without the menus above the first heading."""
    with reject_deep_nesting():
        root = read_html(html)
        metadata = _document_metadata(root)
        body = body_of(root)
        _remove_menus(body)
        figures = Figures()
        pictures = _Pictures(figures)
        markdown = to_markdown(body, pictures.write)
    return to_extracted(SourceType.HTML, markdown, metadata, figures=figures)


@dataclass(slots=True)
class _Pictures:
    """Writes the images of a page as Markdown.

    Embedded images become figures. Other images stay links, because the file contains only their URLs.
    """

    figures: Figures
    inside: int = 0

    def write(self, element: Element) -> str | None:
        source = _source(element)
        alternative = element.get("alt") or ""
        if _is_inside(source):
            self.inside += 1
            if not is_picture(data_of(source[:_SAMPLE_CHARACTERS], is_cut=True)):
                return ""
            return self.figures.add(f"data:{self.inside}", alternative, caption=caption_of(element))
        link = safe_link(source)
        if not link or is_spacer(element):
            return "" if is_spacer(element) else None
        return f"![{escape_inside(' '.join(alternative.split())[:500])}]({link})" if alternative.strip() else ""


def _source(element: Element) -> str:
    return (element.get("src") or attribute(element, "xlink:href") or element.get("href") or "").strip()


def _is_inside(source: str) -> bool:
    return source[: len(_DATA)].lower() == _DATA


def read_figure(path: Path, member: str) -> bytes:
    """Return the bytes of an image in a `data:` URL.

    `member` identifies the image: `data:3` is the third such image on the page.
    """
    number = member.removeprefix("data:")
    place = int(number) if number.isdecimal() and len(number) < 7 else 0  # noqa: PLR2004 - no page has more
    root = read_html(to_text(path.read_bytes()))
    found = (source for one in root.iter("img", "image") if _is_inside(source := _source(one)))
    source = next(islice(found, place - 1, None), None) if place else None
    if source is None:
        raise NotFound("The page does not contain this image.")
    return data_of(source)


def data_of(source: str, *, is_cut: bool = False) -> bytes:
    """Decode a `data:` URL. Returns empty bytes if it is invalid.

    If `is_cut` is true, `source` is only the beginning of the URL.
    """
    head, comma, content = source.partition(",")
    if not comma:
        return b""
    if not head.lower().rstrip().endswith("base64"):
        return unquote_to_bytes(content)
    letters = "".join(unquote(content).split())
    letters = letters[: len(letters) // 4 * 4] if is_cut else letters
    try:
        return b64decode(letters + "=" * (-len(letters) % 4), validate=False)
    except ValueError:
        return b""


def _remove_menus(body: Element) -> None:
    """Remove hidden elements and the menus above the first heading. Menus that contain a heading are kept."""
    is_above = any(True for _ in body.iter(*HEADING_TAGS))
    for element in list(body.iter()):
        is_above = is_above and element.tag not in HEADING_TAGS
        is_menu = element.tag == "nav" or element.get("role") in {"navigation", "search"}
        if element.get("hidden") is not None or (
            is_menu and is_above and not any(True for _ in element.iter(*HEADING_TAGS))
        ):
            remove(element)


def _document_metadata(root: Element) -> Metadata:
    named = {
        (one.get("name") or one.get("property") or "").lower(): one.get("content") or ""
        for one in reversed(list(root.iter("meta")))
    }
    title = next((text_of(one) for one in root.iter("title")), "")
    dates = (clean_date(named.get(name)) for name in _DATES)
    return Metadata(
        title=clean_title(named.get("og:title") or title),
        author=clean_line(named.get("author") or named.get("dc.creator")),
        date=next(filter(None, dates), None),
        language=clean_language(next((one.get("lang") or "" for one in root.iter("html")), "")[:2]),
        extra=non_empty(
            site=named.get("og:site_name"), description=named.get("description") or named.get("og:description")
        ),
    )


def from_html(html: str, url: str = "", source_type: SourceType = SourceType.WEB) -> Extracted:
    """Read the article of a page, without menus and advertisements.

    Raises `Paywalled` if the page shows only a teaser, and `Empty` if it contains no article.
    """
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

    The charset is read from the HTTP header or, failing that, from the page. If neither names a charset, it is detected
    from the bytes.
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
        # Looking for metadata removes elements from the tree.
        about: Any = trafilatura.extract_metadata(deepcopy(tree), default_url=url or None)
        remove_asides(tree)
        wrap_lines(tree)
        plain_tree = deepcopy(tree)
        is_long = len(html) > CAREFUL_CHARACTERS
        article = trafilatura.extract(
            tree,
            url=url or None,
            output_format="markdown",
            include_comments=False,
            include_tables=True,
            include_links=True,
            include_formatting=True,
            fast=is_long,
        )
        words = trafilatura.extract(plain_tree, include_comments=False, include_tables=True, fast=is_long)
    except RecursionError:
        raise NotSupported("The page is nested too deeply.") from None
    markdown = _SCRIPT_LINK.sub(r"\1", _SCRIPT_TAGS.sub("", clean(article or "")).strip())
    return without_links_at_end(without_additions(markdown, clean(words or "")), url), _metadata(about, html)


def remove_asides(tree: Any) -> None:  # noqa: ANN401 - an untyped library
    """Remove parts of the page that do not belong to the article: hidden elements, dialogs, forms, and boxes about
    cookies and newsletters.

    A part that contains a large share of the page's text is kept, because some pages are a single form or hide the
    article at first.
    """
    most = _MOST_ASIDE * len(text_of(tree))
    for element in list(tree.iter("*")):
        is_small = element.getparent() is not None and _is_aside(element) and len(text_of(element)) <= most
        if is_small and not any(True for _ in element.iter("h1", "article", "main")):
            remove(element)


def _is_aside(element: Any) -> bool:  # noqa: ANN401
    if element.tag == "form":
        return any(True for _ in element.iter("input", "button", "select"))
    is_hidden = element.get("hidden") is not None or _NOT_SHOWN.search(element.get("style") or "")
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    return bool(is_hidden or element.get("role") in {"dialog", "alertdialog"} or _ASIDE.search(names))


def without_links_at_end(markdown: str, url: str) -> str:
    """Remove the links below an article that lead to other pages of the same site, and the heading above these
    links.
    """
    host = _host(url)
    parts = _EMPTY_LINES.split(markdown)
    end = len(parts)
    while end and _is_links(parts[end - 1], host):
        end -= 1
    if end < len(parts):
        while end and _is_caption(parts[end - 1]):
            end -= 1
    kept = "\n\n".join(parts[:end])
    return kept if len(kept) >= (1 - _MOST_LINKS) * len(markdown) else markdown


def _is_links(part: str, host: str) -> bool:
    """Whether a paragraph or list consists of links to the same site, or is a short text with an email address."""
    links: list[tuple[str, str]] = _LINK_TARGET.findall(part)
    if not links or part.startswith(("|", "#", "![")):
        return False
    if all(target.startswith("mailto:") for _, target in links):
        return count_words(_LINK.sub(r"\1", part)) <= _MOST_CONTACT
    if not all((_host(target) or host).endswith(_site(host)) for _, target in links):
        return False
    items = part.split("\n- ")
    is_list = part.startswith("- ") and len(items) >= _LEAST_ITEMS and all(_LINK_TARGET.search(one) for one in items)
    return is_list or sum(len(_letters(shown)) for shown, _ in links) >= _MOSTLY * len(_letters(part))


def _host(address: str) -> str:
    """Return the host of a URL.

    Returns "" for a relative URL and "?" for an invalid URL.
    """
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return "?"


def _site(host: str) -> str:
    """Return the last two parts of a host name, such as `example.org`. They are the same for all pages of a site."""
    return ".".join(host.split(".")[-2:])


def _is_caption(part: str) -> bool:
    """Whether a short paragraph or heading only introduces the block that follows, such as "Related articles:"."""
    return len(part) <= _MOST_CAPTION and (part.startswith(("#", "**")) or part.endswith(":"))


def wrap_lines(tree: Any) -> None:  # noqa: ANN401 - an untyped library
    """Turn text between double line breaks into paragraphs.

    Otherwise, trafilatura would divide the text at every link.
    """
    for element in list(tree.iter("div", "td", "article", "section", "main", "body")):
        children: list[Any] = list(element)
        if any(_is_end(one, after) for one, after in pairwise(children)):
            _wrap(element, children)


def _is_end(one: Any, after: Any) -> bool:  # noqa: ANN401
    """Whether `one` and `after` are two line breaks without text between them, which end a paragraph."""
    return one.tag == after.tag == "br" and not (one.tail or "").strip()


def _wrap(element: Any, children: list[Any]) -> None:  # noqa: ANN401
    text, element.text = element.text, None
    paragraph = _begin(element, text)
    for one, after in zip(children, [*children[1:], element], strict=True):
        is_break = one.tag == "br" and paragraph is None
        is_inline = one.tag in _INLINE or not isinstance(one.tag, str)
        if _is_end(one, after):
            element.remove(one)
            paragraph = None
        elif is_break or not is_inline:
            tail, one.tail = one.tail, None
            element.remove(one) if is_break else element.append(one)
            paragraph = _begin(element, tail)
        else:
            paragraph = _begin(element, " ") if paragraph is None else paragraph
            paragraph.append(one)


def _begin(element: Any, text: str | None) -> Any:  # noqa: ANN401
    """Append a paragraph with this text to an element and return the paragraph. Returns None if there is no text."""
    if not text:
        return None
    paragraph = element.makeelement("p", {})
    paragraph.text = text
    element.append(paragraph)
    return paragraph


def without_additions(markdown: str, words: str) -> str:
    """Remove short paragraphs, such as keywords and "Read more", and lists of headings, because they do not belong to
    the article.

    `words` is the same article, extracted without links and bold type. Short paragraphs that occur in `words` are kept.
    """
    known = _letters(words)
    parts = [part for part in _EMPTY_LINES.split(markdown) if not _BOX_NAMES.fullmatch(part)]
    kept = [
        part
        for part in parts
        if len(part) > _MOST_ADDITION or part.startswith(("|", "```", "#", "- ", "![")) or _letters(part) in known
    ]
    return "\n\n".join(kept) if words and kept else markdown


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(_LINK.sub(r"\1", text).casefold()))


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


PROCESSOR = Processor((SourceType.HTML, SourceType.WEB), extract, read_figure)
