"""What comes back from the sandbox is read as if a hostile file had written it."""

from __future__ import annotations

import json

import pytest

from octavo.core.errors import Defect
from octavo.core.types import JSON
from octavo.extract.chunks.chunking import read_chunks

TEXT = "Alpha beta gamma."
GOOD: list[JSON] = [
    [0, 5, 1, 1, ["A"], 1, None, [[1, 72, 90, 540.5, 120]]],
    [6, 17, None, None, [], 2, 1.5, []],
]


def test_chunks_get_their_text_from_their_places() -> None:
    chunks = read_chunks(json.dumps(GOOD).encode(), TEXT)
    assert [(one.index, one.content, one.heading_path) for one in chunks] == [
        (0, "Alpha", ("A",)),
        (1, "beta gamma.", ()),
    ]
    assert [one.boxes for one in chunks] == [((1, 72, 90, 540.5, 120),), ()]


@pytest.mark.parametrize(
    "made",
    [
        b"",
        b"{}",
        b"[[0]]",
        b'[["0", "x", 1, 1, [], 1, null, []]]',
        b"[[0, 5, 1, 1, [], 1, -1, []]]",
        b"[[0, 5, 1, 1, [], 1, NaN, []]]",
        b"[[0, 5, 1, 1, [], 1, null, [[0, 1, 1, 2, 2]]]]",
        b"[[0, 5, 1, 1, [], 1, null, [[1, 1, 1, 2]]]]",
        b"[[0, 5, 1, 1, [], 1, null, [[1, 1, 1, 2, Infinity]]]]",
        json.dumps([[0, 99, 1, 1, [], 1, None, []]]).encode(),
        json.dumps([[-1, 5, 1, 1, [], 1, None, []]]).encode(),
        json.dumps([[5, 5, 1, 1, [], 1, None, []]]).encode(),
        json.dumps([GOOD[1], GOOD[0]]).encode(),
        json.dumps([GOOD[0], [4, 9, 1, 1, [], 1, None, []]]).encode(),
    ],
)
def test_what_is_no_list_of_places_in_the_text_is_refused(made: bytes) -> None:
    with pytest.raises(Defect):
        read_chunks(made, TEXT)
