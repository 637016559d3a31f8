"""Plain text becomes Markdown that shows the same text, with the structure that anybody would see in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from octavo.extract.contract import BlockKind, Extracted
from octavo.extract.decode import clean
from octavo.extract.formats.text import from_text
from octavo.model.errors import Empty

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
WORD = re.compile(r"[^\W\d_]+")

BODY = "This paragraph is long enough to be the text that a heading announces, and so it does."

# Whatever means something in Markdown, in plain text that means nothing by it.
FRAGMENTS = [
    "word", "Two words", "UPPER CASE", "a", "", "", "  ", "-", "- item", "* item", "+ item", "1. one", "2. two", "7) seven",
    "1984. A year", "# hash", "###### six", "#", "> quote", ">", "---", "===", "***", "* * *", "___", "_ _ _", "~~~", "```",
    "``` py", "`tick`", "a`b", "*star*", "**bold**", "_under_", "__two__", "snake_case_name", "a * b * c", "~~struck~~",
    "[link](target)", "![image](target)", "[ref]: target", "[ref]", "<b>tag</b>", "<!-- comment", "-->", "<div>", "&amp; &lt;",
    "&copy", "\\", "a\\*b", "ends\\", "| a | b |", "|---|---|", "a | b", "--|--", "    indented", "\ttab", "col   col   col",
    "x = 1;", "{", "}", "very " * 12 + "long line", "and it goes on and on until the line is full of words here,", "word-",
    "Title Case Line", "1 Introduction", "1.2 Scope", "Chapter IV", "\f", "• bullet", "http://a.b/c_d_e?f=*g*", "<http://x.y>",
    "word #", "## closed ##", "日本語の文", "猫", "<script>", "</script>", "<?php", "<![CDATA[", ":-", "|", "1.", "a)", "\u00a0", "$x_1$",
]  # fmt: skip


class Text(HTMLParser):
    """What a reader sees of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_data(self, data: str) -> None:
        self.seen.append(data)


def shown(markdown: str) -> str:
    page = Text()
    page.feed(RENDERER.render(markdown))
    page.close()
    return "".join(page.seen)


def letters(text: str) -> str:
    return "".join(WORD.findall(text))


@given(st.lists(st.sampled_from(FRAGMENTS)).map("\n".join).filter(str.strip))
def test_every_word_is_shown_in_its_place(text: str) -> None:
    markdown = from_text(text).markdown
    assert letters(shown(markdown)) == letters(text)


@given(st.lists(st.sampled_from([line for line in FRAGMENTS if line.isascii()])).map(" ".join).filter(str.strip))
def test_a_line_of_signs_is_shown_as_words(text: str) -> None:
    assert WORD.findall(shown(from_text(text).markdown)) == WORD.findall(text)


@given(st.text(st.characters(codec="utf-8")).map(clean).filter(str.strip))
def test_any_text_is_shown_completely(text: str) -> None:
    assert letters(shown(from_text(text).markdown)) == letters(text)
