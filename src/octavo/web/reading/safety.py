"""What of a document's HTML reaches a browser: an allow-list, and nothing that loads, runs, styles or names itself.

Everything that was made of a document goes through `clean`, block by block, so that no block can reach into another.
"""

from __future__ import annotations

from html import escape
from urllib.parse import urlsplit

import nh3

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
# Only what we write ourselves has these; a `div` is the frame in which a wide table is moved.
OWN_TAGS = frozenset({"div", "span"})
CLASSES = {"div": {"wide", "plain"}, "span": {"picture"}, "sup": {"mark"}, "td": {"right", "centre"}}
CLASSES["th"] = CLASSES["td"]

_CLEANER = nh3.Cleaner(
    tags=set(TEXT_TAGS | BLOCK_TAGS | OWN_TAGS),
    attributes={"a": {"href"}, "ol": {"start"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}},
    allowed_classes=CLASSES,
    # What is moved sideways must be reached by the keyboard.
    set_tag_attribute_values={"pre": {"tabindex": "0"}, "div": {"tabindex": "0"}},
    url_schemes=set(SCHEMES),
    url_relative="deny",
    link_rel=LINK_REL,
    strip_comments=True,
)


def clean(html: str) -> str:
    return _CLEANER.clean(html)


def is_address(address: str) -> bool:
    """Whether it is one of the few kinds of addresses that a reader may follow."""
    try:
        return urlsplit(address.strip()).scheme.lower() in SCHEMES
    except ValueError:
        return False


def describe_picture(words: str, address: str, *, linked: bool = False) -> str:
    """A picture that is not loaded: what it shows, in words, and where it is. `linked`: within a link already."""
    shown = f'<span class="picture">{escape(words.strip()) or "Picture"}</span>'
    if linked or not is_address(address):
        return shown
    short = address if len(address) <= MOST_ADDRESS else address[: MOST_ADDRESS - 1] + "…"
    return f'{shown} <a href="{escape(address)}">{escape(short)}</a>'
