"""Sanitises the HTML of documents: keeps only allowed tags, and removes everything that loads files, runs code, sets
styles or has an id.

All HTML made from documents goes through `clean`, block by block, so that no block can affect another. HTML inside
Markdown is first reduced to a few tags without attributes. Text that only looks like HTML stays text, so that no word
is lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape, unescape
from html.parser import HTMLParser
from typing import Protocol
from urllib.parse import urlsplit

import nh3

from octavo.web.markdown.formulas import to_mathml

SCHEMES = frozenset({"http", "https", "mailto"})
LINK_REL = "noopener noreferrer nofollow ugc"
MOST_ADDRESS = 60

TEXT_TAGS = frozenset(
    {
        *(
            "a",
            "abbr",
            "b",
            "br",
            "cite",
            "code",
            "del",
            "dfn",
            "em",
            "i",
            "ins",
            "kbd",
            "mark",
            "q",
            "s",
            "samp",
            "small",
        ),
        *("strong", "sub", "sup", "u", "var", "wbr"),
    }
)
BLOCK_TAGS = frozenset(
    {
        *("blockquote", "caption", "dd", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
        *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
    }
)
# Only our code writes these tags; a `div` is the scrollable frame of a wide table.
OWN_TAGS = frozenset({"div", "span"})
CLASSES = {
    "div": {"wide", "plain"},
    "span": {"picture", "figure", "linked", "formula", "block"},
    "sup": {"mark"},
    "td": {"right", "centre"},
}
CLASSES["th"] = CLASSES["td"]

_FIGURE = re.compile(r"figures/([1-9][0-9]{0,5})\.png")
_FIGURE_MARK = re.compile(r'<span class="figure( linked)?">([0-9]{1,6}) ([^<]*)</span>')
_FORMULA_MARK = re.compile(r'<span class="formula( block)?">([^<]*)</span>')

_CLEANER = nh3.Cleaner(
    tags=set(TEXT_TAGS | BLOCK_TAGS | OWN_TAGS),
    attributes={"a": {"href"}, "ol": {"start"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}},
    allowed_classes=CLASSES,
    # Scrollable elements must be reachable with the keyboard.
    set_tag_attribute_values={"pre": {"tabindex": "0"}, "div": {"tabindex": "0"}},
    url_schemes=set(SCHEMES),
    url_relative="deny",
    link_rel=LINK_REL,
    strip_comments=True,
)


def clean(html: str) -> str:
    return _CLEANER.clean(html)


class Picture(Protocol):
    """A picture in the document: its path on this server, and its caption."""

    @property
    def path(self) -> str: ...
    @property
    def caption(self) -> str: ...


def figure_number(address: str) -> int | None:
    """Return the figure number in a path such as `figures/3.png`. Returns None for any other URL.

    Text extraction writes such a path for each figure.
    """
    found = _FIGURE.fullmatch(address)
    return int(found[1]) if found else None


def mark_figure(words: str, number: int | None, *, linked: bool = False) -> str:
    """Return a placeholder for a figure.

    Documents cannot contain a fake placeholder, because `class` attributes are removed from their tags.
    """
    return f'<span class="figure{" linked" if linked else ""}">{number} {escape(words.strip())}</span>'


def show_figures(cleaned: str, figures: Mapping[int, Picture]) -> str:
    """Replace placeholders in sanitised HTML with pictures. Only the alternative texts come from the document."""
    return _FIGURE_MARK.sub(lambda found: _shown(found, figures), cleaned)


def _shown(found: re.Match[str], figures: Mapping[int, Picture]) -> str:
    linked, number, words = found.groups()
    picture = figures[int(number)]
    alternative = escape(unescape(words).strip() or picture.caption or f"Figure {number}")
    path = escape(picture.path)
    image = f'<img src="{path}?width=800" alt="{alternative}" loading="lazy" decoding="async">'
    return image if linked else f'<a class="figure" href="{path}" data-figure title="Enlarge">{image}</a>'


def mark_formula(line: str, *, is_block: bool) -> str:
    """Return a placeholder for a formula.

    Documents cannot contain a fake placeholder, because `class` attributes are removed from their tags.
    """
    return f'<span class="formula{" block" if is_block else ""}">{escape(line)}</span>'


def show_formulas(cleaned: str) -> str:
    """Replace placeholders in sanitised HTML with MathML.

    Documents are not allowed to contain MathML themselves, because browsers parse HTML inside it.
    """
    return _FORMULA_MARK.sub(lambda found: to_mathml(unescape(found[2]), is_block=bool(found[1])), cleaned)


def is_address(address: str) -> bool:
    """Whether the scheme of this URL is allowed in links: http, https or mailto."""
    try:
        return urlsplit(address.strip()).scheme.lower() in SCHEMES
    except ValueError:
        return False


def describe_picture(words: str, address: str, *, linked: bool = False) -> str:
    """Return the HTML that replaces a picture that is not loaded: its description and a link to the picture.

    If `linked` is true, the picture is already inside a link, so no second link is added.
    """
    shown = f'<span class="picture">{escape(words.strip()) or "Picture"}</span>'
    if linked or not is_address(address):
        return shown
    short = address if len(address) <= MOST_ADDRESS else address[: MOST_ADDRESS - 1] + "…"
    return f'{shown} <a href="{escape(address)}">{escape(short)}</a>'


_KEPT = TEXT_TAGS | BLOCK_TAGS
_VOID = frozenset({"br", "hr", "wbr"})
# Layout tags: removed, their content is kept.
_PASSED = frozenset(
    {
        *("address", "article", "aside", "body", "center", "col", "colgroup", "details", "div", "figcaption", "figure"),
        *(
            "font",
            "footer",
            "header",
            "html",
            "main",
            "nav",
            "picture",
            "section",
            "source",
            "span",
            "summary",
            "time",
            "tt",
        ),
    }
)
# Limits: unclosed tags make parsing slow, and deeper nesting is flattened.
_MOST_OPEN = 40
_MOST_CHARACTERS = 20_000
_MOST_DEPTH = 60
_SHIFTED = {"h1": "h2", "h2": "h3", "h3": "h4", "h4": "h5", "h5": "h6"}


def simplify(markup: str) -> str:
    """Reduce HTML to a few harmless tags. The result must still pass through `clean`."""
    if len(markup) > _MOST_CHARACTERS or markup.count("<") - markup.count(">") > _MOST_OPEN:
        return escape(markup)
    parser = _Simplifier()
    parser.feed(markup)
    parser.close()
    return "".join(parser.made)


class _Simplifier(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.made: list[str] = []
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        written = self.get_starttag_text() or ""
        if written.count("<") > 1:  # "a <b and c <d" is text
            self.made.append(escape(written))
        elif tag == "img":
            self.made.append(describe_picture(given.get("alt", ""), given.get("src", "")))
        elif tag == "a":
            self.made.append(f'<a href="{escape(given.get("href", ""))}">')
        elif tag in _KEPT:
            self._depth += tag not in _VOID
            self.made.append(f"<{_SHIFTED.get(tag, tag)}>" if self._depth < _MOST_DEPTH else "")
        elif tag not in _PASSED:
            self.made.append(escape(written))

    def handle_endtag(self, tag: str) -> None:
        if tag in _KEPT and tag not in _VOID:
            self._depth -= 1
            self.made.append(f"</{_SHIFTED.get(tag, tag)}>")
        elif tag not in _KEPT | _PASSED | {"img"}:
            self.made.append(escape(f"</{tag}>"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_data(self, data: str) -> None:
        self.made.append(escape(data))

    def handle_pi(self, data: str) -> None:
        self.made.append(escape(f"<?{data}>"))

    def unknown_decl(self, data: str) -> None:
        self.made.append(escape(data.removeprefix("CDATA[")))
