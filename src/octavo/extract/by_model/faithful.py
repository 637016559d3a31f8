"""Whether what a model wrote is still what the document says: word by word, whatever the order and the marks are."""

from __future__ import annotations

import re
from collections import Counter

from octavo.extract.by_model.wording import read_wording

# The share of words that may go or come: running heads go, words that were torn apart become one, headings come.
MOST_CHANGED = 0.15
# Where the plain text was itself recognised from a picture, and may be worse than what it is compared with.
MOST_CHANGED_RECOGNISED = 0.5
FEW_WORDS = 5
# What a picture shows is told by the model, and what it cannot read too.
_TOLD = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)|\[illegible\]")


def is_faithful(plain: str, written: str, *, recognised: bool = False) -> bool:
    """Whether few of the words are lost and few are new. Where there were none, everything is new and nothing lost."""
    before, after = (Counter(read_wording(_TOLD.sub(" ", text)).words) for text in (plain, written))
    if not before:
        return True
    most = FEW_WORDS + (MOST_CHANGED_RECOGNISED if recognised else MOST_CHANGED) * before.total()
    return (before - after).total() <= most and (after - before).total() <= most
