"""What all office formats promise: found by content, exact offsets, named errors however they are damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from octavo.extract.contract import BlockKind, SourceType, from_json, to_json
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.formats import known_processors
from octavo.extract.structure import read_blocks
from octavo.extract.words import count_words
from octavo.model.errors import OctavoError
from tests.support.office import read, samples

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
        try:
            read(KNOWN[kind], tmp_path, bytes(data[: chance.randint(1, 2 * len(data))]))
        except OctavoError as error:
            assert error.line
