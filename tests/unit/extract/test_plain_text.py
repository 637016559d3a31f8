"""Plain text becomes Markdown that shows the same text, with the structure that anybody would see in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from octavo.core.errors import Empty
from octavo.extract.decode import clean
from octavo.extract.extracted import BlockKind, Extracted
from octavo.extract.formats.text import from_text

patient = settings(deadline=None)  # machines that run tests are busy

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
WORD = re.compile(r"[^\W\d_]+")

BODY = "This paragraph is long enough to be the text that a heading announces, and so it does."

# Whatever means something in Markdown, in plain text that means nothing by it.
FRAGMENTS = [
    "word", "Two words", "UPPER CASE", "a", "", "", "  ", "-", "- item", "* item", "+ item", "1. one", "2. two",
    "7) seven", "1984. A year", "# hash", "###### six", "#", "> quote", ">", "---", "===", "***", "* * *",
    "___", "_ _ _", "~~~", "```", "``` py", "`tick`", "a`b", "*star*", "**bold**", "_under_", "__two__",
    "snake_case_name", "a * b * c", "~~struck~~", "[link](target)", "![image](target)", "[ref]: target",
    "[ref]", "<b>tag</b>", "<!-- comment", "-->", "<div>", "&amp; &lt;", "&copy", "\\", "a\\*b", "ends\\",
    "| a | b |", "|---|---|", "a | b", "--|--", "    indented", "\ttab", "col   col   col", "x = 1;", "{", "}",
    "very " * 12 + "long line", "and it goes on and on until the line is full of words here,", "word-",
    "Title Case Line", "1 Introduction", "1.2 Scope", "Chapter IV", "\f", "• bullet", "http://a.b/c_d_e?f=*g*",
    "<http://x.y>", "word #", "## closed ##", "日本語の文", "猫", "<script>", "</script>", "<?php", "<![CDATA[", ":-",
    "|", "1.", "a)", "\u00a0", "$x_1$",
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


@patient
@given(st.lists(st.sampled_from(FRAGMENTS)).map("\n".join).filter(str.strip))
def test_every_word_is_shown_in_its_place(text: str) -> None:
    markdown = from_text(text).markdown
    assert letters(shown(markdown)) == letters(text)


@patient
@given(st.lists(st.sampled_from([line for line in FRAGMENTS if line.isascii()])).map(" ".join).filter(str.strip))
def test_a_line_of_signs_is_shown_as_words(text: str) -> None:
    assert WORD.findall(shown(from_text(text).markdown)) == WORD.findall(text)


@patient
@given(st.text(st.characters(codec="utf-8")).map(clean).filter(str.strip))
def test_any_text_is_shown_completely(text: str) -> None:
    assert letters(shown(from_text(text).markdown)) == letters(text)


def outline(extracted: Extracted) -> list[tuple[int, str]]:
    return [(entry.level, entry.title) for entry in extracted.outline]


@pytest.mark.parametrize(
    ("text", "level", "title"),
    [
        (f"Opening line.\n\nINTRODUCTION\n\n{BODY}", 2, "INTRODUCTION"),
        (f"Opening line.\n\nCHAPTER I.\n\n{BODY}", 2, "CHAPTER I."),
        (f"Opening line.\n\nA LONG TITLE OVER\nTWO LINES\n\n{BODY}", 2, "A LONG TITLE OVER TWO LINES"),
        (f"Opening line.\n\nChapter 7\n\n{BODY}", 2, "Chapter 7"),
        (f"Opening line.\n\nKapitel IV\n\n{BODY}", 2, "Kapitel IV"),
        (f"Opening line.\n\nThe Way of a Document\n\n{BODY}", 3, "The Way of a Document"),
        (f"Opening line.\n\n{' ' * 30}Preamble\n\n{BODY}", 3, "Preamble"),  # one word, but centred
        (f"Opening line.\n\n1 Introduction\n\n{BODY}", 2, "1 Introduction"),
        (f"Opening line.\n\n4. Conveying Verbatim Copies.\n\n{BODY}", 2, "4. Conveying Verbatim Copies."),
        (f"Opening line.\n\n1.2 Scope of this work\n\n{BODY}", 3, "1.2 Scope of this work"),
        (f"Opening line.\n\nUnderlined so\n=============\n\n{BODY}", 1, "Underlined so"),
        (f"Opening line.\n\nUnderlined so\n-------------\n{BODY}", 2, "Underlined so"),  # no empty line after it
        (f"Annual Report\n\n{BODY}", 1, "Annual Report"),  # the first line of all
        (f"{' ' * 20}THE LICENCE\n{' ' * 20}Version 3, 29 June 2007\n\n{BODY}", 1, "THE LICENCE"),
        (f"Opening line.\n\nLEARN C #\n\n{BODY}", 2, "LEARN C #"),  # a closing mark would be lost
        (f"Opening line.\n\nSNAKE_CASE *STARS*\n\n{BODY}", 2, "SNAKE_CASE *STARS*"),
    ],
)
def test_an_obvious_heading_is_one(text: str, level: int, title: str) -> None:
    assert outline(from_text(text)) == [(level, title)]


@pytest.mark.parametrize(
    "text",
    [
        "Opening line.\n\nDear Sir,\n\n" + BODY,
        "Opening line.\n\nBest regards\n\nJohn Smith",  # nothing follows that it could announce
        "Opening line.\n\nJohn Smith\n12 Main Street\nLondon\n\n" + BODY,
        "Opening line.\n\nOK\n\n" + BODY,  # too few letters to be sure
        "Opening line.\n\nMit freundlichen Grüßen\n\n" + BODY,
        "Opening line.\n\nLondon, March 1999\n\n" + BODY,
        "Opening line.\n\nIt Was The Best Of Times.\n\n" + BODY,
        "Opening line.\n\n1. Buy milk\n\n2. Buy bread",
        "Opening line.\n\n1984 was a year\n\n" + BODY,
        "Opening line.\n\nTHIS GOES ON,\n\n" + BODY,
        "# not a heading\n\n" + BODY,
        "Opening line.\n\nPREFACE\nAnd the text goes on below it, without an empty line.\n\n" + BODY,
    ],
)
def test_what_may_be_a_heading_is_left_alone(text: str) -> None:
    assert outline(from_text(text)) == []


WRAPPED = """It was the best of times, it was the worst of times, it was the age of
wisdom, it was the age of foolishness, it was the epoch of belief, it was
the epoch of incredulity, it was the season of Light, it was the season of
Darkness, it was the spring of hope."""

VERSE = """Once upon a midnight dreary, while I pondered, weak and weary,
Over many a quaint and curious volume of forgotten lore,
While I nodded, nearly napping, suddenly there came a tapping,
As of some one gently rapping, rapping at my chamber door."""


def test_lines_that_a_program_broke_are_joined() -> None:
    assert from_text(WRAPPED).markdown == WRAPPED.replace("\n", " ")


@pytest.mark.parametrize("text", [VERSE, "John Smith\n12 Main Street\nLondon", "first\nsecond"])
def test_lines_that_an_author_broke_stay_broken(text: str) -> None:
    assert from_text(text).markdown == text.replace("\n", "  \n")


def test_only_full_lines_are_joined() -> None:
    text = f"1.4. Covered Software\n{WRAPPED.lower()}"
    assert from_text(text).markdown == "1.4. Covered Software  \n" + WRAPPED.lower().replace("\n", " ")


def test_a_word_with_a_hyphen_stays_one_word() -> None:
    text = WRAPPED.replace("age of\nwisdom", "age-\nwisdom")
    assert "it was the age-wisdom, it" in from_text(text).markdown


def test_between_ideographs_comes_no_space() -> None:
    line = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。"
    assert from_text(f"{line}\n{line}\n{line}").markdown == line * 3


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("- one\n- two", "- one\n- two"),
        ("• one\n• two", "- one\n- two"),
        ("Things:\n* one\n* two", "Things:\n\n- one\n- two"),
        ("- one\n  - inner\n- two", "- one\n  - inner\n- two"),
        ("1. one\n   - inner\n2. two", "1. one\n   - inner\n2. two"),
        ("3) three\n4) four", "3) three\n4) four"),
        ("1. one\n\n2. two", "1. one\n\n2. two"),
        ("- one\n\n- two", "- one\n\n- two"),
        ("1. one\n2. # two", "1. one\n2. \\# two"),
        # Markdown would count these otherwise than they are written.
        ("1. one\n3. three", "1\\. one  \n3\\. three"),
        ("1. one\n2. two\n\n1. one\n2. two", "1. one\n2. two\n\n1\\. one  \n2\\. two"),
        ("1984. It was a year.", "1984\\. It was a year."),
        ("- alone", "\\- alone"),
        ("- one\n* two", "\\- one  \n\\* two"),
    ],
)
def test_lists(text: str, markdown: str) -> None:
    assert from_text(text).markdown == markdown


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a * b and snake_case", "a * b and snake_case"),  # nothing to escape
        ("*a* _b_ `c`", "\\*a\\* \\_b\\_ \\`c\\`"),
        ("[a](b) and [c]", "[a\\](b) and [c]"),
        ("<b> 1 < 2 &amp; R&D", "\\<b> 1 < 2 \\&amp; R&D"),
        ("C:\\new \\* end\\", "C:\\new \\\\\\* end\\\\"),
        ("> a", "\\> a"),
        ("    a", "a"),
    ],
)
def test_signs_are_escaped_where_they_would_mean_something(text: str, markdown: str) -> None:
    assert from_text(text).markdown == markdown


def test_columns_and_code_keep_their_shape() -> None:
    table = "Name        Age\nBob         12\nAlice       33"
    code = "int main() {\n    return 0;\n}\n\nint other() {\n    return 1;\n}"
    extracted = from_text(f"{table}\n\nIn between.\n\n{code}")
    assert extracted.markdown == f"```\n{table}\n```\n\nIn between.\n\n```\n{code}\n```"
    assert [block.kind for block in extracted.blocks] == [BlockKind.CODE, BlockKind.PARAGRAPH, BlockKind.CODE]


def test_a_file_of_a_program_is_code() -> None:
    source = "def f():\n    # not a heading\n\n    return '```'\n"
    extracted = from_text(source, "python")
    assert extracted.markdown == f"```python\n{source.strip()}\n```"
    assert extracted.outline == ()


def test_a_fence_is_longer_than_those_inside() -> None:
    (block,) = from_text("before {\n````\ninside\n````\nafter }", "text").blocks
    assert block.kind is BlockKind.CODE


def test_form_feeds_end_pages() -> None:
    extracted = from_text(f"First page.\f\fTHIRD PAGE\n\n{BODY}\f")
    texts = [extracted.markdown[page.start : page.end] for page in extracted.pages]
    assert texts == ["First page.", "", f"## THIRD PAGE\n\n{BODY}", ""]
    assert [page.number for page in extracted.pages] == [1, 2, 3, 4]
    assert [block.page for block in extracted.blocks] == [1, 3, 3]
    assert extracted.outline[0].page == 3
    assert extracted.pages_with_text == 2


def test_without_form_feeds_there_are_no_pages() -> None:
    extracted = from_text("One line.")
    assert extracted.pages == ()
    assert extracted.blocks[0].page is None


def test_too_many_form_feeds_are_no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("octavo.extract.plain_text"), "MOST_PAGES", 3)
    extracted = from_text("a\fb\fc\fd\fe")
    assert [extracted.markdown[page.start : page.end] for page in extracted.pages] == ["a", "b", "c\n\nd\n\ne"]


@pytest.mark.parametrize("text", ["", " \n\t\n", "\f\f", "\u3000"])
def test_a_text_of_nothing_is_empty(text: str) -> None:
    with pytest.raises(Empty):
        from_text(text)


@patient
@given(st.lists(st.sampled_from(FRAGMENTS)).map("\n".join).filter(str.strip))
def test_pages_and_blocks_lie_within_the_text(text: str) -> None:
    extracted = from_text(text)
    covered = "".join(extracted.markdown[block.start : block.end] for block in extracted.blocks)
    assert "".join(covered.split()) == "".join(extracted.markdown.split())
    for block in extracted.blocks:
        page = next((page for page in extracted.pages if page.number == block.page), None)
        assert not extracted.pages or (page and page.start <= block.start and block.end <= page.end)
