"""Counts words as a reader would: between spaces, and by characters in scripts that have no spaces."""

from __future__ import annotations

import re

# Han, kana, and their rarer extensions. Korean writes spaces between its words.
ONE_CHARACTER = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
# Thai, Lao, Burmese, Khmer: a word has about five characters.
FEW_CHARACTERS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"

# A word begins at its first letter or digit and lasts until the next space, so that marks alone ("|", "##") are
# none, and so that no run of marks is looked at twice.
WORD = re.compile(f"[{ONE_CHARACTER}]|[{FEW_CHARACTERS}]{{1,5}}|[^\\W_][^\\s{ONE_CHARACTER}{FEW_CHARACTERS}]*")


def count_words(text: str) -> int:
    return sum(1 for _ in WORD.finditer(text))
