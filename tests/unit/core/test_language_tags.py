"""The first part of a language tag decides: en-US and en_GB are English."""

from __future__ import annotations

import pytest

from octavo.core.texts import primary_language


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("en", "en"),
        ("en-US", "en"),
        ("en_GB", "en"),
        (" EN-gb ", "en"),
        ("zh-Hant-TW", "zh"),
        ("", None),
        ("-", None),
        (None, None),
    ],
)
def test_the_first_part_of_a_tag_is_the_language(tag: str | None, language: str | None) -> None:
    assert primary_language(tag) == language
