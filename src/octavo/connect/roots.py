"""Forms of a word as one, and how much a word says: what clauses are compared by."""

from __future__ import annotations

from functools import lru_cache

from octavo.connect.wording import IRREGULAR
from octavo.language.words import rarity, root, stem

_SHORT = 3


@lru_cache(maxsize=50_000)
def weigh(one: str) -> float:
    """Rare words say more about what a sentence is about."""
    return 0.25 + rarity(one)


@lru_cache(maxsize=50_000)
def as_root(word: str) -> str:
    """All forms of a word as one, or nearly: said, saying and says; stop and stopped."""
    one = root(stem(IRREGULAR.get(word, word)))
    doubled = len(one) > _SHORT and one[-1] == one[-2] and one[-1] not in "aeiouls"
    return one[:-1] if doubled else one
