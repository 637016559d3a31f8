"""Words are counted as a reader counts them."""

from __future__ import annotations

import pytest

from octavo.core.texts import count_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("one two  three\nfour", 4),
        ("don't state-of-the-art U.S.A. 3.14", 4),
        ("| a | b |\n|---|---|", 2),  # marks are no words
        ("## Heading - *text* …", 2),
        ("吾輩は猫である。", 7),
        ("東京 Tokyo 2020年", 5),
        ("안녕하세요 세계", 2),  # Korean has spaces
        ("สวัสดีชาวโลก", 3),  # about five characters each
        ("https://example.org/a/b?c=d", 1),
        ("_", 0),
    ],
)
def test_words(text: str, words: int) -> None:
    assert count_words(text) == words
