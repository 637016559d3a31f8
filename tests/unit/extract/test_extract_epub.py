"""Books: the chapters in the order of the spine, with the hierarchy of their table of contents."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from octavo.core.errors import BadInput, Empty, Encrypted
from octavo.extract.extracted import Quality
from octavo.extract.formats.epub import PROCESSOR
from tests.support.office import archive, epub, markdown, page, read

CHAPTERS = {
    "b.xhtml": page("<h1>Part One</h1><p>Text one.</p>"),
    "a.xhtml": page('<h1 id="c1">Chapter 1</h1><p>Text two.</p><h2>Detail</h2><p>More.</p><h1 id="c2">Chapter 2</h1>'),
}
TOC = (
    '<li><a href="b.xhtml">Part One</a><ol><li><a href="a.xhtml#c1">Chapter 1</a></li>'
    '<li><a href="a.xhtml#c2">Chapter 2</a></li></ol></li>'
)
POINT = "<navPoint><navLabel><text>{}</text></navLabel><content src='{}'/>{}</navPoint>"


def test_chapters_come_in_the_order_of_the_spine_and_as_deep_as_the_contents_say(tmp_path: Path) -> None:
    extracted = read(PROCESSOR, tmp_path, epub(CHAPTERS, toc=TOC))
    assert extracted.markdown == (
        "# Part One\n\nText one.\n\n## Chapter 1\n\nText two.\n\n### Detail\n\nMore.\n\n## Chapter 2"
    )
    assert [(entry.level, entry.title) for entry in extracted.outline] == [
        (1, "Part One"),
        (2, "Chapter 1"),
        (2, "Chapter 2"),
    ]
    for entry in extracted.outline:
        assert extracted.markdown[entry.start :].lstrip("# ").startswith(entry.title)
    assert extracted.pages == ()


def test_a_place_with_two_equal_entries_is_in_the_outline_once(tmp_path: Path) -> None:
    twice = f'{TOC}<li><a href="a.xhtml#c2">Chapter 2</a></li>'
    outline = read(PROCESSOR, tmp_path, epub(CHAPTERS, toc=twice)).outline
    assert [entry.title for entry in outline] == ["Part One", "Chapter 1", "Chapter 2"]


def test_the_lines_of_a_stanza_are_one_paragraph_and_their_numbers_stand_apart(tmp_path: Path) -> None:
    first = '<div class="verse">And went on, into the <i>Hofgarten</i>,<span class="linenum">10</span></div>'
    stanza = f'<div class="stanza">{first}\n<div class="verse">And drank <i>coffee</i>.</div></div><p>A note.</p>'
    text = markdown(PROCESSOR, tmp_path, epub({"one.xhtml": page(stanza)}))
    assert text == "And went on, into the *Hofgarten*, 10  \nAnd drank *coffee*.\n\nA note."


def test_the_old_table_of_contents_does_as_well(tmp_path: Path) -> None:
    ncx = POINT.format("Part One", "b.xhtml", POINT.format("Chapter 1", "a.xhtml#c1", ""))
    outline = read(PROCESSOR, tmp_path, epub(CHAPTERS, ncx=ncx)).outline
    assert [(entry.level, entry.title) for entry in outline] == [(1, "Part One"), (2, "Chapter 1")]


def test_without_any_the_headings_are_the_outline(tmp_path: Path) -> None:
    outline = read(PROCESSOR, tmp_path, epub(CHAPTERS)).outline
    assert [entry.title for entry in outline] == ["Part One", "Chapter 1", "Detail", "Chapter 2"]


def test_a_paragraph_that_the_contents_name_is_a_heading(tmp_path: Path) -> None:
    chapter = page('<p class="big" id="x">The <b>Storm</b></p><p>It rained.</p>')
    data = epub({"a.xhtml": chapter}, toc='<li><a href="a.xhtml#x">The Storm</a></li>')
    assert markdown(PROCESSOR, tmp_path, data) == "# The **Storm**\n\nIt rained."


def test_printed_pages_are_told_by_their_labels(tmp_path: Path) -> None:
    chapter = page(
        '<p>Cover.</p><p>Begin <span id="p9"/>nine goes on.</p><p id="p10">Ten.</p><ul id="p11"><li>Eleven</li></ul>'
    )
    pages = "".join(f'<li><a href="a.xhtml#p{n}">{label}</a></li>' for n, label in ((9, "ix"), (10, "10"), (11, "11")))
    extracted = read(
        PROCESSOR, tmp_path, epub({"a.xhtml": chapter}, toc='<li><a href="a.xhtml">A</a></li>', pages=pages)
    )
    assert extracted.markdown == "Cover.\n\nBegin nine goes on.\n\nTen.\n\n- Eleven"
    found = [(one.number, one.label, extracted.markdown[one.start : one.end].strip()) for one in extracted.pages]
    assert found[0] == (1, "ix", "nine goes on.")
    assert [one[:2] for one in found] == [(1, "ix"), (2, "10"), (3, "11")]
    assert found[2][2].endswith("Eleven")
    assert [block.page for block in extracted.blocks][:3] == [None, None, 2]  # a block belongs to where it begins


def test_links_stay_where_they_leave_the_book(tmp_path: Path) -> None:
    chapter = page(
        '<p>See <a href="b.xhtml#x">there</a>, <a href="https://x.org">the [web]</a> and a note'
        '<a epub:type="noteref" href="#n1">1</a>.</p><aside epub:type="footnote" id="n1"><p>The note.</p></aside>'
    )
    assert markdown(PROCESSOR, tmp_path, epub({"a.xhtml": chapter})) == (
        "See there, [the \\[web\\]](https://x.org) and a note[1].\n\nThe note."
    )


def test_brackets_before_parentheses_are_no_link(tmp_path: Path) -> None:
    chapter = page("<p>Text<sup>[2]</sup>(https://x.org) and <b>[x]</b>: y</p>")
    text = markdown(PROCESSOR, tmp_path, epub({"a.xhtml": chapter}))
    assert text == "Text[2]\\(https://x.org) and **[x]**\\: y"


def test_pictures_are_what_they_say_of_themselves_and_scripts_are_gone(tmp_path: Path) -> None:
    chapter = page(
        '<p>A<img src="a.png" alt="A map"/>B<img src="b.png" alt=""/></p><script>alert(1)</script><style>p {}</style>'
        '<svg xmlns="http://www.w3.org/2000/svg"><style>.ps0 {fill:none}</style><text>drawn words</text></svg>'
    )
    assert markdown(PROCESSOR, tmp_path, epub({"a.xhtml": chapter})) == "A[Image: A map]B\n\ndrawn words"


def test_text_that_looks_like_markup_stays_text(tmp_path: Path) -> None:
    chapter = page("<p>2 * 3 *4* &lt;b&gt; C:\\* &amp;amp; _x_</p><p># no heading</p><pre>a * b\n  &lt;c&gt;</pre>")
    assert markdown(PROCESSOR, tmp_path, epub({"a.xhtml": chapter})) == (
        "2 * 3 \\*4\\* \\<b> C:\\\\\\* \\&amp; \\_x\\_\n\n\\# no heading\n\n```\na * b\n  <c>\n```"
    )


def test_names_of_characters_are_known_and_careless_markup_is_read(tmp_path: Path) -> None:
    chapters = {
        "a.xhtml": page("<p>caf&eacute;&nbsp;&mdash; x</p>"),
        "b.xhtml": "<html><body><p>One<p>Two &copy;<br></body>",
    }
    assert markdown(PROCESSOR, tmp_path, epub(chapters)) == "café — x\n\nOne\n\nTwo ©"


@pytest.mark.parametrize("tag", ["div", "span", "blockquote"])
@pytest.mark.parametrize("depth", [300, 1500, 50_000])
def test_no_depth_hides_the_text(tmp_path: Path, tag: str, depth: int) -> None:
    deep = f"<{tag}>" * depth + "<b>deep</b> words that must not be lost &amp; found" + f"</{tag}>" * depth
    chapters = {"a.xhtml": page(f"<h2>Head</h2><p>before</p>{deep}<p>after</p>"), "b.xhtml": page("<p>next</p>")}
    text = markdown(PROCESSOR, tmp_path, epub(chapters)).replace("*", "").replace("> ", "").replace(">", "").split()
    assert " ".join(text) == "## Head before deep words that must not be lost & found after next"


def test_what_it_says_of_itself(tmp_path: Path) -> None:
    about = read(PROCESSOR, tmp_path, epub(CHAPTERS)).metadata
    assert (about.title, about.author, about.date, about.language) == (
        "A Book",
        "Ann Author, Ben Author",
        "1999-05",
        "en-GB",
    )
    assert about.extra["publisher"] == "A Press"


ENCRYPTION = (
    '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData '
    'xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod Algorithm="{}"/></EncryptedData></encryption>'
)


def test_a_book_locked_by_its_shop_is_told_from_one_with_locked_fonts(tmp_path: Path) -> None:
    fonts = {"META-INF/encryption.xml": ENCRYPTION.format("http://www.idpf.org/2008/embedding")}
    assert "Text one." in markdown(PROCESSOR, tmp_path, epub(CHAPTERS, more=fonts))
    locked = {"META-INF/encryption.xml": ENCRYPTION.format("http://www.w3.org/2001/04/xmlenc#aes128-cbc")}
    with pytest.raises(Encrypted, match="DRM"):
        read(PROCESSOR, tmp_path, epub(CHAPTERS, more=locked))


def test_a_damaged_table_of_contents_costs_only_itself(tmp_path: Path) -> None:
    data = epub(CHAPTERS, ncx="x", more={"OEBPS/toc.ncx": "<ncx><navMap>"})
    assert read(PROCESSOR, tmp_path, data).outline[0].title == "Part One"


def test_a_missing_chapter_costs_only_itself(tmp_path: Path) -> None:
    data = epub({"gone.xhtml": "", **CHAPTERS}, toc=TOC)
    assert markdown(PROCESSOR, tmp_path, data).startswith("# Part One")


def test_thousands_of_entries_for_one_place_do_no_harm(tmp_path: Path) -> None:
    toc = "".join(f'<li><a href="b.xhtml">Entry {n}</a></li>' for n in range(20_000))
    began = time.process_time()
    assert len(read(PROCESSOR, tmp_path, epub(CHAPTERS, toc=toc)).outline) == 20_000
    assert time.process_time() - began < 10


def test_a_loop_of_contents_ends(tmp_path: Path) -> None:
    ncx = "<navPoint>" * 200 + POINT.format("Deep", "a.xhtml", "") + "</navPoint>" * 200
    assert read(PROCESSOR, tmp_path, epub(CHAPTERS, ncx=ncx)).outline


@pytest.mark.parametrize(
    "data",
    [
        archive({"mimetype": "application/epub+zip"}),
        epub(CHAPTERS, more={"OEBPS/book.opf": "<package/>"}),
        epub(CHAPTERS, more={"OEBPS/book.opf": "<package"}),
    ],
    ids=["no list", "no spine", "cut"],
)
def test_damage_is_told(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadInput, match="damaged"):
        read(PROCESSOR, tmp_path, data)


def test_pictures_only_are_empty(tmp_path: Path) -> None:
    with pytest.raises(Empty):
        read(PROCESSOR, tmp_path, epub({"a.xhtml": page('<img src="a.png"/>')}))


def drawing(content: str) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<metadata><format>image/svg+xml</format></metadata>{content}</svg>"
    )


def test_a_page_that_is_a_drawing_gives_its_text_and_its_pictures(tmp_path: Path) -> None:
    texts = (
        '<path d="M1,2"/><image xlink:href="crane.jpg"/><text>The Crane</text>'
        '<text><tspan x="0,5" y="20">Japanese </tspan><tspan x="40,45" y="20">cr</tspan><tspan x="50,55" y="20">ane'
        '</tspan><tspan x="0,5" y="40">flies</tspan></text>'
    )
    chapters = {"a.svg": drawing(texts), "b.xhtml": page("<p>After.</p>")}
    toc = '<li><a href="a.svg">Cover</a></li>'
    read_book = read(PROCESSOR, tmp_path, epub(chapters, toc=toc, more={"OEBPS/crane.jpg": b"\xff\xd8\xff"}))
    assert read_book.markdown == "![](figures/1.png)\nThe Crane\nJapanese crane\nflies\n\nAfter."
    assert [(one.number, one.member) for one in read_book.figures] == [(1, "OEBPS/crane.jpg")]


def test_a_book_of_pictures_is_empty_and_keeps_them(tmp_path: Path) -> None:
    chapters = {"a.svg": drawing('<image xlink:href="1.jpg"/>'), "b.svg": drawing('<path d="M1,2"/>')}
    book = read(PROCESSOR, tmp_path, epub(chapters, more={"OEBPS/1.jpg": b"\xff\xd8\xff"}))
    assert (book.quality, book.word_count, book.markdown) == (Quality.EMPTY, 0, "![](figures/1.png)")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('これは<span class="tcy">12</span>月の<em>強調</em>です。', "これは12月の*強調*です。"),
        ("<ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>へ", "東(とう)京(きょう)へ"),
        ("<ruby><rb>東京</rb><rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>へ", "東京(とうきょう)へ"),
        ("第一行的文字\n    第二行。<b>粗体</b>\n  第三行", "第一行的文字第二行。**粗体**第三行"),
        ("English text\nof 中文\nand 한국어\n문장", "English text of 中文 and 한국어 문장"),
        ("H<span>2</span>O and x<span>1</span>, y", "H2O and x1, y"),
        ('A line of verse<span class="number">15</span><br/>and one more', "A line of verse 15  \nand one more"),
    ],
)
def test_spaces_are_where_the_script_has_them(tmp_path: Path, body: str, expected: str) -> None:
    assert markdown(PROCESSOR, tmp_path, epub({"a.xhtml": page(f"<p>{body}</p>")})) == expected


def test_a_caption_with_a_heading_is_no_line_of_italics(tmp_path: Path) -> None:
    figures = (
        "<figure><figcaption><h2>New Moon</h2><p>In shadow.</p></figcaption></figure>"
        "<figure><figcaption>One <b>line</b></figcaption></figure>"
    )
    assert (
        markdown(PROCESSOR, tmp_path, epub({"a.xhtml": page(figures)})) == "## New Moon\n\nIn shadow.\n\n*One **line***"
    )
