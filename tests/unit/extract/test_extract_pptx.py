"""Presentations: a page for each slide, in the order in which they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.core.errors import BadInput, Empty
from octavo.extract.formats.pptx import PROCESSOR
from tests.support.office import OOXML, P, markdown, pptx, read, relations, shape, slide


def bullet(words: str, depth: int = 0, mark: str = "") -> str:
    return f'<a:p><a:pPr lvl="{depth}">{mark}</a:pPr><a:r><a:t>{words}</a:t></a:r></a:p>'


def test_each_slide_is_a_page(tmp_path: Path) -> None:
    slides = [slide(shape("ctrTitle", "The Talk")), slide(""), slide(shape(None, "Words.") + shape("title", "Second"))]
    extracted = read(PROCESSOR, tmp_path, pptx(slides))
    assert extracted.markdown == "# The Talk\n\n## Second\n\nWords."
    texts = [extracted.markdown[page.start : page.end] for page in extracted.pages]
    assert texts == ["# The Talk", "", "## Second\n\nWords."]
    assert [page.number for page in extracted.pages] == [1, 2, 3]
    assert [block.page for block in extracted.blocks] == [1, 3, 3]
    assert extracted.pages_with_text == 2


def test_texts_of_a_placeholder_are_a_list_by_level(tmp_path: Path) -> None:
    body = shape("", bullet("a"), bullet("b", 1), bullet("c"), bullet("no bullet", 0, "<a:buNone/>"))
    assert markdown(PROCESSOR, tmp_path, pptx([slide(body)])) == "- a\n  - b\n- c\n\nno bullet"


def test_a_single_line_is_no_list_and_numbers_count(tmp_path: Path) -> None:
    number = '<a:buAutoNum type="arabicPeriod"/>'
    shapes = shape("body", "Alone") + shape(
        None, bullet("x", 0, number), bullet("y", 0, number), bullet("z", 0, "<a:buChar/>")
    )
    assert markdown(PROCESSOR, tmp_path, pptx([slide(shapes)])) == "Alone\n\n1. x\n2. y\n\n- z"


def test_tables_groups_and_pictures(tmp_path: Path) -> None:
    def cell(words: str, attributes: str = "") -> str:
        return f"<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{words}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = [
        [cell("Head", 'gridSpan="2"'), cell("", 'hMerge="1"')],
        [cell("down", 'rowSpan="2"'), cell("1")],
        [cell("", 'vMerge="1"'), cell("2")],
    ]
    tbl = "".join(f"<a:tr>{''.join(row)}</a:tr>" for row in rows)
    table = (
        f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{tbl}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )
    picture = '<p:pic><p:nvPicPr><p:cNvPr id="1" name="x" descr="A tower"/></p:nvPicPr></p:pic>'
    group = f"<p:grpSp>{shape(None, 'in a group')}</p:grpSp>"
    assert markdown(PROCESSOR, tmp_path, pptx([slide(table + picture + group)])) == (
        "| Head | Head |\n| --- | --- |\n| down | 1 |\n| down | 2 |\n\n[Image: A tower]\n\nin a group"
    )


def test_what_the_speaker_wanted_to_say_is_a_quote(tmp_path: Path) -> None:
    shapes = shape("sldNum", "1") + shape("body", "Smile.", "Wave.")
    notes = f"<p:notes {P}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:notes>"
    more = {
        "ppt/slides/_rels/slide1.xml.rels": relations({"r1": ("notesSlide", "../notesSlides/n.xml")}),
        "ppt/notesSlides/n.xml": notes,
    }
    data = pptx([slide(shape("title", "Hello") + shape("ftr", "Footer"))], more)
    assert markdown(PROCESSOR, tmp_path, data) == "# Hello\n\n> Notes: Smile.\n>\n> Wave."


def test_diagrams_and_links(tmp_path: Path) -> None:
    frame = (
        f'<p:graphicFrame><a:graphic><a:graphicData><d:relIds xmlns:d="{OOXML}/drawingml/2006/diagram" r:dm="r1"/>'
        "</a:graphicData></a:graphic></p:graphicFrame>"
    )
    link = '<a:p><a:r><a:rPr b="1"><a:hlinkClick r:id="r2"/></a:rPr><a:t>web</a:t></a:r></a:p>'
    more = {
        "ppt/slides/_rels/slide1.xml.rels": relations(
            {"r1": ("diagramData", "../diagrams/d.xml"), "r2": ("hyperlink", "https://x.org")}
        ),
        "ppt/diagrams/d.xml": f"<x {P}>{bullet('step one')}{bullet('step two')}</x>",
    }
    data = pptx([slide(frame + shape(None, link))], more)
    assert markdown(PROCESSOR, tmp_path, data) == "- step one\n- step two\n\n[**web**](https://x.org)"


def test_no_words_are_empty_and_damage_is_told(tmp_path: Path) -> None:
    with pytest.raises(Empty):
        read(PROCESSOR, tmp_path, pptx([slide("")]))
    with pytest.raises(BadInput, match="damaged"):
        read(PROCESSOR, tmp_path, pptx(["<p:sld"]))


def test_bullets_come_from_the_layout_and_the_master(tmp_path: Path) -> None:
    body = '<p:sp><p:nvSpPr><p:nvPr><p:ph type="body" idx="1"/></p:nvPr></p:nvSpPr><p:txBody>{}</p:txBody></p:sp>'
    none = "<a:lstStyle><a:lvl1pPr><a:buNone/></a:lvl1pPr></a:lstStyle>"
    master = '<p:txStyles><p:bodyStyle><a:lvl2pPr><a:buChar char="•"/></a:lvl2pPr></p:bodyStyle></p:txStyles>'
    more = {
        "ppt/slides/_rels/slide1.xml.rels": relations({"r1": ("slideLayout", "../slideLayouts/l.xml")}),
        "ppt/slideLayouts/l.xml": slide(body.format(none)),
        "ppt/slideLayouts/_rels/l.xml.rels": relations({"r1": ("slideMaster", "../slideMasters/m.xml")}),
        "ppt/slideMasters/m.xml": f"<p:sldMaster {P}>{master}</p:sldMaster>",
    }
    lines = '<a:p><a:r><a:t>plain</a:t></a:r></a:p><a:p><a:pPr lvl="1"/><a:r><a:t>point</a:t></a:r></a:p>'
    assert markdown(PROCESSOR, tmp_path, pptx([slide(body.format(lines))], more)) == "plain\n\n- point"


def box(text: str, left: int, top: int) -> str:
    place = f'<p:spPr><a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="100" cy="50"/></a:xfrm></p:spPr>'
    return shape(None, text).replace("<p:txBody>", f"{place}<p:txBody>")


def test_boxes_in_a_row_are_read_from_left_to_right(tmp_path: Path) -> None:
    boxes = box("right", 300, 0) + box("below", 0, 200) + box("left", 0, 10)
    assert markdown(PROCESSOR, tmp_path, pptx([slide(boxes)])) == "left\n\nright\n\nbelow"


def test_hidden_slides_say_so_and_powers_stay_powers(tmp_path: Path) -> None:
    power = '<a:p><a:r><a:t>10</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>6</a:t></a:r></a:p>'
    hidden = slide(shape("title", "Spare") + shape(None, power)).replace("<p:sld ", '<p:sld show="0" ')
    untitled = slide(shape(None, "Text")).replace("<p:sld ", '<p:sld show="0" ')
    assert markdown(PROCESSOR, tmp_path, pptx([hidden, untitled])) == "# Spare (hidden)\n\n10^6\n\n(hidden)\n\nText"
