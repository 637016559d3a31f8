"""Our division of Markdown into blocks, held against markdown-it-py, which knows the rules and is slow."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from octavo.extract.extracted import Block, BlockKind
from octavo.extract.markdown import blocks as blocks_module
from octavo.extract.markdown import plain_title, read_blocks

patient = settings(deadline=None)  # machines that run tests are busy

REFERENCE = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
REFERENCE.disable(["inline", "text_join", "reference"], ignoreInvalid=True)
KINDS = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
    "blockquote_open": "quote",
    "html_block": "html",
    "hr": "rule",
}

LINES = [
    "# h", "## h ##", "#hash", "####### seven", "text", "more text", "  two", "   three", "\tTab", "    code",
    "     deep", "- a", "- ", "-", "* b", "+ c", "1. x", "2. y", "3) z", "10. ten", "1986. foo", "   - n",
    "  - n", "- - x", "1. - x", "- # h", "- > q", "-     code", "- ```", "  ```", "> q", ">", "> > q", "> - i",
    "> ```", "> # h", ">     code", "```", "```py", "````", "~~~", " ```x", "`` x `", "---", "--", "===",
    "- - -", "***", "", "", "", "| a | b |", "|---|---|", "| 1 | 2 |", "a | b", "--|--", ":-|", "|", "  | x |",
    "<div>", "</div>", "<!-- c", "-->", "<p>x", "<span>", "<a href='x'>", "<?php", "?>", "<script>",
    "</script>", "\\# x",
]  # fmt: skip

# Behind an empty item and two empty lines markdown-it-py begins a new list, which other parsers do not.
DISPUTED = re.compile(r"(?:[-+*]|\d[.)])[ \t]*\n[ \t]*\n[ \t]*\n")

Found = tuple[str, int, int, int | None]


def trimmed(lines: list[str], first: int, end: int) -> int:
    """Empty lines at the end of a block are nobody's."""
    while end > first + 1 and (end > len(lines) or not lines[end - 1].strip()):
        end -= 1
    return end


def expected(markdown: str) -> list[Found]:
    lines = markdown.split("\n")
    found: list[Found] = []
    for token in REFERENCE.parse(markdown):
        if token.level == 0 and token.map and token.type in KINDS:
            level = int(token.tag[1]) if token.type == "heading_open" else None
            found.append((KINDS[token.type], token.map[0], trimmed(lines, *token.map), level))
    return found


def actual(markdown: str) -> list[Found]:
    lines = markdown.split("\n")
    found: list[Found] = []
    for block in read_blocks(markdown):
        first, end = markdown.count("\n", 0, block.start), markdown.count("\n", 0, block.end) + 1
        found.append((str(block.kind), first, trimmed(lines, first, end), block.level))
    return found


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=10).map("\n".join).filter(lambda text: not DISPUTED.search(text)))
@example("- \n\n  ```")
@example("> q\n-")
@example("a\n| b | c |\n|---|---|\n| d |\n\nafter")
def test_blocks_are_those_of_the_reference(markdown: str) -> None:
    assert actual(markdown) == expected(markdown)


@patient
@given(st.text(st.sampled_from("a# \n-=>`~|:<!1.\t*_[]")))
def test_blocks_hold_all_of_the_text_in_order(markdown: str) -> None:
    position = 0
    for block in read_blocks(markdown):
        assert not markdown[position : block.start].strip()
        assert block.start < block.end
        position = block.end
    assert not markdown[position:].strip()


DOCUMENT = """\
Title
=====

Some *text*
over two lines.

## Part `one` ##

- an item

  ```
  # no heading
  ```

- another

```python
# no heading
```

> quoted

| a | b |
|---|---|
| 1 | 2 |

![a picture](picture.png)

<!-- a comment

with an empty line -->

***

    indented code
"""


def test_offsets_are_exact() -> None:
    found = {(one.kind, DOCUMENT[one.start : one.end].partition("\n")[0]) for one in read_blocks(DOCUMENT)}
    assert found == {
        (BlockKind.HEADING, "Title"),
        (BlockKind.PARAGRAPH, "Some *text*"),
        (BlockKind.HEADING, "## Part `one` ##"),
        (BlockKind.LIST, "- an item"),
        (BlockKind.CODE, "```python"),
        (BlockKind.QUOTE, "> quoted"),
        (BlockKind.TABLE, "| a | b |"),
        (BlockKind.IMAGE, "![a picture](picture.png)"),
        (BlockKind.HTML, "<!-- a comment"),
        (BlockKind.RULE, "***"),
        (BlockKind.CODE, "    indented code"),
    }


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# Plain", "Plain"),
        ("  ## Closed ##  ", "Closed"),
        ("Over\ntwo lines\n---", "Over two lines"),
        ("# **Bold** and _slanted_", "Bold and slanted"),
        ("# `__init__` and snake_case", "__init__ and snake_case"),
        ("# A [link](target) and ![image](source)", "A link and image"),
        ("# 2 \\* 3 * 4 &amp; more", "2 * 3 * 4 & more"),
        ("# With an anchor {#anchor}", "With an anchor"),
        ("# <a id='x'></a>Tagged", "Tagged"),
        ("#", ""),
        ("# C#", "C#"),
        ("# " + "long " * 100, ("long " * 40)[:199] + "…"),
    ],
)
def test_titles_say_what_headings_say(heading: str, title: str) -> None:
    assert plain_title(heading) == title


def test_a_flood_of_blocks_ends_in_one_that_holds_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "MOST_BLOCKS", 3)
    markdown = "# a\n\n# b\n\n# c\n\n# d\n"
    *first, rest = read_blocks(markdown)
    assert [block.text for block in first] == ["a", "b"]
    assert rest == Block(BlockKind.PARAGRAPH, 10, 18, "# c\n\n# d")
