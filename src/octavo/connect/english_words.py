"""Word lists and stemming for comparing claims. English only.

The lists contain negations, hedges, words that limit the scope of a claim, antonyms and irregular forms.
"""

from __future__ import annotations

from functools import lru_cache

from octavo.language.vocabulary import rarity, root, stem


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def word_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Parse pairs of words: "open closed, early late"."""
    both = [pair.split() for pair in text.split(",")]
    return tuple((one, other) for one, other in both)


NEGATIONS = word_set(
    """
    not no never none nobody nothing nowhere neither nor without cannot hardly scarcely barely fail fails failed
    failing failure lack lacks lacked lacking refuse refuses refused refusing denies denied unable impossible
    absent absence rejects rejected declined declines
    """
)
# A negation followed by one of these does not deny what follows ("not only", "no later than").
NEGATION_EXCEPTIONS = {
    "not": word_set("only just merely simply necessarily until least more less fewer"),
    "no": word_set("doubt later more less fewer wonder matter sooner"),
    "nothing": word_set("but short"),
    "none": word_set("other"),
}
# Words that mark a statement as uncertain, or as a statement of somebody else.
HEDGES = word_set(
    """
    may might could perhaps possibly maybe probably allegedly reportedly supposedly presumably seemingly
    potentially apparently if unless whether would hypothetical rumour rumor claim claims claimed alleged
    alleges hope hopes hoped fear feared plan plans planned propose proposes proposed proposal expected expect
    expects should suppose imagine wish wonder wondered asked ask asks doubted
    """
)
# Words that limit a statement to another time or to some occasions.
FORMERLY = word_set(
    """
    formerly previously initially originally earlier former historically yesterday ago until later afterwards
    eventually temporarily sometimes occasionally usually normally typically often previous
    """
)
# Words that limit a statement to a part: it may be true of some and not of others.
PARTIAL = word_set("some several few many most certain others another other half partly")
APPROXIMATIONS = word_set("about around roughly approximately nearly almost some circa ca estimated approx")
# Pairs that distinguish things: the old bridge is not the new bridge.
SCOPES = word_pairs(
    """
    old new, north south, northern southern, east west, eastern western, upper lower, left right, first second,
    first last, inner outer, male female, men women, man woman, boy girl, indoor outdoor, summer winter, spring
    autumn, day night, morning evening, morning afternoon, early late, public private, small large, big small,
    young old, domestic foreign, urban rural, adult child, front back, rear front, primary secondary, import
    export, winter autumn, weekday weekend, minimum maximum, short long, wet dry, eldest youngest, inland
    coastal, gross net, senior junior, black white, paper digital, draft final
    """
)
# Groups in which each word means a different thing.
SIBLINGS = (word_set("spring summer autumn winter"),)
ANTONYMS = word_pairs(
    """
    safe dangerous, safe hazardous, safe risky, secure insecure, excellent poor, good bad, good poor, great
    terrible, excellent terrible, strong weak, stronger weaker, high low, higher lower, highest lowest, increase
    decrease, increase decline, increase reduce, increase fall, increase drop, rise fall, rise drop, rose fell,
    rose dropped, grow shrink, grew shrank, grew fell, grew declined, raise lower, raise cut, expand contract,
    expand shrink, gain lose, gained lost, profit loss, improve worsen, improve deteriorate, open close, open
    shut, accept reject, approve reject, approve oppose, support oppose, agree disagree, allow forbid, allow
    prohibit, allow ban, permit forbid, permit forbidden, allow forbidden, permit prohibit, sober drunk, raw
    pasteurised, better worse, permit ban, legal illegal, lawful unlawful, mandatory optional, required
    optional, compulsory voluntary, include exclude, present absent, true false, correct wrong, correct
    incorrect, right wrong, accurate inaccurate, complete incomplete, success failure, succeed fail, win lose,
    won lost, victory defeat, pass fail, guilty innocent, alive dead, live die, survive die, full empty, hot
    cold, warm cold, warm cool, heat cool, wet dry, clean dirty, fast slow, quick slow, quickly slowly, rapid
    slow, rapidly slowly, accelerate slow, easy difficult, easy hard, simple complex, simple complicated, cheap
    expensive, rich poor, happy sad, happy unhappy, healthy sick, healthy ill, toxic harmless, harmful harmless,
    harmful beneficial, benefit harm, help hinder, help harm, protect harm, toxic safe, poisonous harmless,
    effective ineffective, effective useless, useful useless, necessary unnecessary, essential unnecessary,
    possible impossible, likely unlikely, common rare, frequent rare, always never, everyone nobody, everybody
    nobody, all none, everything nothing, many few, more fewer, more less, most fewest, major minor, important
    unimportant, significant insignificant, large small, big small, larger smaller, bigger smaller, longer
    shorter, long short, wide narrow, deep shallow, thick thin, heavy light, loud quiet, noisy quiet, noisy
    silent, bright dark, visible hidden, visible invisible, public secret, public private, known unknown, stable
    unstable, stable volatile, steady erratic, permanent temporary, temporary lasting, begin end, start end,
    start stop, start finish, begin stop, continue stop, arrive leave, arrive depart, enter leave, enter exit,
    come go, buy sell, bought sold, borrow lend, give take, send receive, push pull, lift lower, up down, on
    off, in out, above below, before after, inside outside, indoors outdoors, forward backward, near far, attack
    defend, love hate, like dislike, trust distrust, friend enemy, peace war, calm violent, calm stormy, gentle
    rough, smooth rough, soft hard, sharp blunt, tight loose, sleep wake, asleep awake, climb descend, ascend
    descend, appear disappear, build demolish, built demolished, create destroy, preserve destroy, attach
    detach, connect disconnect, lock unlock, load unload, cover uncover, tie untie, fill empty, freeze melt,
    thaw freeze, praise criticise, praise criticize, praise condemn, welcome criticise, welcome condemn,
    optimistic pessimistic, positive negative, confirm deny, confirm refute, prove disprove, support refute,
    support contradict, reliable unreliable, reliable faulty, intact damaged, intact broken, whole broken,
    repaired broken, sufficient insufficient, adequate inadequate, enough insufficient, abundant scarce,
    plentiful scarce, surplus deficit, surplus shortage, early late, young old, new old, modern outdated, fresh
    stale, ripe unripe, natural artificial, real fake, genuine fake, genuine forged, original copy, honest
    dishonest, free captive, free paid, unanimous divided, majority minority, united divided, single married,
    maximum minimum, front back, left right, north south, east west, first last, male female, dangerous
    harmless, vacant occupied, encourage discourage, hire fire, hired dismissed, lengthen shorten, widen narrow,
    strengthen weaken, tighten loosen, tighten relax, simplify complicate, brighten darken, speed slow,
    decelerate accelerate, wax wane, export import, upstream downstream, uphill downhill, upstairs downstairs,
    dressed naked, put remove, add remove, wear remove, insert remove, mix separate, join separate, gather
    scatter, collect scatter, float sink, swim sink, dive surface, laugh cry, smile frown, speak listen, crowded
    deserted, crowded empty, busy idle, active inactive, active passive, active dormant, waste save, renewable
    exhaustible, fertile barren, edible inedible, sour sweet, sunny cloudy, sunny rainy, clear cloudy, extinct
    surviving, voluntary forced, solvent bankrupt, unchanged changed, constant variable, constant varying
    """
)
PREFIXES = ("un", "non", "dis", "in", "im", "ir", "il", "mis", "de")
# Words that start with a negating prefix but do not negate another word.
NOT_NEGATED = word_set(
    """
    inform import display discover invent infect inside income index intend intent interest internal improve
    impress impact unit union under until decide deliver detail degree design desert depart describe invest
    involve input insight install instance increase decrease deform demand depend depress depose deposit insure
    intense instead indeed inland disease impart impose discuss discount dispatch district distant inspect
    instruct infer deserve unite universe define default deport defend delight invite illustrate irritate
    missing mission mist mistake dismiss
    """
)
# Irregular forms, each followed by its base form.
IRREGULAR = dict(
    word_pairs(
        """
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
    )
)


_SHORT = 3


@lru_cache(maxsize=50_000)
def weigh(one: str) -> float:
    """The weight of a word. Rare words weigh more, because they say more about the subject of a sentence."""
    return 0.25 + rarity(one)


@lru_cache(maxsize=50_000)
def as_root(word: str) -> str:
    """The root that all forms of a word share, such as "said", "saying" and "says", or "stop" and "stopped"."""
    one = root(stem(IRREGULAR.get(word, word)))
    doubled = len(one) > _SHORT and one[-1] == one[-2] and one[-1] not in "aeiouls"
    return one[:-1] if doubled else one
