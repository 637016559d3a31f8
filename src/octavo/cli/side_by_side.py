"""Shows the pages of a file and their text side by side, to judge the quality of an extraction.

The HTML is one file without scripts. All text of the document is escaped, and page images are rendered in the sandbox.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from octavo.cli.output import clean
from octavo.core.errors import OctavoError
from octavo.extract.extracted import PAGED, Box, Extracted, Page

if TYPE_CHECKING:
    from octavo.sandbox import Sandbox

# Beyond this, the file would be too large for a browser.
MOST_PICTURES = 200
_PICTURE_SIDE = 1200
_STYLE = """
body { margin: 1rem; font: 15px/1.45 system-ui, sans-serif; color: #222; background: #f4f4f2 }
h1 { font-size: 1.3rem } h2 { font-size: 1rem; margin: 1.5rem 0 .4rem }
.page { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; align-items: start }
.sheet { position: relative; background: #fff; outline: 1px solid #bbb }
.sheet img { display: block; width: 100% }
.box { position: absolute; outline: 1px solid #2563eb }
.box span { position: absolute; right: 100%; top: 0; padding: 0 .2em; font-size: 10px; line-height: 1.2;
  white-space: nowrap; opacity: .8; color: #fff; background: #2563eb }
.table, .table span { outline-color: #15803d } .table span { background: #15803d }
.heading, .heading span { outline-color: #b91c1c } .heading span { background: #b91c1c }
.figure, .formula { outline-color: #a16207 } .figure span, .formula span { background: #a16207 }
.header, .footer, .footnote { outline-color: #6b7280 }
.header span, .footer span, .footnote span { background: #6b7280 }
pre { margin: 0; padding: .8rem; background: #fff; outline: 1px solid #bbb; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace }
.unsure { color: #92400e }
"""
HEAD = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Pages and their text</title>\n'
    f"<style>{_STYLE}</style></head><body>\n"
)


class Mark(NamedTuple):
    """A box to draw on a page, with its number in the reading order, its kind and its text."""

    order: int
    kind: str
    box: Box
    text: str


async def write_file(sandbox: Sandbox, path: Path, shown: str, extracted: Extracted) -> AsyncGenerator[str]:
    """Yield the HTML of one file, page by page."""
    about = f"{extracted.source_type}, quality {extracted.quality}, {extracted.word_count} words"
    yield f"<h1>{escape(clean(shown))}</h1>\n<p>{escape(about)}</p>\n"
    if not extracted.pages:
        yield f"<pre>{escape(extracted.markdown)}</pre>\n"
    for page in extracted.pages:
        drawn = extracted.source_type in PAGED and page.number <= MOST_PICTURES
        picture = await draw_page(sandbox, path, extracted, page) if drawn else "<p>No picture of this page.</p>"
        yield write_page(page, picture, marks_of(extracted, page.number), extracted.markdown[page.start : page.end])


async def draw_page(sandbox: Sandbox, path: Path, extracted: Extracted, page: Page) -> str:
    # Imported late, as in every command, so that other commands start without loading the sandbox.
    from octavo.extract.pictures.page_images import show_in_sandbox

    try:
        picture = await show_in_sandbox(sandbox, path, extracted.source_type, page.number, _PICTURE_SIDE)
    except OctavoError as error:
        return f"<p>{escape(error.line)}</p>"
    return f'<img alt="Page {page.number}" src="data:image/jpeg;base64,{b64encode(picture).decode()}">'


def marks_of(extracted: Extracted, page: int) -> list[Mark]:
    """Return the boxes to draw on a page: its regions, or its blocks if the file has no regions."""
    if extracted.regions:
        regions = (one for one in extracted.regions if one.page == page)
        return [Mark(one.order, one.kind, one.box, one.text) for one in regions]
    blocks = [one for one in extracted.blocks if one.page == page]
    return [Mark(order, one.kind, one.box, one.text) for order, one in enumerate(blocks) if one.box]


def write_page(page: Page, picture: str, marks: Sequence[Mark], text: str) -> str:
    unsure = f'<p class="unsure">The text may be wrong: {escape(page.unsure)}</p>' if page.unsure else ""
    boxes = "".join(_boxes(page, marks))
    return (
        f'<h2>Page {escape(page.label)}</h2>{unsure}\n<div class="page"><div class="sheet">{picture}{boxes}</div>'
        f"<pre>{escape(text)}</pre></div>\n"
    )


def _boxes(page: Page, marks: Sequence[Mark]) -> Iterator[str]:
    """Yield the HTML of each box. Positions are percentages of the page, so that they fit a picture of any size."""
    if not page.width or not page.height:
        return
    for mark in marks:
        left, right = (100 * side / page.width for side in (mark.box.left, mark.box.right))
        top, bottom = (100 * side / page.height for side in (mark.box.top, mark.box.bottom))
        place = f"left:{left:.2f}%;top:{top:.2f}%;width:{right - left:.2f}%;height:{bottom - top:.2f}%"
        kind = escape(mark.kind)
        label = f"<span>{mark.order} {kind}</span>"
        yield f'<div class="box {kind}" style="{place}" title="{escape(mark.text)}">{label}</div>'
