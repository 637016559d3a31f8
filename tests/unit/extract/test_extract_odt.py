"""OpenDocument texts, as LibreOffice writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.core.errors import BadInput, Empty, Encrypted
from octavo.extract.detect import Hints
from octavo.extract.extracted import SourceType
from octavo.extract.formats import related_office
from octavo.extract.formats.odt import PROCESSOR
from tests.support.office import ODF, O, archive, markdown, odt, read

STYLES = """
<style:style style:name="T1" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>
<style:style style:name="T2" style:family="text"><style:text-properties fo:font-style="italic"/></style:style>
<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>
<style:style style:name="P2" style:family="paragraph" style:parent-style-name="Preformatted_20_Text"/>
<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"/>
<text:list-level-style-bullet text:level="2"/></text:list-style>
"""


def p(words: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{words}</text:p>'


def test_title_headings_and_looks(tmp_path: Path) -> None:
    body = p("The Paper", "P1") + '<text:h text:outline-level="2">Part</text:h>'
    body += p(
        'A <text:span text:style-name="T1">bold</text:span><text:s text:c="3"/>'
        '<text:span text:style-name="T2">word</text:span>'
    )
    body += p('<text:a xlink:href="https://x.org">link</text:a><text:line-break/>next<text:tab/>x') + p("x = 1", "P2")
    assert markdown(PROCESSOR, tmp_path, odt(body, styles=STYLES)) == (
        "# The Paper\n\n### Part\n\nA **bold** *word*\n\n[link](https://x.org)  \nnext x\n\n```\nx = 1\n```"
    )


def test_lists_nest_and_count(tmp_path: Path) -> None:
    inner = f"<text:list><text:list-item>{p('b')}</text:list-item></text:list>"
    body = (
        f'<text:list text:style-name="L1"><text:list-item>{p("a")}{inner}</text:list-item>'
        f'<text:list-item text:start-value="5">{p("c")}</text:list-item></text:list>'
        f"<text:list><text:list-item>{p('plain')}</text:list-item></text:list>"
    )
    assert markdown(PROCESSOR, tmp_path, odt(body, styles=STYLES)) == "1. a\n   - b\n\n5) c\n\n- plain"


def test_tables_with_merged_and_repeated_cells(tmp_path: Path) -> None:
    def cell(words: str, attributes: str = "") -> str:
        return f"<table:table-cell {attributes}>{p(words) if words else ''}</table:table-cell>"

    covered = "<table:covered-table-cell/>"
    rows = [
        cell("Head", 'table:number-columns-spanned="2"') + covered + cell("Last"),
        cell("down", 'table:number-rows-spanned="2"') + cell("x", 'table:number-columns-repeated="2"'),
        covered + cell("y") + cell("z") + cell("", 'table:number-columns-repeated="1000000"'),
    ]
    body = "<table:table>" + "".join(f"<table:table-row>{row}</table:table-row>" for row in rows) + "</table:table>"
    assert markdown(PROCESSOR, tmp_path, odt(body)) == (
        "| Head | Head | Last |\n| --- | --- | --- |\n| down | x | x |\n| down | y | z |"
    )


def test_notes_changes_comments_and_boxes(tmp_path: Path) -> None:
    inside = f"<text:note-citation>7</text:note-citation><text:note-body>{p('The note.')}</text:note-body>"
    note = f"<text:note>{inside}</text:note>"
    body = f"<text:tracked-changes>{p('deleted')}</text:tracked-changes>"
    body += p(f"Text{note}<office:annotation>{p('comment')}</office:annotation> goes on.")
    body += p(f"<draw:frame><draw:text-box>{p('boxed')}</draw:text-box></draw:frame>")
    body += p("<draw:frame><draw:image/><svg:desc>A tower</svg:desc></draw:frame>")
    body += f"<text:section>{p('in a section')}</text:section>"
    assert markdown(PROCESSOR, tmp_path, odt(body)) == (
        "Text[^1] goes on.\n\n> Comment: comment\n\nboxed\n\n[Image: A tower]\n\nin a section\n\n[^1]: The note."
    )


MATHS = """<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mrow><mfrac><mi>a</mi><mi>b</mi></mfrac>
<mo>=</mo><msup><mi>x</mi><mn>2</mn></msup></mrow><annotation encoding="StarMath 5.0">a over b = x^2</annotation>
</semantics></math>"""


def test_formulas_and_pictures_are_kept(tmp_path: Path) -> None:
    body = p('If <draw:frame><draw:object xlink:href="./Object 1"/><draw:image xlink:href="./X"/></draw:frame> then')
    body += p('<draw:frame><draw:image xlink:href="Pictures/a.png"/><svg:title>A tower</svg:title></draw:frame>')
    extracted = read(PROCESSOR, tmp_path, odt(body, more={"Object 1/content.xml": MATHS, "Pictures/a.png": b"picture"}))
    assert extracted.markdown == "If <math>a/b = x^2</math> then\n\n![A tower](figures/1.png)"
    assert [(one.member, one.start) for one in extracted.figures] == [("Pictures/a.png", 32)]


def test_a_chart_is_its_table(tmp_path: Path) -> None:
    rows = "".join(
        f"<table:table-row><table:table-cell>{p(a)}</table:table-cell><table:table-cell>{p(b)}</table:table-cell>"
        "</table:table-row>"
        for a, b in (("Year", "Ducks"), ("2024", "7"))
    )
    content = (
        f'<office:document-content xmlns:office="{ODF}:office:1.0" xmlns:table="{ODF}:table:1.0" '
        f'xmlns:text="{ODF}:text:1.0"><office:body><office:chart><table:table>{rows}</table:table></office:chart>'
        "</office:body></office:document-content>"
    )
    body = p('<draw:frame><draw:object xlink:href="./Object 2"/></draw:frame>') + p("after")
    written = markdown(PROCESSOR, tmp_path, odt(body, more={"Object 2/content.xml": content}))
    assert written == "| Year | Ducks |\n| --- | --- |\n| 2024 | 7 |\n\nafter"


def test_pages_are_only_told_where_the_program_counted_the_same(tmp_path: Path) -> None:
    body = p("One <text:soft-page-break/>two") + "<text:soft-page-break/>" + p("three")
    extracted = read(PROCESSOR, tmp_path, odt(body, meta='<meta:document-statistic meta:page-count="3"/>'))
    assert [extracted.markdown[page.start : page.end].strip() for page in extracted.pages] == ["One", "two", "three"]
    assert read(PROCESSOR, tmp_path, odt(body, meta='<meta:document-statistic meta:page-count="9"/>')).pages == ()


def test_what_it_says_of_itself(tmp_path: Path) -> None:
    meta = "<dc:title>T</dc:title><meta:initial-creator>Ann</meta:initial-creator><dc:creator>Bob</dc:creator>"
    meta += "<meta:creation-date>2020-01-02T03:04:05</meta:creation-date><dc:language>de-DE</dc:language>"
    about = read(PROCESSOR, tmp_path, odt(p("Text"), meta=meta)).metadata
    assert (about.title, about.author, about.date, about.language) == ("T", "Ann", "2020-01-02", "de-DE")


def test_a_password_is_told(tmp_path: Path) -> None:
    locked = "<m:file-entry><m:encryption-data/></m:file-entry>"
    manifest = f'<m:manifest xmlns:m="{ODF}:manifest:1.0">{locked}</m:manifest>'
    with pytest.raises(Encrypted):
        read(PROCESSOR, tmp_path, odt("", more={"META-INF/manifest.xml": manifest, "content.xml": b"\x01\x02"}))


def test_no_words_are_empty_and_damage_is_told(tmp_path: Path) -> None:
    with pytest.raises(Empty):
        read(PROCESSOR, tmp_path, odt(p("")))
    with pytest.raises(BadInput, match="damaged"):
        read(PROCESSOR, tmp_path, odt("", more={"content.xml": "<office"}))


def test_a_table_with_an_empty_first_row_is_read(tmp_path: Path) -> None:
    empty = "<table:table-cell/>" * 2
    filled = "".join(f"<table:table-cell>{p(words)}</table:table-cell>" for words in ("Name", "Sum"))
    rows = "".join(f"<table:table-row>{row}</table:table-row>" for row in (empty, filled, empty))
    found = markdown(PROCESSOR, tmp_path, odt(p("Before.") + f"<table:table>{rows}</table:table>" + p("After.")))
    assert "| Name | Sum |" in found
    assert found.startswith("Before.")
    assert found.endswith("After.")


def test_cells_that_a_span_covers_may_be_left_out_or_repeated(tmp_path: Path) -> None:
    def one(text: str, more: str = "") -> str:
        return f"<table:table-cell {more}><text:p>{text}</text:p></table:table-cell>"

    down, across = 'table:number-rows-spanned="2"', 'table:number-columns-spanned="3"'
    covered = '<table:covered-table-cell table:number-columns-repeated="2"/>'
    rows = [
        one("a", down) + one("b") + one("c"),
        one("d") + one("e"),
        one("wide", across),
        one("all", across) + covered,
    ]
    body = f"<table:table>{''.join(f'<table:table-row>{row}</table:table-row>' for row in rows)}</table:table>"
    assert markdown(PROCESSOR, tmp_path, odt(body)) == (
        "| a | b | c |\n| --- | --- | --- |\n| a | d | e |\n| wide | wide | wide |\n| all | all | all |"
    )


def test_powers_and_readings_are_kept_in_text(tmp_path: Path) -> None:
    styles = '<style:style style:name="T1"><style:text-properties style:text-position="super 58%"/></style:style>'
    body = (
        '<text:p>10<text:span text:style-name="T1">5</text:span> and <text:ruby><text:ruby-base>漢字</text:ruby-base>'
        "<text:ruby-text>かんじ</text:ruby-text></text:ruby></text:p>"
    )
    assert markdown(PROCESSOR, tmp_path, odt(body, styles=styles)) == "10^5 and 漢字(かんじ)"


def test_sheets_show_amounts_as_displayed(tmp_path: Path) -> None:
    def one(kind: str, value: str, shown: str) -> str:
        value_name = {"time": "time-value", "string": "string-value"}.get(kind, "value")
        return (
            f'<table:table-cell office:value-type="{kind}" office:{value_name}="{value}">'
            f"<text:p>{shown}</text:p></table:table-cell>"
        )

    amounts = (("percentage", "0.25", "25 %"), ("currency", "1234.5", "1.234,50 €"), ("time", "PT27H1M0S", "27:01:00"))
    cells = "".join(one(*amount) for amount in amounts)
    head = "".join(one("string", name, name) for name in ("Share", "Sum", "Time"))
    rows = f"<table:table-row>{head}</table:table-row><table:table-row>{cells}</table:table-row>"
    table = f'<table:table table:name="S">{rows}</table:table>'
    content = (
        f"<office:document-content {O}><office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
        "</office:document-content>"
    )
    files = {
        "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
        "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{ODF}:manifest:1.0"/>',
        "content.xml": content,
    }
    sheet = tmp_path / "object"
    sheet.write_bytes(archive(files))
    extracted = related_office.extract(sheet, Hints(SourceType.ODS))
    assert extracted.markdown.endswith("| 25 % | 1.234,50 € | 27:01:00 |")
