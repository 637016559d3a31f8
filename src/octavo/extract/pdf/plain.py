"""A page's text as PDFium gives it: for pages that liteparse cannot read, and for scripts that it writes backwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from octavo.extract.contract import BlockKind
from octavo.extract.markdown import read_blocks
from octavo.extract.pdf import markup
from octavo.extract.pdf.document import OpenPage
from octavo.extract.pdf.letters import clean_letters, has_right_to_left, one_line
from octavo.extract.pdf.pages import PageBlock
from octavo.extract.plain_text import convert

_TEXTS = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH})


def read_plain(page: OpenPage) -> Iterator[PageBlock]:
    """The text without places; what is obvious in plain text, such as lists, is recognised."""
    markdown = convert(clean_letters(page.text()).replace("\f", "\n")).markdown
    for block in read_blocks(markdown):
        content = markdown[block.start : block.end]
        match block.kind:
            case BlockKind.HEADING:
                yield PageBlock(BlockKind.HEADING, one_line(content.lstrip("# ")))
            case BlockKind.PARAGRAPH:
                yield PageBlock(BlockKind.PARAGRAPH, "\n".join(map(one_line, content.split("\n"))))
            case BlockKind.RULE:
                pass
            case _:
                yield PageBlock(block.kind, content)


def turn_around(page: OpenPage, blocks: Sequence[PageBlock]) -> Iterator[PageBlock]:
    """Blocks in scripts from right to left get the letters that PDFium finds in their place."""
    backwards = {index: block.box for index, block in enumerate(blocks) if block.box and _is_backwards(block)}
    found = dict(zip(backwards, page.texts_in(list(backwards.values())), strict=True))
    for index, block in enumerate(blocks):
        text = markup.plain(one_line(found.get(index, "")))
        yield replace(block, text=text) if text else block


def _is_backwards(block: PageBlock) -> bool:
    return block.kind in _TEXTS and has_right_to_left(block.text)
