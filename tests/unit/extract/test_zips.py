"""Archives are counted while they inflate, and nothing that they say of themselves is believed."""

from __future__ import annotations

import io
import random
import stat
import struct
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.errors import BadInput, Encrypted, NotSupported, OctavoError, TooLarge
from octavo.extract import zips
from octavo.extract.zips import MEBIBYTE, Archive
from tests.support.office import archive

patient = settings(deadline=None, max_examples=60)  # machines that run tests are busy


def kept(folder: Path, data: bytes) -> Path:
    path = folder / "object"
    path.write_bytes(data)
    return path


def test_members_are_read_by_name_however_carelessly_it_was_written(tmp_path: Path) -> None:
    with Archive(kept(tmp_path, archive({"/Word\\Document.xml": b"text"}))) as opened:
        assert opened.read("word/document.xml") == b"text"
        assert "WORD/DOCUMENT.XML" in opened
        assert opened.find("other.xml") is None
        with pytest.raises(BadInput, match="a required part is missing"):
            opened.read("other.xml")


def test_a_bomb_ends_after_a_fraction_of_itself(tmp_path: Path) -> None:
    path = kept(tmp_path, archive({"word/document.xml": bytes(400 * MEBIBYTE)}))
    assert path.stat().st_size < MEBIBYTE
    began = time.process_time()
    with Archive(path) as opened, pytest.raises(TooLarge, match="much larger than the file"):
        opened.read("word/document.xml")
    assert time.process_time() - began < 3


def test_many_small_bombs_are_one_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zips, "MOST_TOTAL", 3 * MEBIBYTE)
    noise = random.Random(1).randbytes(MEBIBYTE)
    with Archive(kept(tmp_path, archive({f"{n}.xml": noise for n in range(4)}))) as opened:
        for number in range(3):
            assert len(opened.read(f"{number}.xml")) == MEBIBYTE
        with pytest.raises(TooLarge):
            opened.read("3.xml")


def test_reading_the_same_part_again_counts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zips, "MOST_TOTAL", 2 * MEBIBYTE)
    with Archive(kept(tmp_path, archive({"a": bytes(MEBIBYTE)}))) as opened:
        opened.read("a")
        opened.read("a")
        with pytest.raises(TooLarge):
            opened.read("a")


def test_a_size_that_is_a_lie_helps_nobody(tmp_path: Path) -> None:
    data = bytearray(archive({"a": bytes(40 * MEBIBYTE)}))
    listed = data.rfind(b"PK\x01\x02")
    for place in (22, listed + 24):
        data[place : place + 4] = struct.pack("<I", 100)
    with Archive(kept(tmp_path, bytes(data))) as opened, pytest.raises(BadInput):
        opened.read("a")


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zips, "MOST_MEMBERS", 5)
    with pytest.raises(TooLarge, match="too many parts"):
        Archive(kept(tmp_path, archive({str(n): b"" for n in range(6)})))


def test_a_list_of_millions_is_refused_before_it_is_read(tmp_path: Path) -> None:
    data = bytearray(archive({"a": b"b"}))
    struct.pack_into("<I", data, data.rfind(b"PK\x05\x06") + 12, 0xF0000000)
    with pytest.raises(TooLarge, match="too many parts"):
        Archive(kept(tmp_path, bytes(data)))


def test_encrypted_members_need_a_password(tmp_path: Path) -> None:
    data = bytearray(archive({"a": b"text"}))
    data[6] |= 1
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    with Archive(kept(tmp_path, bytes(data))) as opened, pytest.raises(Encrypted):
        opened.read("a")


def test_unusual_ways_to_pack_are_refused(tmp_path: Path) -> None:
    data = archive({"a": b"text"}, compression=zipfile.ZIP_LZMA)
    with Archive(kept(tmp_path, data)) as opened, pytest.raises(NotSupported):
        opened.read("a")


def test_links_and_folders_are_no_members(tmp_path: Path) -> None:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as file:
        link = zipfile.ZipInfo("link.xml")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, "/etc/passwd")
        file.writestr("folder/", "")
        file.writestr("../../up.xml", "text")
    with Archive(kept(tmp_path, memory.getvalue())) as opened:
        assert list(opened) == ["../../up.xml"]
        assert opened.read("../../up.xml") == b"text"


@pytest.mark.parametrize(
    "data",
    [b"", b"PK\x03\x04", b"PK\x03\x04" + bytes(500), archive({"a": b"b"})[:-30]],
    ids=["nothing", "a mark", "a mark and zeros", "all but the end"],
)
def test_what_was_cut_off_is_damaged(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadInput, match="damaged"):
        Archive(kept(tmp_path, data))


def test_words_own_encryption_is_told_from_older_formats(tmp_path: Path) -> None:
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000)
    with pytest.raises(NotSupported, match="before 2007"):
        Archive(kept(tmp_path, old))
    with pytest.raises(Encrypted, match="without a password"):
        Archive(kept(tmp_path, old + "EncryptedPackage".encode("utf-16-le")))


@patient
@given(st.integers(0, 2**32), st.binary(max_size=20))
def test_damage_anywhere_is_a_named_error(tmp_path_factory: pytest.TempPathFactory, seed: int, noise: bytes) -> None:
    data = bytearray(archive({"a.xml": b"text " * 50, "b.xml": b"other"}))
    place = seed % len(data)
    data[place : place + len(noise)] = noise
    try:
        with Archive(kept(tmp_path_factory.mktemp("zip"), bytes(data))) as opened:
            for name in opened:
                opened.find(name)
    except OctavoError:
        pass
