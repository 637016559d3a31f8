from __future__ import annotations

import pytest

from octavo.storage.bucket import check_key, check_prefix, segments
from octavo.storage.writing import BadKey

HOSTILE = [
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "a/./b",
    "a/../b",
    "../a",
    ".octavo/signing-key",  # the bucket's own
    ".unfinished/x",
    "a/.hidden",
    "a b",
    "a\\b",
    "a\x00b",
    "a\n",  # `$` in a pattern would let this through
    "a?b",
    "a%2e%2e",
    "ä",
    "a" * 513,  # one more than allowed
]


@pytest.mark.parametrize("key", HOSTILE)
def test_a_hostile_key_is_a_defect(key: str) -> None:
    with pytest.raises(BadKey):
        check_key(key)


@pytest.mark.parametrize("key", ["a", "a/b", "A-Z_0.9", "sources/0193-ab/v1.pdf", "a..b", "a" * 512])
def test_a_good_key_is_given_back(key: str) -> None:
    assert check_key(key) == key


def test_segments_are_the_names_on_the_way() -> None:
    assert segments("a/b/c.pdf") == ("a", "b", "c.pdf")


def test_a_prefix_may_be_empty_but_not_hostile() -> None:
    assert not check_prefix("")
    with pytest.raises(BadKey):
        check_prefix("..")
