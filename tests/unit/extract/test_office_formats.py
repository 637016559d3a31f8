"""What all office formats promise: found by content, exact offsets, named errors however they are damaged."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from octavo.core.errors import Encrypted, OctavoError
from octavo.core.texts import count_words
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.extracted import BlockKind, SourceType, from_json, to_json
from octavo.extract.formats import known_processors
from octavo.extract.markdown import read_blocks
from tests.support.office import archive, read, samples

SAMPLES = samples()
each = pytest.mark.parametrize("kind", sorted(SAMPLES))
KNOWN = known_processors()


@each
def test_the_content_tells_the_type(kind: SourceType) -> None:
    assert detect(SAMPLES[kind][:HEAD_BYTES]) is kind
    assert detect(SAMPLES[kind][:HEAD_BYTES], "report.bin", "application/octet-stream") in {kind, SourceType.TEXT}


@each
def test_it_is_read_whole(kind: SourceType, tmp_path: Path) -> None:
    extracted = read(KNOWN[kind], tmp_path, SAMPLES[kind])
    assert extracted.source_type is kind
    assert "lighthouse" in extracted.markdown.lower()
    assert extracted.word_count == count_words(extracted.markdown)
    assert from_json(to_json(extracted)) == extracted


@each
def test_offsets_are_exact(kind: SourceType, tmp_path: Path) -> None:
    extracted = read(KNOWN[kind], tmp_path, SAMPLES[kind])
    spans = [(block.kind, block.start, block.end) for block in extracted.blocks]
    assert spans == [(block.kind, block.start, block.end) for block in read_blocks(extracted.markdown)]
    for entry in extracted.outline:
        assert entry.start is not None
        assert entry.title in extracted.markdown[entry.start :].split("\n")[0]
    expected = BlockKind.TABLE if kind is SourceType.CSV else BlockKind.HEADING
    assert extracted.blocks[0].kind is expected


@each
def test_damage_anywhere_ends_in_a_text_or_a_named_error(kind: SourceType, tmp_path: Path) -> None:
    chance = random.Random(kind)
    for _ in range(40):
        data = bytearray(SAMPLES[kind])
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data))
            data[place : place + chance.randint(0, 6)] = chance.randbytes(chance.randint(0, 6))
        with suppress(OctavoError):
            assert read(KNOWN[kind], tmp_path, bytes(data[: chance.randint(1, 2 * len(data))])).word_count


def test_an_encrypted_document_is_not_only_kept_but_told(tmp_path: Path) -> None:
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(600)
    assert detect(data, "report.xlsx") is SourceType.XLSX
    assert detect(data) is SourceType.DOCX
    with pytest.raises(Encrypted):
        read(KNOWN[SourceType.DOCX], tmp_path, data)
    assert detect(data.replace(b"E\0n\0c", b"")) is SourceType.OTHER  # Word 97


def test_documents_that_somebody_packed_again_are_known() -> None:
    assert (
        detect(archive({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "x"})) is SourceType.ODT
    )


@pytest.mark.parametrize("row", ["| --- | --- |", "|---|---|", "| :-- | --: |", "--- | ---"])
def test_tables_are_tables_however_their_second_line_is_written(row: str) -> None:
    assert [block.kind for block in read_blocks(f"| a | b |\n{row}\n| c | d |")] == [BlockKind.TABLE]
