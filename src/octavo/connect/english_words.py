"""Words for comparing sentences: which of them count, their roots and weights, and negations. English only."""

from __future__ import annotations

from functools import lru_cache

from octavo.connect.numbers import ONES, SCALES, TENS
from octavo.language.vocabulary import STOPWORDS, rarity, root, stem


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def word_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Parse pairs of words: "sold sell, bought buy"."""
    both = [pair.split() for pair in text.split(",")]
    return tuple((one, other) for one, other in both)


NUMBER_WORDS = frozenset({*ONES, *TENS, *SCALES})
NEGATIONS = word_set(
    """
    not no never none nobody nothing nowhere neither nor without cannot hardly scarcely barely fails failed lacks lacked
    refuses refused denies denied unable impossible
    """
)
# Words of one line distinguish things: the old bridge is not the new bridge.
_SCOPES = """
    old new former current
    north south east west northern southern eastern western central
    first second third fourth fifth last next
    spring summer autumn winter
    morning afternoon evening night
    upper lower
    inner outer
    men women man woman boys girls boy girl male female
    imports exports import export
    minimum maximum
    weekdays weekends weekday weekend
    gross net
    draft final
    public private
    primary secondary tertiary
    adults children adult child
    domestic foreign
    urban rural
"""
SCOPES = tuple(word_set(line) for line in _SCOPES.strip().splitlines())
# Function words and reporting verbs that add nothing to a statement.
_EMPTY = word_set(
    """
    there is are was were be been being has have had do does did it its this that these those which who also very too
    however moreover therefore thus still yet such according say says said state states stated report reports
    """
)
# Irregular forms, each followed by its base form.
_IRREGULAR = """
    rang ring, rung ring, rose rise, risen rise, fell fall, fallen fall, grew grow, grown grow, shrank shrink,
    lost lose, won win, broke break, broken break, sold sell, bought buy, left leave, took take, taken take,
    gave give, given give, began begin, begun begin, built build, sent send, spent spend, paid pay, said say,
    told tell, made make, held hold, kept keep, met meet, led lead, fed feed, found find, went go, gone go, came
    come, saw see, seen see, knew know, known know, wrote write, written write, drove drive, driven drive, ate
    eat, eaten eat, drank drink, drunk drink, sang sing, sung sing, swam swim, ran run, stole steal, stolen
    steal, chose choose, chosen choose, struck strike, thought think, taught teach, caught catch, stood stand,
    understood understand, became become, flew fly, flown fly, froze freeze, frozen freeze, hid hide, hidden
    hide, bore bear, forbade forbid, forbidden forbid, showed show, shown show, wore wear, worn wear, sank sink,
    sunk sink, slept sleep, meant mean, men man, women woman, children child, people person, feet foot, teeth
    tooth, mice mouse, geese goose, lives life
"""
IRREGULAR = dict(word_pairs(_IRREGULAR))
_SHORT = 3


@lru_cache(maxsize=50_000)
def weigh(one: str) -> float:
    """The weight of a word: rare words say more about the subject of a sentence."""
    return 0.25 + rarity(one)


@lru_cache(maxsize=50_000)
def as_root(word: str) -> str:
    """The root that all forms of a word share: "said", "saying" and "says"; "stop" and "stopped"."""
    one = root(stem(IRREGULAR.get(word, word)))
    doubled = len(one) > _SHORT and one[-1] == one[-2] and one[-1] not in "aeiouls"
    return one[:-1] if doubled else one


@lru_cache(maxsize=50_000)
def is_content_word(word: str) -> bool:
    """Whether a word in lower case says something about the subject: no number, stop word or negation."""
    if not word[0].isalpha() or len(word) == 1 or is_negation(word) or word in _EMPTY or word in STOPWORDS["en"]:
        return False
    return not all(part in NUMBER_WORDS for part in word.split("-"))


@lru_cache(maxsize=50_000)
def is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith("n't")
