"""Pictures, charts and comments of office files, books, pages and mails are where they belong in the text."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from octavo.core.errors import NotFound, OctavoError
from octavo.extract.detect import Hints
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.formats import known_processors, read_figure
from octavo.extract.office.assemble import MOST_FIGURES, Figures
from tests.support.office import (
    OOXML,
    RELATIONS,
    archive,
    docx,
    epub,
    page,
    paragraph,
    pptx,
    relations,
    rows,
    shape,
    slide,
    xlsx,
)

A = f'xmlns:a="{OOXML}/drawingml/2006/main" xmlns:r="{RELATIONS}"'
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x20\0\0\0\x20" + bytes(20)
SPACER = b"GIF89a\x01\0\x01\0" + bytes(30)
CHART = f"""<c:chartSpace xmlns:c="{OOXML}/drawingml/2006/chart" {A}><c:chart><c:title><c:tx><c:rich><a:p><a:r>
<a:t>Ducks by year</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser><c:tx><c:strRef>
<c:strCache><c:pt idx="0"><c:v>Mallard</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache>
<c:pt idx="0"><c:v>2019</c:v></c:pt><c:pt idx="1"><c:v>2020</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val>
<c:numRef><c:numCache><c:pt idx="0"><c:v>7</c:v></c:pt><c:pt idx="1"><c:v>9</c:v></c:pt></c:numCache></c:numRef>
</c:val></c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>"""
TABLE = "Ducks by year  \nBar chart\n\n|  | Mallard |\n| --- | --- |\n| 2019 | 7 |\n| 2020 | 9 |"
BLIP = '<a:blip r:embed="rP"/>'
CHART_FRAME = f'<c:chart xmlns:c="{OOXML}/drawingml/2006/chart" r:id="rC"/>'


def read(folder: Path, kind: SourceType, data: bytes) -> tuple[Path, Extracted]:
    file = folder / "file"
    file.write_bytes(data)
    return file, known_processors()[kind].extract(file, Hints(kind))


def word(body: str, more: dict[str, str | bytes]) -> bytes:
    targets = {"rP": ("image", "media/a.png"), "rC": ("chart", "charts/chart1.xml"), "rK": ("comments", "comments.xml")}
    return docx(
        body, more={"word/_rels/document.xml.rels": relations({**targets, "rE": ("image", "media/b.emf")}), **more}
    )


def drawing(identifier: str, described: str, size: int = 900_000) -> str:
    return (
        f'<w:r><w:drawing><wp:inline><wp:extent cx="{size}" cy="{size}"/><wp:docPr descr="{described}"/>'
        f'<a:graphic {A}><a:blip r:embed="{identifier}"/></a:graphic></wp:inline></w:drawing></w:r>'
    )


def test_pictures_of_word_are_figures(tmp_path: Path) -> None:
    body = paragraph("Before") + f"<w:p>{drawing('rP', 'A [tall] tower')}</w:p>" + paragraph("After")
    file, extracted = read(tmp_path, SourceType.DOCX, word(body, {"word/media/a.png": PNG}))
    assert extracted.markdown == "Before\n\n![A \\[tall\\] tower](figures/1.png)\n\nAfter"
    (figure,) = extracted.figures
    assert (figure.number, figure.member, figure.alternative) == (1, "word/media/a.png", "A [tall] tower")
    assert extracted.markdown[figure.start :].startswith("![A")
    assert read_figure(file, SourceType.DOCX, "word/media/a.png") == PNG


def test_spacers_are_left_out_and_windows_drawings_have_no_picture(tmp_path: Path) -> None:
    body = paragraph("Text") + f"<w:p>{drawing('rP', '', 9_525)}</w:p><w:p>{drawing('rE', 'A plan')}</w:p>"
    _, extracted = read(tmp_path, SourceType.DOCX, word(body, {}))
    assert [(one.kind, one.member, one.alternative) for one in extracted.figures] == [("drawing", None, "A plan")]


def test_charts_of_word_are_tables(tmp_path: Path) -> None:
    chart = f"<w:p><w:r><w:drawing><wp:inline {A}>{CHART_FRAME}</wp:inline></w:drawing></w:r></w:p>"
    _, extracted = read(tmp_path, SourceType.DOCX, word(paragraph("See:") + chart, {"word/charts/chart1.xml": CHART}))
    assert extracted.markdown == f"See:\n\n{TABLE}"


def test_comments_of_word_follow_their_paragraph_or_list(tmp_path: Path) -> None:
    mark = '<w:r><w:commentReference w:id="{}"/></w:r>'
    numbering = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
    item = f"<w:p><w:pPr>{numbering}</w:pPr><w:r><w:t>item</w:t></w:r>{{}}</w:p>"
    body = f"<w:p><w:r><w:t>First</w:t></w:r>{mark.format(1)}</w:p>" + item.format(mark.format(2)) + item.format("")
    comments = "".join(
        f'<w:comment w:id="{number}" w:author="Ann">{paragraph(text)}</w:comment>'
        for number, text in ((1, "Really?"), (2, "Which?"))
    )
    namespace = f'xmlns:w="{OOXML}/wordprocessingml/2006/main"'
    more: dict[str, str | bytes] = {
        "word/comments.xml": f"<w:comments {namespace}>{comments}</w:comments>",
        "word/numbering.xml": f'<w:numbering {namespace}><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0">'
        '<w:numFmt w:val="bullet"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        "</w:numbering>",
        "word/_rels/document.xml.rels": relations(
            {"rK": ("comments", "comments.xml"), "rN": ("numbering", "numbering.xml")}
        ),
    }
    _, extracted = read(tmp_path, SourceType.DOCX, docx(body + paragraph("Last"), more=more))
    assert extracted.markdown == (
        "First\n\n> Comment by Ann: Really?\n\n- item\n- item\n\n> Comment by Ann: Which?\n\nLast"
    )


def test_slides_have_pictures_charts_and_comments(tmp_path: Path) -> None:
    picture = f'<p:pic><p:nvPicPr><p:cNvPr descr="A duck"/></p:nvPicPr><p:blipFill {A}>{BLIP}</p:blipFill></p:pic>'
    frame = f"<p:graphicFrame {A}>{CHART_FRAME}</p:graphicFrame>"
    targets = {
        "rP": ("image", "../media/a.png"),
        "rC": ("chart", "../charts/c.xml"),
        "rK": ("comments", "../comments/c.xml"),
    }
    comment = (
        f'<p:cmLst xmlns:p="{OOXML}/presentationml/2006/main"><p:cm authorId="0"><p:text>Nice</p:text></p:cm></p:cmLst>'
    )
    more: dict[str, str | bytes] = {
        "ppt/slides/_rels/slide1.xml.rels": relations(targets),
        "ppt/charts/c.xml": CHART,
        "ppt/media/a.png": PNG,
        "ppt/comments/c.xml": comment,
        "ppt/_rels/presentation.xml.rels": relations(
            {"r0": ("slide", "slides/slide1.xml"), "rA": ("commentAuthors", "commentAuthors.xml")}
        ),
        "ppt/commentAuthors.xml": '<authors><author id="0" name="Bob"/></authors>',
    }
    file, extracted = read(tmp_path, SourceType.PPTX, pptx([slide(shape("title", "Birds") + picture + frame)], more))
    assert extracted.markdown == f"# Birds\n\n![A duck](figures/1.png)\n\n{TABLE}\n\n> Comment by Bob: Nice"
    assert read_figure(file, SourceType.PPTX, extracted.figures[0].member or "") == PNG


def test_no_shape_is_read_before_one_above_it_or_at_its_left(tmp_path: Path) -> None:
    def placed(text: str, left: int, top: int) -> str:
        return (
            f'<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:spPr><a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="90" cy="9"/>'
            f"</a:xfrm></p:spPr><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )

    shapes = placed("below", 0, 50) + placed("right", 200, 0) + placed("above", 0, 0)
    _, extracted = read(tmp_path, SourceType.PPTX, pptx([slide(shapes)]))
    assert extracted.markdown == "above\n\nbelow\n\nright"


def test_sheets_have_charts_pictures_and_comments_where_they_are(tmp_path: Path) -> None:
    x = f"{OOXML}/drawingml/2006/spreadsheetDrawing"
    anchor = "<x:twoCellAnchor><x:from><x:col>4</x:col><x:row>{}</x:row></x:from>{}</x:twoCellAnchor>"
    drawn = f'<x:wsDr xmlns:x="{x}" {A}>{anchor.format(9, CHART_FRAME)}{anchor.format(0, BLIP)}</x:wsDr>'
    note = '<comment ref="B2" authorId="0"><text><t>Sure?</t></text></comment>'
    more: dict[str, str | bytes] = {
        "xl/worksheets/_rels/sheet1.xml.rels": relations(
            {"rD": ("drawing", "../drawings/d.xml"), "rK": ("comments", "../comments1.xml")}
        ),
        "xl/drawings/d.xml": drawn,
        "xl/drawings/_rels/d.xml.rels": relations(
            {"rC": ("chart", "../charts/c.xml"), "rP": ("image", "../media/a.png")}
        ),
        "xl/charts/c.xml": CHART,
        "xl/media/a.png": PNG,
        "xl/comments1.xml": f"<comments><authors><author>Ann</author></authors>{note}</comments>",
    }
    data = xlsx({"One": rows(("a", "b"), (1, 2), (), ("c", "d"), (3, 4))}, more=more)
    file, extracted = read(tmp_path, SourceType.XLSX, data)
    first, second = "| a | b |\n| --- | --- |\n| 1 | 2 |", "| c | d |\n| --- | --- |\n| 3 | 4 |"
    picture, comment = "![](figures/1.png)", "> Comment by Ann on B2: Sure?"
    assert extracted.markdown == f"# One\n\n{first}\n\n{picture}\n\n{second}\n\n{TABLE}\n\n{comment}"
    assert read_figure(file, SourceType.XLSX, "xl/media/a.png") == PNG


def test_tables_side_by_side_are_separate_and_a_title_is_a_paragraph(tmp_path: Path) -> None:
    sheet = rows(("Stock", None, None, "k", "v"), ("a", "b", None, "x", 1), (1, 2, None, "y", 2))
    _, extracted = read(tmp_path, SourceType.XLSX, xlsx({"S": sheet}))
    assert extracted.markdown == (
        "# S\n\nStock\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| k | v |\n| --- | --- |\n| x | 1 |\n| y | 2 |"
    )


def test_pictures_and_formulas_of_books(tmp_path: Path) -> None:
    maths = '<math xmlns="http://www.w3.org/1998/Math/MathML"><mfrac><mi>a</mi><mi>b</mi></mfrac></math>'
    figure = '<figure><img src="img/a%20b.png" alt="A map"/><figcaption>Map 1</figcaption></figure>'
    body = f"<h1>One</h1>{figure}<p>If {maths}.</p>"
    file, extracted = read(tmp_path, SourceType.EPUB, epub({"one.xhtml": page(body)}, more={"OEBPS/img/a b.png": PNG}))
    assert "![A map](figures/1.png)" in extracted.markdown
    assert "If <math>a/b</math>." in extracted.markdown
    (found,) = extracted.figures
    assert found.caption == "Map 1"
    assert read_figure(file, SourceType.EPUB, found.member or "") == PNG


def data_address(content: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{b64encode(content).decode()}"


def test_pictures_inside_a_page_are_figures(tmp_path: Path) -> None:
    html = (
        f'<p>Text</p><img src="{data_address(SPACER, "gif")}"><p><img alt="A tree" src="{data_address(PNG)}"></p>'
        '<img src="https://x.org/a.png" alt="Far"><img src="local.png" alt="Near">'
    )
    file, extracted = read(tmp_path, SourceType.HTML, html.encode())
    assert [one.member for one in extracted.figures] == ["data:2"]
    assert "![A tree](figures/1.png)" in extracted.markdown
    assert "![Far](https://x.org/a.png)" in extracted.markdown
    assert "[Image: Near]" in extracted.markdown
    assert read_figure(file, SourceType.HTML, "data:2") == PNG


def test_pictures_of_a_mail_are_shown_in_its_text(tmp_path: Path) -> None:
    mail = (
        'MIME-Version: 1.0\nSubject: Hi\nContent-Type: multipart/related; boundary="b"\n\n--b\n'
        "Content-Type: text/html\n\n"
        '<p>Look: <img src="cid:one@x" alt="Us"></p>\n--b\nContent-Type: image/png\nContent-ID: <one@x>\n'
        f"Content-Transfer-Encoding: base64\n\n{b64encode(PNG).decode()}\n--b--\n"
    )
    file, extracted = read(tmp_path, SourceType.EML, mail.encode())
    assert "Look: ![Us](figures/1.png)" in extracted.markdown
    assert [one.member for one in extracted.figures] == ["part:3"]
    assert read_figure(file, SourceType.EML, "part:3") == PNG


@pytest.mark.parametrize(
    ("kind", "member"),
    [
        (SourceType.DOCX, "../../etc/passwd"),
        (SourceType.HTML, "data:0"),
        (SourceType.HTML, "data:99999999999"),
        (SourceType.EML, "part:7"),
        (SourceType.EML, "part:x"),
        (SourceType.RTF, "pict:1"),
        (SourceType.CSV, "x"),
    ],
)
def test_a_picture_that_is_not_there_is_not_found(tmp_path: Path, kind: SourceType, member: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(archive({"a": "b"}) if kind is SourceType.DOCX else b"Subject: x\n\ntext")
    with pytest.raises(OctavoError):
        read_figure(file, kind, member)


def test_more_figures_than_the_limit_are_only_described() -> None:
    figures = Figures()
    written = [figures.add("a.png", f"number {number}") for number in range(MOST_FIGURES + 1)]
    assert len(figures.found) == MOST_FIGURES
    assert written[-1] == f"number {MOST_FIGURES}"


def test_text_cannot_pretend_to_be_a_figure(tmp_path: Path) -> None:
    _, extracted = read(tmp_path, SourceType.DOCX, docx(paragraph("![x](figures/1.png)")))
    assert extracted.figures == ()
    assert "](figures" not in extracted.markdown.replace("\\](", "")


def test_an_unknown_type_has_no_pictures(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_figure(tmp_path / "x", SourceType.TEXT, "x")
