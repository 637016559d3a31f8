"""Small office documents and books, written by hand, so that a test shows what it is about."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, SourceType

OOXML = "http://schemas.openxmlformats.org"
RELATIONS = f"{OOXML}/officeDocument/2006/relationships"
W = (
    f'xmlns:w="{OOXML}/wordprocessingml/2006/main" xmlns:r="{RELATIONS}" '
    f'xmlns:m="{OOXML}/officeDocument/2006/math" xmlns:mc="{OOXML}/markup-compatibility/2006" '
    f'xmlns:wp="{OOXML}/drawingml/2006/wordprocessingDrawing" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)
P = f'xmlns:p="{OOXML}/presentationml/2006/main" xmlns:a="{OOXML}/drawingml/2006/main" xmlns:r="{RELATIONS}"'
ODF = "urn:oasis:names:tc:opendocument:xmlns"
O = (  # noqa: E741 - as short as what it stands for
    f'xmlns:office="{ODF}:office:1.0" xmlns:text="{ODF}:text:1.0" xmlns:table="{ODF}:table:1.0" '
    f'xmlns:style="{ODF}:style:1.0" xmlns:fo="{ODF}:xsl-fo-compatible:1.0" xmlns:draw="{ODF}:drawing:1.0" '
    f'xmlns:svg="{ODF}:svg-compatible:1.0" xmlns:meta="{ODF}:meta:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
EXTERNAL = ' TargetMode="External"'
Files = Mapping[str, str | bytes]


def archive(files: Files, *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", compression) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return memory.getvalue()


def read(processor: Processor, folder: Path, data: bytes) -> Extracted:
    """As in the sandbox, from a file without a name."""
    path = folder / "object"
    path.write_bytes(data)
    return processor.extract(path, Hints(processor.source_types[0]))


def markdown(processor: Processor, folder: Path, data: bytes) -> str:
    return read(processor, folder, data).markdown


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    """By id: the last word of the type, and the target; addresses are external."""
    rows = "".join(
        f'<Relationship Id="{key}" Type="{RELATIONS}/{kind}" Target="{target}"{EXTERNAL if ":" in target else ""}/>'
        for key, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{OOXML}/package/2006/relationships">{rows}</Relationships>'


def core(title: str = "", creator: str = "", created: str = "") -> str:
    return (
        '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        f"<dc:title>{title}</dc:title><dc:creator>{creator}</dc:creator><dcterms:created>{created}</dcterms:created>"
        "</cp:coreProperties>"
    )


def paragraph(text: str, style: str = "", properties: str = "") -> str:
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{style}{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def numbered(number: int, depth: int = 0) -> str:
    return f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>'


def docx(body: str, *, styles: str = "", numbering: str = "", more: Files | None = None) -> bytes:
    parts = {"rS": ("styles", "styles.xml"), "rN": ("numbering", "numbering.xml"), "rF": ("footnotes", "footnotes.xml"),
             "rL": ("hyperlink", "https://example.org/a(b)"), "rJ": ("hyperlink", "javascript:alert(1)")}  # fmt: skip
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations({"r1": ("officeDocument", "word/document.xml")}),
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(parts),
            "word/styles.xml": f"<w:styles {W}>{styles}</w:styles>",
            "word/numbering.xml": f"<w:numbering {W}>{numbering}</w:numbering>",
            **(more or {}),
        }
    )


def slide(shapes: str) -> str:
    return f"<p:sld {P}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"


def shape(kind: str | None, *paragraphs: str) -> str:
    """Paragraphs are XML if they begin with a tag, else text."""
    place = f'<p:ph type="{kind}"/>' if kind else "" if kind is None else '<p:ph idx="1"/>'
    texts = "".join(one if one.startswith("<") else f"<a:p><a:r><a:t>{one}</a:t></a:r></a:p>" for one in paragraphs)
    return f"<p:sp><p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr><p:txBody>{texts}</p:txBody></p:sp>"


def pptx(slides: Iterable[str], more: Files | None = None) -> bytes:
    """The slides are listed in their order and stored in the opposite one."""
    slides = list(slides)
    names = [f"slide{len(slides) - place}.xml" for place in range(len(slides))]
    ids = "".join(f'<p:sldId id="{256 + place}" r:id="r{place}"/>' for place in range(len(slides)))
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations({"r1": ("officeDocument", "ppt/presentation.xml")}),
            "ppt/presentation.xml": f"<p:presentation {P}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(
                {f"r{place}": ("slide", f"slides/{name}") for place, name in enumerate(names)}
            ),
            **{f"ppt/slides/{name}": content for name, content in zip(names, slides, strict=True)},
            **(more or {}),
        }
    )


def cell(place: str, value: str | float) -> str:
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def rows(*values: Iterable[str | float | None]) -> str:
    return "".join(
        f'<row r="{row}">'
        + "".join(cell(f"{chr(65 + column)}{row}", value) for column, value in enumerate(line) if value is not None)
        + "</row>"
        for row, line in enumerate(values, 1)
    )


def xlsx(sheets: Mapping[str, str], *, after: str = "", styles: str = "", more: Files | None = None) -> bytes:
    """Sheets by name, each the rows of its XML; `after` comes behind the rows."""
    main = f'xmlns="{OOXML}/spreadsheetml/2006/main" xmlns:r="{RELATIONS}"'
    listed = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1))
    targets = {f"r{n}": ("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)}
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations({"r1": ("officeDocument", "xl/workbook.xml")}),
            "xl/workbook.xml": f"<workbook {main}><sheets>{listed}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": relations({**targets, "rS": ("styles", "styles.xml")}),
            "xl/styles.xml": f"<styleSheet {main}>{styles}</styleSheet>",
            **{
                f"xl/worksheets/sheet{n}.xml": f"<worksheet {main}><sheetData>{content}</sheetData>{after}</worksheet>"
                for n, content in enumerate(sheets.values(), 1)
            },
            **(more or {}),
        }
    )


def odt(body: str, *, styles: str = "", meta: str = "", more: Files | None = None) -> bytes:
    return archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {O}><office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:text>{body}</office:text></office:body></office:document-content>",
            "meta.xml": f"<office:document-meta {O}><office:meta>{meta}</office:meta></office:document-meta>",
            **(more or {}),
        }
    )


def page(body: str, title: str = "A page") -> str:
    return (
        '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" '
        f'xmlns:epub="http://www.idpf.org/2007/ops"><head><title>{title}</title></head><body>{body}</body></html>'
    )


def epub(
    chapters: Mapping[str, str], *, toc: str = "", pages: str = "", ncx: str = "", more: Files | None = None
) -> bytes:
    """Chapters by file name in the order of the spine; `toc` and `pages` are items of a list, `ncx` its points."""
    items = "".join(
        f'<item id="c{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    lists = f'<nav epub:type="toc"><ol>{toc}</ol></nav>' + (
        f'<nav epub:type="page-list"><ol>{pages}</ol></nav>' if pages else ""
    )
    if toc:
        items += '<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
    if ncx:
        items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    about = (
        "<dc:title>A Book</dc:title><dc:creator>Ann Author</dc:creator>"
        '<dc:creator opf:role="trl">Tom Translator</dc:creator><dc:creator>Ben Author</dc:creator>'
        "<dc:language>en-GB</dc:language><dc:date>1999-05</dc:date><dc:publisher>A Press</dc:publisher>"
    )
    named = ' toc="ncx"' if ncx else ""
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:opf="http://www.idpf.org/2007/opf" '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>{about}</metadata>'
            f"<manifest>{items}</manifest><spine{named}>{spine}</spine></package>",
            "OEBPS/nav.xhtml": page(lists),
            "OEBPS/toc.ncx": f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{ncx}</navMap></ncx>',
            **{f"OEBPS/{name}": content for name, content in chapters.items()},
            **(more or {}),
        }
    )


def samples() -> dict[SourceType, bytes]:
    """One small document of each type, in which the word "Lighthouse" is a heading or a cell."""
    heading = '<w:style w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    mail = (
        "From: Ann <ann@example.org>\r\nMessage-ID: <1@example.org>\r\nSubject: Lighthouse\r\n\r\nThe text of it.\r\n"
    )
    return {
        SourceType.DOCX: docx(paragraph("Lighthouse", "Heading1") + paragraph("The text of it."), styles=heading),
        SourceType.PPTX: pptx([slide(shape("title", "Lighthouse") + shape(None, "The text of it."))]),
        SourceType.XLSX: xlsx({"Lighthouse": rows(["Name", "Height"], ["Roter Sand", 28.5])}),
        SourceType.ODT: odt('<text:h text:outline-level="1">Lighthouse</text:h><text:p>The text of it.</text:p>'),
        SourceType.EPUB: epub({"one.xhtml": page("<h1>Lighthouse</h1><p>The text of it.</p>")}),
        SourceType.CSV: b"Lighthouse;Height\nRoter Sand;28.5\nNeuwerk;38\n",
        SourceType.EML: mail.encode(),
        SourceType.RTF: rb"{\rtf1\ansi LIGHTHOUSE\par The text of it, which is longer than the heading above it.\par}",
    }
