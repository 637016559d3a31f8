"""Word's documents: what a reader sees in Word is in the Markdown, in that order and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.core.errors import BadInput, Empty
from octavo.extract.extracted import BlockKind
from octavo.extract.formats.docx import PROCESSOR
from tests.support.office import OOXML, W, archive, core, docx, markdown, numbered, paragraph, read, relations

HEADINGS = """
<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:basedOn w:val="berschrift1"/></w:style>
<w:style w:styleId="Eigene"><w:name w:val="Eigene"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
<w:style w:styleId="Title"><w:name w:val="Title"/></w:style>
<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>
"""
DECIMAL = '<w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/>'
LISTS = f"""
<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0">{DECIMAL}</w:lvl>
  <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%2)"/></w:lvl>
  <w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2.%3"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="·"/></w:lvl>
</w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/>
  <w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>
"""


def run(inside: str, look: str = "") -> str:
    return f"<w:r><w:rPr>{look}</w:rPr>{inside}</w:r>"


def text(words: str, look: str = "") -> str:
    return run(f'<w:t xml:space="preserve">{words}</w:t>', look)


def p(*runs: str) -> str:
    return f"<w:p>{''.join(runs)}</w:p>"


def item(words: str, number: int, depth: int = 0) -> str:
    return paragraph(words, properties=numbered(number, depth))


def row(*cells: str, properties: str = "") -> str:
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(cells)}</w:tr>"


def cell(words: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(words) if words else '<w:p/>'}</w:tc>"


def test_headings_are_known_by_name_by_level_and_by_descent(tmp_path: Path) -> None:
    body = "".join(
        [
            paragraph("Eins", "berschrift1"),
            paragraph("Zwei", "Kapitel"),
            paragraph("Drei", "Eigene"),
            paragraph("Vier", properties='<w:outlineLvl w:val="1"/>'),
            paragraph("Text", properties='<w:outlineLvl w:val="9"/>'),
            paragraph("More", "Loop"),
        ]
    )
    extracted = read(PROCESSOR, tmp_path, docx(body, styles=HEADINGS))
    assert extracted.markdown == "# Eins\n\n# Zwei\n\n### Drei\n\n## Vier\n\nText\n\nMore"
    assert [(entry.level, entry.title) for entry in extracted.outline] == [
        (1, "Eins"),
        (1, "Zwei"),
        (3, "Drei"),
        (2, "Vier"),
    ]


def test_below_a_title_headings_are_one_level_deeper(tmp_path: Path) -> None:
    body = paragraph("The Book", "Title") + paragraph("Chapter", "berschrift1")
    assert markdown(PROCESSOR, tmp_path, docx(body, styles=HEADINGS)) == "# The Book\n\n## Chapter"


def test_lists_count_as_word_does(tmp_path: Path) -> None:
    body = "".join(
        [
            item("a", 1),
            item("b", 1, 1),
            item("c", 1, 1),
            item("d", 1, 2),
            item("e", 1),
            item("f", 1, 1),
            paragraph("Text"),
        ]
    )
    body += item("g", 1) + paragraph("More") + item("h", 3) + item("i", 3) + item("bullet", 2)
    assert markdown(PROCESSOR, tmp_path, docx(body, numbering=LISTS)) == (
        "1. a\n   - (a) b\n   - (b) c\n     - 1.b.1 d\n2. e\n   - (a) f\n\nText\n\n"
        "3. g\n\nMore\n\n1. h\n2. i\n\n- bullet"
    )


def test_headings_keep_their_numbers(tmp_path: Path) -> None:
    body = paragraph("First", "berschrift1", numbered(1)) + paragraph("Second", "berschrift1", numbered(1))
    assert markdown(PROCESSOR, tmp_path, docx(body, styles=HEADINGS, numbering=LISTS)) == "# 1. First\n\n# 2. Second"


def test_looks_and_links(tmp_path: Path) -> None:
    body = p(
        text("A "), text("bold", "<w:b/>"), text(" and "), text("not", '<w:b w:val="0"/>'), text(" "),
        text("gone", "<w:vanish/>"), text("italic", "<w:i/>"), text(", "),
        f'<w:hyperlink r:id="rL">{text("here")}</w:hyperlink>', text(" or "),
        f'<w:hyperlink r:id="rJ">{text("there")}</w:hyperlink>',
    )  # fmt: skip
    expected = "A **bold** and not *italic*, [here](https://example.org/a%28b%29) or there"
    assert markdown(PROCESSOR, tmp_path, docx(body)) == expected


def test_fields_show_their_result_only(tmp_path: Path) -> None:
    def mark(kind: str) -> str:
        return run(f'<w:fldChar w:fldCharType="{kind}"/>')

    body = p(
        text("See "), mark("begin"), run('<w:instrText> HYPERLINK "https://x.org" </w:instrText>'), mark("separate"),
        text("this"), mark("end"), text(" on page "), mark("begin"), run("<w:instrText> PAGE </w:instrText>"),
        mark("separate"), text("7"), mark("end"), text("."),
    )  # fmt: skip
    assert markdown(PROCESSOR, tmp_path, docx(body)) == "See [this](https://x.org) on page 7."


def test_insertions_count_and_deletions_do_not(tmp_path: Path) -> None:
    body = p(
        text("The "),
        f"<w:del>{run('<w:delText>old </w:delText>')}</w:del>",
        f"<w:ins>{text('new ')}</w:ins>",
        text("text"),
    )
    body += f"<w:ins>{paragraph('Added')}</w:ins><w:moveFrom>{paragraph('Moved away')}</w:moveFrom>"
    body += f"<w:tbl>{row(cell('a'), cell('b'))}{row(cell('c'), cell('d'), properties='<w:del/>')}</w:tbl>"
    assert markdown(PROCESSOR, tmp_path, docx(body)) == "The new text\n\nAdded\n\n| a | b |\n| --- | --- |"


def test_merged_cells_stand_in_every_place_they_cover(tmp_path: Path) -> None:
    body = "<w:tbl>" + row(cell("Head", '<w:gridSpan w:val="2"/>'), cell("Last"))
    body += row(cell("down", '<w:vMerge w:val="restart"/>'), cell("x"), cell("1"))
    body += row(cell("", "<w:vMerge/>"), cell("y|z"), cell("2"))
    body += row(cell("late"), cell("3"), properties='<w:gridBefore w:val="1"/>') + "</w:tbl>"
    assert markdown(PROCESSOR, tmp_path, docx(body)).split("\n") == [
        "| Head | Head | Last |",
        "| --- | --- | --- |",
        "| down | x | 1 |",
        "| down | y\\|z | 2 |",
        "|  | late | 3 |",
    ]


def test_a_frame_around_text_is_no_table_and_nested_tables_are_text(tmp_path: Path) -> None:
    inner = f"<w:tbl>{row(cell('in'), cell('side'))}</w:tbl>"
    body = f"<w:tbl>{row(cell('framed'))}</w:tbl><w:tbl>{row(f'<w:tc>{inner}<w:p/></w:tc>', cell('beside'))}</w:tbl>"
    assert markdown(PROCESSOR, tmp_path, docx(body)) == "framed\n\n| in side | beside |\n| --- | --- |"


def test_text_boxes_are_read_once(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{paragraph('in the box')}</w:txbxContent>"
    drawn = (
        f"<mc:AlternateContent><mc:Choice><w:drawing><wps:txbx>{box}</wps:txbx></w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent>"
    )
    assert markdown(PROCESSOR, tmp_path, docx(p(text("before"), run(drawn)))) == "before\n\nin the box"


def test_pictures_are_what_they_say_of_themselves(tmp_path: Path) -> None:
    body = p(
        text("Look:"),
        run('<w:drawing><wp:inline><wp:docPr name="Picture 1" descr="A red tower"/></wp:inline></w:drawing>'),
    )
    assert markdown(PROCESSOR, tmp_path, docx(body)) == "Look: [Image: A red tower]"


def test_notes_stand_at_the_end_in_the_order_of_the_text(tmp_path: Path) -> None:
    notes = "".join(f'<w:footnote w:id="{n}">{paragraph(f"note {n}")}</w:footnote>' for n in (1, 2))
    body = p(text("B"), run('<w:footnoteReference w:id="2"/>'), text(" A"), run('<w:footnoteReference w:id="1"/>'))
    data = docx(body, more={"word/footnotes.xml": f"<w:footnotes {W}>{notes}</w:footnotes>"})
    assert markdown(PROCESSOR, tmp_path, data) == "B[^1] A[^2]\n\n[^1]: note 2\n[^2]: note 1"


def test_formulas_are_written_as_people_type_them(tmp_path: Path) -> None:
    fraction = "<m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f>"
    root = f"<m:rad><m:deg/><m:e>{fraction}</m:e></m:rad>"
    square = f"<m:sSup><m:e>{root}</m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    body = p(text("If "), f"<m:oMath>{fraction}</m:oMath>") + p(
        f"<m:oMathPara><m:oMath>{square}</m:oMath></m:oMathPara>"
    )
    assert markdown(PROCESSOR, tmp_path, docx(body)) == (
        'If <math>a/b</math>\n\n<math display="block">(√(a/b))^2</math>'
    )


def test_code_is_known_by_its_style_or_its_font(tmp_path: Path) -> None:
    style = '<w:style w:styleId="SC"><w:name w:val="Source Code"/></w:style>'
    courier = '<w:rFonts w:ascii="Courier New"/>'
    body = paragraph("import os", "SC") + paragraph("os.getcwd()", "SC") + paragraph("Text")
    body += p(text("A letter in Courier", courier)) + p(text("x = 1;", courier))
    assert (
        markdown(PROCESSOR, tmp_path, docx(body, styles=style))
        == "```\nimport os\nos.getcwd()\n```\n\nText\n\nA letter in Courier\n\n```\nx = 1;\n```"
    )


@pytest.mark.parametrize(("counted", "pages"), [(2, 2), (7, 0)], ids=["agreed", "doubtful"])
def test_pages_are_only_told_where_word_counted_the_same(tmp_path: Path, counted: int, pages: int) -> None:
    app = f'<Properties xmlns="{OOXML}/officeDocument/2006/extended-properties"><Pages>{counted}</Pages></Properties>'
    body = p(text("On the first, "), run("<w:lastRenderedPageBreak/><w:t># on the second</w:t>")) + paragraph("Second")
    extracted = read(PROCESSOR, tmp_path, docx(body, more={"docProps/app.xml": app}))
    assert extracted.markdown == "On the first, # on the second\n\nSecond"
    assert len(extracted.pages) == pages
    if pages:
        assert extracted.markdown[extracted.pages[1].start :].startswith("# on the second")
        assert [block.page for block in extracted.blocks] == [1, 2]


def test_the_strict_edition_is_read_too(tmp_path: Path) -> None:
    strict = "http://purl.oclc.org/ooxml/wordprocessingml/main"
    body = "<d:p><d:r><d:t>Strict</d:t></d:r></d:p>"
    data = archive(
        {
            "_rels/.rels": relations({"r1": ("officeDocument", "word/document.xml")}),
            "word/document.xml": f'<d:document xmlns:d="{strict}"><d:body>{body}</d:body></d:document>',
        }
    )
    assert markdown(PROCESSOR, tmp_path, data) == "Strict"


def test_what_it_says_of_itself(tmp_path: Path) -> None:
    about = core("A &amp; B", "Ann", "2024-05-06T07:08:09Z")
    metadata = read(PROCESSOR, tmp_path, docx(paragraph("Text"), more={"docProps/core.xml": about})).metadata
    assert (metadata.title, metadata.author, metadata.date) == ("A & B", "Ann", "2024-05-06")


def test_a_title_that_word_made_up_is_none(tmp_path: Path) -> None:
    data = docx(paragraph("Real", "berschrift1"), styles=HEADINGS, more={"docProps/core.xml": core("Word Document")})
    assert read(PROCESSOR, tmp_path, data).metadata.title == "Real"


def test_blocks_are_where_they_say(tmp_path: Path) -> None:
    body = (
        paragraph("Head", "berschrift1")
        + item("a", 2)
        + f"<w:tbl>{row(cell('x'), cell('y'))}</w:tbl>"
        + paragraph("End")
    )
    extracted = read(PROCESSOR, tmp_path, docx(body, styles=HEADINGS, numbering=LISTS))
    kinds = [BlockKind.HEADING, BlockKind.LIST, BlockKind.TABLE, BlockKind.PARAGRAPH]
    assert [block.kind for block in extracted.blocks] == kinds
    assert extracted.markdown[extracted.blocks[-1].start :] == "End"


def test_a_billion_laughs_are_refused_at_once(tmp_path: Path) -> None:
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = f"<w:document {W}><w:body>{paragraph('&l9;')}</w:body></w:document>"
    bomb = f'<!DOCTYPE w [<!ENTITY l0 "lol">{levels}]>{body}'
    with pytest.raises(BadInput, match=r"entities|damaged"):
        read(PROCESSOR, tmp_path, docx("", more={"word/document.xml": bomb}))


def test_files_of_the_machine_stay_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    body = f"<w:document {W}><w:body>{paragraph('&s;')}</w:body></w:document>"
    thief = f'<!DOCTYPE w [<!ENTITY s SYSTEM "{secret}">]>{body}'
    with pytest.raises(BadInput):
        read(PROCESSOR, tmp_path, docx("", more={"word/document.xml": thief}))


def test_deep_nesting_is_damage(tmp_path: Path) -> None:
    deep = "<w:sdt><w:sdtContent>" * 5000 + paragraph("deep") + "</w:sdtContent></w:sdt>" * 5000
    with pytest.raises(BadInput, match="damaged"):
        read(PROCESSOR, tmp_path, docx(deep))


def test_numbers_out_of_all_proportion_do_no_harm(tmp_path: Path) -> None:
    wide = cell("wide", '<w:gridSpan w:val="999999999"/>')
    body = f"<w:tbl>{row(wide, cell('b'))}{row(cell('c'), cell('d'))}</w:tbl>" + item("deep", 1, 99) + item("none", 77)
    assert "wide" in markdown(PROCESSOR, tmp_path, docx(body, numbering=LISTS))


@pytest.mark.parametrize(
    "body", ["", "<w:p/>", f"<w:tbl>{row(cell(''), cell(''))}</w:tbl>"], ids=["nothing", "blank", "cells"]
)
def test_no_words_are_empty(tmp_path: Path, body: str) -> None:
    with pytest.raises(Empty):
        read(PROCESSOR, tmp_path, docx(body))


@pytest.mark.parametrize("content", ["", "<w:document", "text", "<other/>"], ids=["nothing", "cut", "text", "other"])
def test_damage_is_told(tmp_path: Path, content: str) -> None:
    with pytest.raises(BadInput):
        read(PROCESSOR, tmp_path, docx("", more={"word/document.xml": content}))


def test_powers_symbols_and_readings_are_kept(tmp_path: Path) -> None:
    body = (
        "<w:p><w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>-5</w:t></w:r>"
        "<w:r><w:t xml:space='preserve"
        "'> m</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>2</w:t></w:r></w:p>"
        "<w:p><w:r><w:sym w:font='Symbol' w:char='F061'/></w:r><w:r><w:t> at 20 </w:t></w:r>"
        "<w:r><w:sym w:font='Symbol' w:char='F0B0'/></w:r><w:r><w:sym w:font='Wingdings' w:char='F0FC'/></w:r>"
        "<w:r><w:rPr><w:rFonts w:ascii='Symbol'/></w:rPr><w:t>\uf0b3\uf02d</w:t></w:r></w:p>"
        "<w:p><w:r><w:ruby><w:rt><w:r><w:t>かんじ</w:t></w:r></w:rt>"
        "<w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase></w:ruby></w:r></w:p>"
    )
    assert markdown(PROCESSOR, tmp_path, docx(body)) == "10^-5 m2\n\nα at 20 °✓≥−\n\n漢字(かんじ)"  # noqa: RUF001


def test_list_styles_are_as_deep_as_their_names_say(tmp_path: Path) -> None:
    names = ("List Bullet", "List Bullet 2", "List Bullet 3")
    styles = "".join(
        f'<w:style w:styleId="B{n}"><w:name w:val="{name}"/><w:pPr>{numbered(n)}</w:pPr></w:style>'
        for n, name in enumerate(names, 1)
    )
    level = '<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>'
    lists = "".join(f'<w:abstractNum w:abstractNumId="{n}">{level}</w:abstractNum>' for n in (1, 2, 3))
    lists += "".join(f'<w:num w:numId="{n}"><w:abstractNumId w:val="{n}"/></w:num>' for n in (1, 2, 3))
    body = paragraph("one", "B1") + paragraph("two", "B2") + paragraph("three", "B3") + paragraph("four", "B1")
    assert markdown(PROCESSOR, tmp_path, docx(body, styles=styles, numbering=lists)) == (
        "- one\n  - two\n    - three\n- four"
    )
