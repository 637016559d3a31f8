"""Languages of which text can be recognised in pictures, by their codes as ISO 639 has them."""

from __future__ import annotations

ANY_LANGUAGE = "auto"
CHINESE, JAPANESE = "zh", "ja"
_LATIN = (
    "af az bs ca cs cy da de en es et eu fi fr ga gl hr hu id is it ku la lb lt lv mi ms mt nl no oc pl pt qu rm ro sk "
    "sl sq sv sw tl tr uz vi"
)
IN_LATIN_LETTERS = frozenset(_LATIN.split())
RECOGNISED_LANGUAGES = IN_LATIN_LETTERS | {CHINESE, JAPANESE}
