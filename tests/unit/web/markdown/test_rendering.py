"""Documents become HTML that cannot do anything, says every word, and knows where in the Markdown it came from."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.web.markdown.render import Block, render_window
from octavo.web.markdown.safety import BLOCK_TAGS, CLASSES, LINK_REL, OWN_TAGS, TEXT_TAGS

NEVER_CLOSED = {"br", "hr", "wbr"}
# Only our code writes formulas, and only with these tags.
MATHML_TAGS = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mfrac", "msqrt", "mroot", "msup", "msub", "msubsup"),
    *("munder", "mover", "munderover", "mtable", "mtr", "mtd"),
}


class Reader(HTMLParser):
    """Reads HTML as strictly as it can: known tags, closed in order, with attributes that are known to be harmless."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TEXT_TAGS | BLOCK_TAGS | OWN_TAGS | MATHML_TAGS, tag
        if tag not in NEVER_CLOSED:
            self.open.append(tag)
        for name, value in attrs:
            self._check(tag, name, value or "")

    def _check(self, tag: str, name: str, value: str) -> None:
        assert name in {"class", "colspan", "href", "rel", "rowspan", "start", "tabindex"}, (tag, name)
        if name == "href":
            self.links.append(value)
            assert re.match(r"(?:https?|mailto):", value, re.IGNORECASE), value
        if name == "class":
            assert set(value.split()) <= CLASSES[tag]
        if name == "rel":
            assert value == LINK_REL
        if name == "tabindex":
            assert value == "0"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += re.findall(r"\w+", data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    handle_pi = unknown_decl = handle_comment

    def handle_decl(self, decl: str) -> None:
        self.handle_comment(decl)


def read(blocks: list[Block]) -> Reader:
    reader = Reader()
    for block in blocks:
        reader.feed(block.html)
        assert reader.open == [], block.html
    reader.close()
    return reader


def html(markdown: str) -> str:
    return "\n".join(block.html for block in render_window(markdown))


# What is shown -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        pytest.param("# Title", "<h2>Title</h2>", id="headings begin below ours"),
        pytest.param("###### Low", "<h6>Low</h6>", id="the lowest heading stays"),
        pytest.param("a ~~b~~ **c** *d*", "<p>a <s>b</s> <strong>c</strong> <em>d</em></p>", id="emphasis"),
        pytest.param("| a |\n|--:|\n| 1 |", '<td class="right">1</td>', id="cells are aligned by a class"),
        pytest.param("3. a", '<ol start="3">', id="lists begin where they say"),
        pytest.param("`<b>`", "<code>&lt;b&gt;</code>", id="code is text"),
        pytest.param("```js\n<b>\n```", '<pre tabindex="0"><code>&lt;b&gt;\n</code></pre>', id="fences are text"),
        pytest.param("H<sub>2</sub>O", "<p>H<sub>2</sub>O</p>", id="harmless tags are kept"),
        pytest.param("Vector<String> x", "Vector&lt;String&gt; x", id="what is no tag is text"),
        pytest.param("<script>a</script>", "&lt;script&gt;a&lt;/script&gt;", id="scripts are text"),
        pytest.param('<p style="color:red" onclick="x()">a</p>', "<p>a</p>", id="attributes are dropped"),
        pytest.param("<div id='a'><h1>b</h1></div>", "<h2>b</h2>", id="frames are passed, headings shifted"),
        pytest.param("a[^1]\n\n[^1]: word", '<sup class="mark">1</sup>: word', id="footnotes keep their words"),
        pytest.param("[a][b]\n\n[b]: https://x.example", f'.example" rel="{LINK_REL}">a</a>', id="defined"),
        pytest.param("[a](/actions/trash)", "<p><a rel=", id="links within our site lead nowhere"),
        pytest.param("[a](//x.example)", "<p><a rel=", id="links without a scheme lead nowhere"),
        pytest.param("<mailto:a@b.example>", 'href="mailto:a@b.example"', id="mail"),
        pytest.param("a <!-- b --> c", "<p>a  c</p>", id="comments are gone"),
    ],
)  # fmt: skip
def test_markdown_is_shown(markdown: str, shown: str) -> None:
    assert shown in html(markdown)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        pytest.param(
            "![A bog](https://x.example/a.png)",
            f'<span class="picture">A bog</span> <a href="https://x.example/a.png" rel="{LINK_REL}">',
            id="from elsewhere",
        ),
        pytest.param("![](data:image/png;base64,aaaa)", '<span class="picture">Picture</span>', id="within the text"),
        pytest.param("![A bog](a.png)", '<p><span class="picture">A bog</span></p>', id="beside the file"),
        pytest.param("<img src='https://x.example/a.png' alt='A bog'>", '<span class="picture">A bog</span>', id="tag"),
    ],
)
def test_a_picture_is_described_and_never_loaded(markdown: str, shown: str) -> None:
    assert shown in html(markdown)
    assert "<img" not in html(markdown)


def test_a_picture_that_is_a_link_leads_where_the_link_leads() -> None:
    assert html("[![A](https://x.example/a.png)](https://y.example)").count("<a ") == 1


# Where it came from ------------------------------------------------------------------------------------------------


def test_blocks_know_their_characters() -> None:
    markdown = "\n# One\n\nTwo\nlines\n\n- a\n- b\n\n```\ncode\n\nmore\n```\n\n> quote\n"
    written = [markdown[block.start : block.end] for block in render_window(markdown)]
    assert written == ["# One", "Two\nlines", "- a\n- b", "```\ncode\n\nmore\n```", "> quote"]


def test_a_window_counts_from_where_it_begins() -> None:
    (block,) = render_window("  \nWord", 100)
    assert (block.start, block.end) == (103, 107)


def test_line_ends_of_every_system_are_counted() -> None:
    markdown = "a\r\n\r\nb\r\rc\n\nd"
    assert [markdown[one.start : one.end] for one in render_window(markdown)] == ["a", "b", "c", "d"]


MARKS = st.sampled_from([
    *"#*_~`[]()!<>|-+=:&;\\/\"'^.1 \n\t\r", "\n\n", "    ", "```", "> ", "- ", "| a |\n|---|\n", "[^1]", "[a]: b\n",
    "<b>", "</b>", "<p ", "<script>", "</script>", "<svg onload=x>", "<!--", "-->", "<![CDATA[", "]]>", "<?php",
    "<style>", "<textarea>", "<math>", "</math>", "<mi onclick=x>", "<mtext>", "<mglyph>", "<annotation-xml>",
    "/(", "√", "^_", "<table>", "<td>", "<a href='javascript:x'>", "javascript:", "data:text/html,",
    "&#x6a;", "&lt;", "\u2028", "\x00", "word", "ä", "\U0001d538", "\u202e", "<img src=x onerror=y>",
    "https://x.example", "<https://x.example>",
])  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(MARKS, max_size=60).map("".join))


@given(TEXTS)
def test_hostile_document_content_has_no_effect(text: str) -> None:
    read(render_window(text))


@given(TEXTS)
def test_blocks_are_all_of_the_text_in_order(text: str) -> None:
    position = 0
    for block in render_window(text):
        assert position <= block.start <= block.end <= len(text)
        assert not text[position : block.start].strip(), "something lies between two blocks"
        position = block.end
    assert not text[position:].strip()


@given(
    st.lists(
        st.sampled_from(["word", "Vector<String>", "a<b", "<script>x</script>", "*em*", "\n\n", "# "]), max_size=20
    )
)
def test_no_word_is_lost(parts: list[str]) -> None:
    text = " ".join(parts)
    assert read(render_window(text)).words == re.findall(r"\w+", re.sub(r"[*#]", "", text))


# Nothing takes for ever --------------------------------------------------------------------------------------------

HARD = {
    "brackets": "[",
    "pictures": "![",
    "links": "[a](",
    "emphasis": "*a **a ",
    "stars and bars": "*_",
    "struck out": "~~a",
    "tags": "<a>",
    "open tags": "<div\n",
    "comments": "<!--",
    "instructions": "<?",
    "lists in tags": "<ul><li>",
    "quotes": ">",
    "quotes in tags": "<p '>",
    "cells": "|",
    "entities": "&amp;",
    "addresses": "<http://a.b>",
}


@pytest.mark.parametrize("part", HARD.values(), ids=HARD.keys())
def test_a_window_of_nothing_but_marks_is_shown_soon(part: str) -> None:
    began = time.process_time()
    read(render_window(part * (60_000 // len(part))))
    assert time.process_time() - began < 3


@pytest.mark.parametrize("mark", ["> ", "- "], ids=["quotes", "lists"])
def test_what_is_nested_too_deep_is_shown_as_it_is_written(mark: str) -> None:
    assert read(render_window(mark * 500 + "word")).words == ["word"]
