"""Some characters of an id are enough when they mean one document, and never when they may mean two."""

from __future__ import annotations

from uuid import UUID

import pytest

from octavo.cli.names import match_parts, read_part
from octavo.core.errors import BadInput, NotFound

FIRST = UUID("0192f0c1-7e11-7d6a-a1c0-6f8f1f0b9a52")
SECOND = UUID("0192f0c1-7e11-7d6a-a1c0-6f8faaaa9a52")
THIRD = UUID("0192f0c2-0000-7d6a-a1c0-6f8f1f0b0000")
KNOWN = [FIRST, SECOND, THIRD]


@pytest.mark.parametrize(
    ("part", "meant"),
    [("1f0b9a52", FIRST), ("AAAA9a52", SECOND), ("0192f0c2", THIRD), ("0000", THIRD), (str(SECOND), SECOND)],
)
def test_a_part_means_the_one_that_begins_or_ends_with_it(part: str, meant: UUID) -> None:
    read = read_part(part)
    assert (read if isinstance(read, UUID) else match_parts([read], KNOWN, "document")[read]) == meant


@pytest.mark.parametrize("typed", ["", "abc", "report.pdf", "0192f0c1-7e11-7d6a-a1c0-6f8f1f0b9a52-and-more", "*"])
def test_an_invalid_part_of_an_id_is_refused(typed: str) -> None:
    with pytest.raises(BadInput, match="at least 4 characters"):
        read_part(typed)


def test_what_may_mean_several_is_refused_with_all_of_them() -> None:
    with pytest.raises(BadInput) as refused:
        match_parts(["9a52"], KNOWN, "document")
    assert str(FIRST) in refused.value.line
    assert str(SECOND) in refused.value.line
    assert str(THIRD) not in refused.value.line


def test_what_means_none_is_not_found() -> None:
    with pytest.raises(NotFound, match="No key's id begins or ends with ffff"):
        match_parts(["ffff"], KNOWN, "key")
