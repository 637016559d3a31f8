"""Some characters of an id are enough when they mean one document, and never when they may mean two."""

from __future__ import annotations

from uuid import UUID

import pytest

from octavo.cli.options import find_among, match_part, read_part
from octavo.core.errors import BadInput, NotFound

FIRST = UUID("0192f0c1-7e11-7d6a-a1c0-6f8f1f0b9a52")
SECOND = UUID("0192f0c1-7e11-7d6a-a1c0-6f8faaaa9a52")
THIRD = UUID("0192f0c2-0000-7d6a-a1c0-6f8f1f0b0000")
KNOWN = {FIRST: "Lease", SECOND: "Lease, copy\x1b[2J", THIRD: "Invoice"}


@pytest.mark.parametrize(
    ("part", "meant"),
    [
        ("1f0b9a52", FIRST),
        ("AAAA9a52", SECOND),
        ("0192f0c2", THIRD),
        ("0000", THIRD),
        (str(SECOND), SECOND),
        ("AAAA", SECOND),
        ("aaaa9", SECOND),
    ],
)
def test_a_part_means_the_one_whose_id_or_short_id_begins_or_ends_with_it(part: str, meant: UUID) -> None:
    assert find_among(part, KNOWN, "document", "octavo ls") == meant


@pytest.mark.parametrize("typed", ["", "abc", "report.pdf", "0192f0c1-7e11-7d6a-a1c0-6f8f1f0b9a52-and-more", "*"])
def test_an_invalid_part_of_an_id_is_refused(typed: str) -> None:
    with pytest.raises(BadInput, match="at least 4 characters"):
        read_part(typed, "octavo ls")


def test_what_may_mean_several_is_refused_with_all_of_them() -> None:
    with pytest.raises(BadInput) as refused:
        match_part("9a52", KNOWN, "document", "octavo ls")
    assert f"9a52 matches more than one document: {FIRST} (Lease), {SECOND} (Lease, copy [2J)." in refused.value.line
    assert str(THIRD) not in refused.value.line


def test_what_means_none_is_not_found() -> None:
    with pytest.raises(NotFound, match=r"No key's id begins or ends with ffff\. `octavo keys ls` lists them"):
        match_part("ffff", KNOWN, "key", "octavo keys ls")
