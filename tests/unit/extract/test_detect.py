"""A file is what its bytes say. Names and declared types are labels, which decide between kinds of text only."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.extracted import SourceType

if TYPE_CHECKING:
    from typing_extensions import Buffer

patient = settings(deadline=None)  # machines that run tests are busy

OFFICE = {"[Content_Types].xml": "<Types/>", "_rels/.rels": "<Relationships/>"}
NOISE = bytes(range(256)) * 300
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


def archive(files: Mapping[str, str | bytes], *, packed: bool = True, streamed: bool = False) -> bytes:
    """A zip file; a streamed one says the sizes of its files only behind them."""
    memory = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(_Unseekable(memory) if streamed else memory, "w", method) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return memory.getvalue()


class _Unseekable(io.RawIOBase):
    def __init__(self, memory: io.BytesIO) -> None:
        self._memory = memory

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        return self._memory.write(data)


def pdf() -> bytes:
    memory = io.BytesIO()
    document: Any = pypdfium2.PdfDocument.new()
    document.new_page(100, 100).close()
    document.save(memory)
    document.close()
    return memory.getvalue()


def image(kind: str) -> bytes:
    memory = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(memory, kind)
    return memory.getvalue()


DOCX = archive({**OFFICE, "word/document.xml": "<w/>"})
EPUB = archive({"mimetype": "application/epub+zip", "META-INF/container.xml": "<c/>"}, packed=False)
ODT = archive({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<o/>"}, packed=False)
HEIC = b"\0\0\0\x28ftypheix\0\0\0\0mif1heix" + NOISE
MAIL = "Received: from a by b\r\nFrom: Ann <ann@example.org>\r\nTo: Bob\r\nSubject: Hello\r\n\r\nText"
MEMO = "From: Ann\nTo: Bob\nSubject: Lunch\n\nAt noon?"
README = "# Project\n\nWith a [link](https://example.org) and\n\n```\ncode\n```\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (pdf(), SourceType.PDF),
        (b"\xef\xbb\xbf%PDF-1.4 text only", SourceType.PDF),
        (b"HTTP/1.1 200 OK\r\n\r\n%PDF-1.7\n1 0 obj\n<<>>" + NOISE, SourceType.PDF),
        (EPUB, SourceType.EPUB),
        # packed again by somebody who did not know that the first file must not be
        (archive({"mimetype": "application/epub+zip", "META-INF/container.xml": "<c/>"}), SourceType.EPUB),
        (DOCX, SourceType.DOCX),
        (archive({**OFFICE, "word/document.xml": "<w/>"}, streamed=True), SourceType.DOCX),
        (archive({"docProps/app.xml": "<a/>", "ppt/presentation.xml": "<p/>"}), SourceType.PPTX),
        (archive({**OFFICE, "xl/workbook.xml": "<x/>"}), SourceType.XLSX),
        (ODT, SourceType.ODT),
        (archive({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}, packed=False), SourceType.ODS),
        (archive({"mimetype": "application/vnd.oasis.opendocument.presentation"}), SourceType.ODP),
        (archive({**OFFICE, "xl/workbook.bin": "x"}), SourceType.XLSB),
        (archive({"Index/Document.iwa": "x", "Data/a.jpg": "x"}), SourceType.IWORK),
        (archive({"notes.txt": "text"}), SourceType.ARCHIVE),
        (archive({"word/list.txt": "only a folder of that name"}), SourceType.ARCHIVE),
        (archive({"report.docx": DOCX}, packed=False), SourceType.ARCHIVE),  # a zip with a document in it is a zip
        (b"PK\x03\x04", SourceType.OTHER),
        (archive({}), SourceType.OTHER),
        (b"{\\rtf1\\ansi Hello}", SourceType.RTF),
        (image("PNG"), SourceType.IMAGE),
        (image("JPEG"), SourceType.IMAGE),
        (image("GIF"), SourceType.IMAGE),
        (image("TIFF"), SourceType.IMAGE),
        (image("WEBP"), SourceType.IMAGE),
        (HEIC, SourceType.IMAGE),
        (b"<svg xmlns='http://www.w3.org/2000/svg'></svg>", SourceType.OTHER),
        (b"\x7fELF" + NOISE, SourceType.OTHER),
        (b"\x1f\x8b" + NOISE, SourceType.OTHER),
        (gzip.compress(b"text", mtime=0), SourceType.ARCHIVE),
        (bz2.compress(b"text"), SourceType.ARCHIVE),
        (lzma.compress(b"text"), SourceType.ARCHIVE),
        (b"a.txt".ljust(257, b"\0") + b"ustar\x0000".ljust(255, b"\0"), SourceType.ARCHIVE),
        (b"ID3\x04" + NOISE, SourceType.AUDIO),
        (b"\0\0\0\x18ftypmp42\0\0\0\0isommp42" + NOISE, SourceType.VIDEO),
        (b"AT&TFORM\0\0\0\x10DJVU" + NOISE, SourceType.DJVU),
        (b"book".ljust(60, b"\0") + b"BOOKMOBI" + NOISE, SourceType.MOBI),
        (OLE + "WordDocument".encode("utf-16-le") + b"\0\0", SourceType.DOC),
        (OLE + "PowerPoint Document".encode("utf-16-le") + b"\0\0", SourceType.PPT),
        (OLE + "Workbook".encode("utf-16-le") + b"\0\0", SourceType.XLS),
        (OLE + "__properties_version1.0".encode("utf-16-le") + b"\0\0", SourceType.MSG),
        (OLE + NOISE, SourceType.OTHER),
        (b"WEBVTT - Talk\n\n00:01.000 --> 00:02.000\nHello\n", SourceType.VTT),
        (b"1\r\n00:00:01,000 --> 00:00:02,500\r\nHello\r\n", SourceType.SRT),
        (b'{"name": "Ann", "age": 5}', SourceType.JSON),
        (b'[{"a": 1}, {"a": 2}]', SourceType.JSON),
        (b"[1] A reference, not a list of numbers.", SourceType.TEXT),
        (b'{"cells": [{"cell_type": "markdown", "source": []}]}', SourceType.IPYNB),
        (b"<?xml version='1.0'?><FictionBook xmlns='x'><body/></FictionBook>", SourceType.FB2),
        (b"<article article-type='research-article'><front/></article>", SourceType.JATS),
        (b"<!DOCTYPE article PUBLIC '-//NLM//DTD JATS v1.2//EN' 'a.dtd'>\n<article/>", SourceType.JATS),
        (b"<book xmlns='http://docbook.org/ns/docbook'><title>T</title></book>", SourceType.DOCBOOK),
        (b"<?xml version='1.0'?>\n<Invoice><ID>5</ID></Invoice>", SourceType.XML),
        (b"<note>marked up by hand, without a declaration</note>", SourceType.TEXT),
        (b"% comment\n\\documentclass{article}\n\\begin{document}", SourceType.LATEX),
        (b"#+TITLE: Notes\n\n* First\n", SourceType.ORG),
        (b"Title\n=====\n\n.. note:: Words.\n", SourceType.RST),
        (b"= Title\n:toc:\n\n== First\n", SourceType.ASCIIDOC),
        (b"From: <Saved by Blink>\nSubject: Page\nMIME-Version: 1.0\n\n", SourceType.MHTML),
        (b"<!DOCTYPE html><title>x</title>", SourceType.HTML),
        (b"<?xml version='1.0'?>\n<!-- made by hand -->\n<html lang='en'>", SourceType.HTML),
        ("<!DOCTYPE html>".encode("utf-16"), SourceType.HTML),
        (MAIL.encode(), SourceType.EML),
        (MEMO.encode(), SourceType.TEXT),  # people write such heads too
        (b"a;b;c\n1;2;3\n4;5;6\n", SourceType.CSV),
        (README.encode(), SourceType.MARKDOWN),
        (b"# Orchard walls\n\nPears ripen early on a wall that faces south.", SourceType.MARKDOWN),
        (b"Words first.\n\n## Walls\nPears ripen early here.", SourceType.MARKDOWN),
        (b"# Only a title", SourceType.MARKDOWN),
        (b"See [the map](https://example.org/map?x=1) for the way.", SourceType.MARKDOWN),
        (b"Take **three pears** and wait.", SourceType.MARKDOWN),
        (b"Run this:\n\n```sh\nmake\n```\n", SourceType.MARKDOWN),
        (b"Name | Age\n--- | ---\nAda | 36\n", SourceType.MARKDOWN),
        (b"To do:\n\n- [ ] prune\n- [x] water\n", SourceType.MARKDOWN),
        (b"---\ntitle: Walls\ntags:\n- pears\n---\n\nWords.", SourceType.MARKDOWN),
        # one mark that people write in other texts too
        (b"# the port\n\nport = 80\nhost = example.org\n", SourceType.TEXT),
        (b"# build it\n\ncd project\nmake -j4\ngit push\n", SourceType.TEXT),
        (b"#include the stones\n\nand the wood.", SourceType.TEXT),
        (b"We are # 1\n\nin the list.", SourceType.TEXT),
        (b"He *really* said [sic] (twice) 2 ** 3 and ** nothing **.", SourceType.TEXT),
        (b"Wall\n----\n\nPears.", SourceType.TEXT),
        (b"> quoted by mail\n\nYes.", SourceType.TEXT),
        (b"#!/bin/sh\n# comment\n\n```\n", SourceType.TEXT),
        (b"Just a sentence, with a comma.", SourceType.TEXT),
        (b"BMW and MZ build motorcycles.", SourceType.TEXT),  # two letters are no magic
        (b"Text about the header %PDF-1.4 of a file.", SourceType.TEXT),
        ("Grüße aus Köln".encode("cp1252"), SourceType.TEXT),
        ("Grüße aus Köln".encode("utf-16-le"), SourceType.TEXT),
        ("日本語のテキスト".encode("shift_jis"), SourceType.TEXT),
        (b"\x1b[31mcoloured\x1b[0m log\n" * 10, SourceType.TEXT),
        (b"text with\0a zero", SourceType.OTHER),
        (b"\x01\x02\x03\x04", SourceType.OTHER),
        (b"", SourceType.TEXT),
    ],
)
def test_the_type_is_found_without_a_name(data: bytes, expected: SourceType) -> None:
    assert detect(data[:HEAD_BYTES]) is expected


@pytest.mark.parametrize(
    ("data", "filename", "content_type", "expected"),
    [
        # names decide between kinds of text
        (b"Plain words", "notes.md", "", SourceType.MARKDOWN),
        (b"Plain words", "NOTES.MARKDOWN", "", SourceType.MARKDOWN),
        (b"Plain words", "notes", "text/markdown; charset=utf-8", SourceType.MARKDOWN),
        (b"one column\nonly", "table.csv", "", SourceType.CSV),
        (b"a,b\n1,2\n3,4\n", "table.txt", "", SourceType.TEXT),
        (b"<p>Hello</p>", "page.html", "", SourceType.HTML),
        (b"<div align='center'>\n\n# Project\n", "README.md", "", SourceType.MARKDOWN),
        (MEMO.encode(), "mail.eml", "", SourceType.EML),
        (README.encode(), "notes.txt", "", SourceType.MARKDOWN),
        (b"Plain words", "notes.rst", "", SourceType.RST),
        (b"Plain words", "notes.org", "", SourceType.ORG),
        (b"Plain words", "notes.adoc", "", SourceType.ASCIIDOC),
        (b"\\section{One} words", "part.tex", "", SourceType.LATEX),
        (b"[1, 2]", "x.json", "", SourceType.JSON),
        (b"<a><b/></a>", "x.xml", "", SourceType.XML),
        (OLE + NOISE, "old.doc", "", SourceType.DOC),
        (archive({"QuickLook/Thumbnail.jpg": "x", "index.xml": "x"}), "a.pages", "", SourceType.IWORK),
        (b"# comment\n\nx = [1](2)\n\n# other\n\n", "script.py", "", SourceType.TEXT),
        # and between documents of one family that show too little of themselves
        (archive(OFFICE), "report.docx", "", SourceType.DOCX),
        (archive(OFFICE), "", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", SourceType.XLSX),
        (b"%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>", "broken.pdf", "", SourceType.PDF),  # without its header
        # but nothing else
        (b"A text file.", "x.pdf", "application/pdf", SourceType.TEXT),
        (pdf(), "x.txt", "text/plain", SourceType.PDF),
        (b"A text file.", "x.docx", "", SourceType.TEXT),
        (archive({"a": "b"}), "x.docx", "", SourceType.ARCHIVE),
        (b"Not a page", "x.html", "text/html", SourceType.TEXT),
        (b"Not a mail", "x.eml", "", SourceType.TEXT),
        (b"Not JSON", "x.json", "", SourceType.TEXT),
        (b"Not a notebook", "x.ipynb", "", SourceType.TEXT),
        (b"Not XML", "x.xml", "", SourceType.TEXT),
        (b"Not LaTeX", "x.tex", "", SourceType.TEXT),
        (NOISE, "x.doc", "application/msword", SourceType.OTHER),
        (b"<!DOCTYPE html>", "x.md", "", SourceType.HTML),
        (NOISE, "x.md", "text/markdown", SourceType.OTHER),
        (image("PNG"), "x.md", "", SourceType.IMAGE),
        (NOISE, "x.png", "image/png", SourceType.OTHER),
    ],
)
def test_labels_decide_between_kinds_of_text_only(
    data: bytes, filename: str, content_type: str, expected: SourceType
) -> None:
    assert detect(data[:HEAD_BYTES], filename, content_type) is expected


@patient
@given(st.binary() | st.binary().map(b"PK\x03\x04".__add__), st.text(), st.text())
def test_nothing_makes_it_fail(data: bytes, filename: str, content_type: str) -> None:
    assert detect(data, filename, content_type) in SourceType


@patient
@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Z"]), min_size=1))
def test_a_text_whose_head_ends_within_a_character_is_a_text(text: str) -> None:
    assert detect(("a" * 100 + text).encode()[:-1]) not in {SourceType.OTHER, SourceType.IMAGE}
