"""Archives list their members, and members and attachments can be unpacked within limits."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

import pytest

from octavo.core.errors import BadInput, Defect, Empty, TooLarge
from octavo.extract.detect import Hints
from octavo.extract.extracted import Quality, SourceType
from octavo.extract.formats import archive as archives
from octavo.extract.formats import mail_files, related_office
from octavo.sandbox import Task
from tests.support.office import ODF, O, archive, markdown, read


def tar(files: dict[str, bytes], mode: str = "w") -> bytes:
    memory = io.BytesIO()
    with cast("Any", tarfile.open)(fileobj=memory, mode=mode) as file:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(link)
    return memory.getvalue()


def unpack(
    folder: Path, data: bytes, kind: SourceType = SourceType.ARCHIVE, *, most: int = 100, most_bytes: int = 1 << 20
) -> dict[str, bytes]:
    """The members that the sandbox writes, by name."""
    source, target = folder / "source", folder / "target"
    source.write_bytes(data)
    with source.open("rb") as reading, target.open("wb") as writing, Path(os.devnull).open("wb") as channel:
        task = Task(reading, writing, channel.fileno())
        archives.unpack(task, source_type=kind, filename="a.gz", most=most, most_bytes=most_bytes, most_total=1 << 20)
    with target.open("rb") as written:
        return {part.name: part.content for part in archives.read_parts(written)}


@pytest.mark.parametrize("written", [b"\x05", b"\xff\xff\xff\xff", b"\x02\0\0\0{}", b"\x04\0\0\0nope"])
def test_an_invalid_list_of_members_is_refused(written: bytes) -> None:
    with pytest.raises(Defect):
        list(archives.read_parts(io.BytesIO(written)))


FILES = {"a/notes.txt": b"one", "b.csv": b"x,y\n1,2\n"}


@pytest.mark.parametrize(
    "data",
    [archive(FILES), tar(FILES), tar(FILES, "w:gz"), tar(FILES, "w:bz2"), tar(FILES, "w:xz")],
    ids=["zip", "tar", "gz", "bz2", "xz"],
)
def test_members_are_listed_and_unpacked(tmp_path: Path, data: bytes) -> None:
    extracted = read(archives.PROCESSOR, tmp_path, data)
    assert extracted.markdown == (
        "Archive with 2 files.\n\n| File | Size |\n| --- | --- |\n| a/notes.txt | 3 bytes |\n| b.csv | 8 bytes |"
    )
    assert extracted.quality is Quality.FULL
    assert unpack(tmp_path, data) == FILES


def test_a_compressed_file_has_one_member(tmp_path: Path) -> None:
    assert unpack(tmp_path, gzip.compress(b"words")) == {"a": b"words"}


def test_names_are_only_labels(tmp_path: Path) -> None:
    data = archive({"../../etc/passwd": "x", "C:\\a\\b.txt": "y", "__MACOSX/._a": "z", "x/.DS_Store": "z"})
    assert list(unpack(tmp_path, data)) == ["etc/passwd", "C:/a/b.txt"]


def test_limits_of_number_and_size(tmp_path: Path) -> None:
    assert list(unpack(tmp_path, archive(FILES), most=1)) == ["a/notes.txt"]
    assert list(unpack(tmp_path, archive(FILES), most_bytes=5)) == ["a/notes.txt"]


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_TOTAL", 1 << 20)
    with pytest.raises(TooLarge):
        read(archives.PROCESSOR, tmp_path, tar({"zeros": bytes(4 << 20)}, "w:gz"))
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    with pytest.raises(TooLarge):
        read(archives.PROCESSOR, tmp_path, archive({str(number): "x" for number in range(5)}))


def test_encrypted_members_are_named_and_left_out(tmp_path: Path) -> None:
    data = bytearray(archive(FILES))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(mark) + offset] |= 1
    extracted = read(archives.PROCESSOR, tmp_path, bytes(data))
    assert extracted.quality is Quality.PARTIAL
    assert "1 of 2 files" in extracted.metadata.extra["reason"]
    assert list(unpack(tmp_path, bytes(data))) == ["b.csv"]


@pytest.mark.parametrize(
    "data", [tar(FILES, "w:gz")[:60], b"\x1f\x8b\x08\x00junk", tar(FILES)[:700]], ids=["cut gz", "no gz", "cut tar"]
)
def test_damaged_archives_are_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises((BadInput, Empty)):
        read(archives.PROCESSOR, tmp_path, data)


def test_an_empty_archive_is_empty(tmp_path: Path) -> None:
    with pytest.raises(Empty):
        read(archives.PROCESSOR, tmp_path, archive({}))


def test_attachments_are_members_but_pictures_in_the_text_are_not(tmp_path: Path) -> None:
    message = EmailMessage()
    message["Subject"] = "Hello"
    message.set_content("Text")
    message.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="../r\u00e9port.pdf")
    message.add_attachment("words", filename="note.txt")
    message.add_attachment(b"png", maintype="image", subtype="png", cid="<a@b>", disposition="inline")
    assert unpack(tmp_path, message.as_bytes(), SourceType.EML) == {
        "r\u00e9port.pdf": b"%PDF-1.4",
        "note.txt": b"words\n",
    }


def test_a_damaged_outlook_message_is_refused(tmp_path: Path) -> None:
    for data in (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000)):
        with pytest.raises((BadInput, Empty)):
            read(mail_files.PROCESSOR, tmp_path, data)


def test_saved_pages_are_the_page(tmp_path: Path) -> None:
    data = (
        b"From: <Saved by Blink>\nSubject: =?utf-8?Q?T=C3=A9a?=\nMIME-Version: 1.0\n"
        b'Snapshot-Content-Location: https://example.org/a\nContent-Type: multipart/related; boundary="x"\n\n'
        b"--x\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n"
        b"<html><body><h1>T=C3=A9a</h1><p>Words.</p></body></html>\n--x\nContent-Type: image/png\n\nAAAA\n--x--\n"
    )
    extracted = read(mail_files.SAVED_PAGE, tmp_path, data)
    assert extracted.markdown == "# T\u00e9a\n\nWords."
    assert (extracted.metadata.title, extracted.metadata.extra["url"]) == ("T\u00e9a", "https://example.org/a")


def opened(kind: str, body: str, more: dict[str, str | bytes] | None = None) -> bytes:
    content = f"<office:document-content {O}><office:body>{body}</office:body></office:document-content>"
    return archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": f"<manifest:manifest xmlns:manifest='{ODF}:manifest:1.0'/>",
            "content.xml": content,
            **(more or {}),
        }
    )


def test_open_document_sheets(tmp_path: Path) -> None:
    cells = "".join(
        f"<table:table-cell office:value-type='string'><text:p>{c}</text:p></table:table-cell>" for c in "ab"
    )
    wide = "<table:table-cell table:number-columns-repeated='16384'/>"
    rest = f"<table:table-row table:number-rows-repeated='1048000'>{wide}</table:table-row>"
    sheet = f"<table:table table:name='S'><table:table-row>{cells}</table:table-row>{rest}</table:table>"
    data = opened("spreadsheet", f"<office:spreadsheet>{sheet}</office:spreadsheet>")
    path = tmp_path / "object"
    path.write_bytes(data)
    extracted = related_office.PROCESSOR.extract(path, Hints(SourceType.ODS))
    assert extracted.markdown == "# S\n\n| a | b |\n| --- | --- |"


def test_open_document_slides(tmp_path: Path) -> None:
    presentation = "xmlns:presentation='urn:oasis:names:tc:opendocument:xmlns:presentation:1.0'"
    body = (
        f"<office:presentation {presentation}><draw:page><draw:frame><draw:text-box>"
        "<text:list><text:list-item><text:p>one</text:p>"
        "<text:list><text:list-item><text:p>inner</text:p></text:list-item></text:list></text:list-item></text:list>"
        "</draw:text-box></draw:frame><draw:frame presentation:class='title'><draw:text-box>"
        "<text:p>Top<text:line-break/>line"
        "</text:p></draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box><text:p>Smile</text:p>"
        "</draw:text-box></draw:frame></presentation:notes></draw:page>"
        "<draw:page><draw:frame><draw:text-box><text:p>Two</text:p>"
        "</draw:text-box></draw:frame></draw:page></office:presentation>"
    )
    extracted = read(related_office.SLIDES, tmp_path, opened("presentation", body))
    assert extracted.markdown == "# Top line\n\n- one\n  - inner\n\n> Notes: Smile\n\nTwo"
    assert len(extracted.pages) == 2


def test_slides_show_pictures_and_embedded_sheets(tmp_path: Path) -> None:
    body = (
        "<office:presentation><draw:page><draw:frame><draw:image xlink:href='Pictures/a.png'/>"
        "<svg:desc>A map</svg:desc></draw:frame>"
        "<draw:frame><draw:object xlink:href='./Object 1'/><draw:image xlink:href='Pictures/a.png'/>"
        "</draw:frame></draw:page></office:presentation>"
    )
    row = "<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell></table:table-row>"
    sheet = f"<table:table>{row.format('one')}<table:table-row/>{row.format('two')}</table:table>"
    inside = f"<office:document-content {O}><office:body>{sheet}</office:body></office:document-content>"
    more: dict[str, str | bytes] = {"Object 1/content.xml": inside, "Pictures/a.png": b"\x89PNG"}
    extracted = read(related_office.SLIDES, tmp_path, opened("presentation", body, more))
    assert extracted.markdown == "![A map](figures/1.png)\n\n| one |\n| --- |\n| two |"
    assert [one.member for one in extracted.figures] == ["Pictures/a.png"]


def test_damaged_sheets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        markdown(related_office.PROCESSOR, tmp_path, opened("spreadsheet", "")[:200])
    with pytest.raises((BadInput, Empty)):
        markdown(related_office.PROCESSOR, tmp_path, opened("spreadsheet", "<broken"))
