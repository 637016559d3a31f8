"""Finds the tone of a chunk: polarity (VADER's rules) and primary emotion (our own lexicon). English only.

The lexicon is deliberately short. It contains words that nearly always express one emotion, and omits ambiguous words
such as "kind", "mean", "sick" and "like".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from octavo.language.insights import Emotion, Tone
from octavo.language.languages import ENGLISH
from octavo.language.vocabulary import load_once

if TYPE_CHECKING:
    from octavo.language.phrases import ParsedChunk

UNKNOWN = Tone(polarity=0.0, primary_emotion=Emotion.UNKNOWN)
# The rules take quadratic time in the number of words, so very long sentences are split.
_MAX_WORDS = 60
# The mean includes this many extra neutral sentences, so that one emotional sentence does not determine the tone.
_CALM = 1.0
# The minimum share of words for an emotion: one word is enough in a short text, but not in a long one.
_MIN_SHARE = 1 / 150
_NEGATIONS = frozenset({"no", "not", "never", "without", "cannot", "hardly", "nor", "neither", "nobody", "nothing"})
_REACH = 3


def find_tone(parsed: ParsedChunk) -> Tone:
    if parsed.language != ENGLISH:
        return UNKNOWN
    return Tone(polarity=_polarity(parsed), primary_emotion=_emotion([s.words for s in parsed.sentences]))


def _polarity(parsed: ParsedChunk) -> float:
    analyzer = _analyzer()
    scores = [
        analyzer.polarity_scores(part)["compound"]
        for sentence in parsed.sentences
        if not analyzer.lexicon.keys().isdisjoint(sentence.words)
        for part in _split_long(parsed.text[sentence.start : sentence.end])
    ]
    moved = [score for score in scores if score]
    return round(sum(moved) / (len(moved) + _CALM), 3)


def polarity_of(sentence: str) -> float:
    """Return the polarity of an English sentence, from -1 (negative) to 1 (positive)."""
    return float(_analyzer().polarity_scores(sentence)["compound"])


def _split_long(sentence: str) -> Iterator[str]:
    words = sentence.split()
    for start in range(0, len(words), _MAX_WORDS):
        yield " ".join(words[start : start + _MAX_WORDS])


def _emotion(sentences: Sequence[Sequence[str]]) -> Emotion:
    """Return the emotion that most of the emotional words express. Returns NEUTRAL if no emotion is prominent.

    Negated words are ignored.
    """
    counts: Counter[Emotion] = Counter(
        EMOTION_WORDS[word]
        for words in sentences
        for place, word in enumerate(words)
        if word in EMOTION_WORDS and not any(_negates(before) for before in words[max(place - _REACH, 0) : place])
    )
    if not counts:
        return Emotion.NEUTRAL
    (first, count), *others = counts.most_common(2)
    total = sum(map(len, sentences))
    is_clear = count >= total * _MIN_SHARE and not (others and others[0][1] == count)
    return first if is_clear else Emotion.NEUTRAL


def _negates(word: str) -> bool:
    return word in _NEGATIONS or word.replace("\u2019", "'").endswith("n't")


@load_once
def _analyzer() -> Any:  # noqa: ANN401 - it has no types
    from vaderSentiment.vaderSentiment import (  # pyright: ignore[reportMissingTypeStubs]
        SentimentIntensityAnalyzer,
    )

    return SentimentIntensityAnalyzer()


_WORDS = {
    Emotion.JOY: """
        amused amusement amusing bliss blissful celebrate celebrated celebrating celebration cheerful cheerfully
        delight delighted delightful delights ecstatic enjoy enjoyable enjoyed enjoying enjoyment enjoys exhilarating
        festive fun gladly gladness glee gleeful happier happily happiness happy heartwarming hilarious joy joyful
        joyfully joyous jubilant laugh laughed laughing laughs laughter merrily merry overjoyed playful playfully
        pleasing pleasure proud proudly rejoice rejoiced rejoicing smile smiled smiles smiling thrilled triumph
        triumphant wonderful
        """,
    Emotion.TRUST: """
        admiration admire admired assurance assured authentic confidence confident confidently credible dependable
        devoted devotion faith faithful faithfully friendship grateful gratefully gratitude honest honestly honesty
        honorable honourable integrity loyal loyalty proven reassured reassuring reliable reliably reputable respect
        respected respectful safe safely sincere sincerely sincerity thankful trust trusted trusting trustworthy
        trusty
        """,
    Emotion.SURPRISE: """
        abruptly amaze amazed amazement amazing amazingly astonish astonished astonishing astonishingly astonishment
        astounded astounding baffled bewildered bewildering dumbfounded incredible incredibly miraculous remarkably
        speechless startle startled startling stunned stunning surprise surprised surprises surprising surprisingly
        unbelievable unexpected unexpectedly unforeseen unheard wondrous
        """,
    Emotion.FEAR: """
        afraid alarm alarmed alarming anxieties anxiety anxious anxiously apprehension apprehensive danger dangerous
        dangerously dangers dread dreaded dreadful fear feared fearful fearing fears fright frighten frightened
        frightening hazard hazardous hazards horrified horrifying horror menace menacing nervous nervously nightmare
        ominous panic panicked perilous peril perils petrified scare scared scary shiver shuddered terrible terrified
        terrifying terror threat threaten threatened threatening threats trembled trembling unsafe worried worries
        worry worrying
        """,
    Emotion.SADNESS: """
        agony anguish bereaved bereavement bleak cried crying dejected despair despairing despondent devastated
        devastating disappointed disappointing disappointment dismal farewell forlorn funeral gloom gloomy grief
        grieve grieved grieving heartbreak heartbreaking heartbroken hopeless hopelessness lament lamented loneliness
        lonely melancholy miserable misery mourn mourned mourning regret regretted regrettable sad sadly sadness sob
        sobbed sobbing sorrow sorrowful sorrows suffering tearful tears tragedy tragic unhappiness unhappy weep
        weeping wept
        """,
    Emotion.ANGER: """
        abuse abused aggravated aggression anger angered angrily angry annoy annoyed annoyance annoying bitter
        bitterly bitterness enraged exasperated furious furiously fury hate hated hateful hates hatred hostile
        hostility indignant indignation infuriated infuriating irate irritate irritated irritating irritation outrage
        outraged outrageous quarrel rage raged raging resent resented resentful resentment revenge spite vengeance
        vicious wrath
        """,
    Emotion.DISGUST: """
        abhor abhorrent appalled appalling contempt contemptible despicable despise despised detest detestable
        detested disgrace disgraceful disgust disgusted disgusting distaste filth filthy foul grotesque gruesome
        loathe loathed loathing loathsome nausea nauseated nauseating obscene odious putrid repugnant repulsed
        repulsion repulsive revolted revolting revulsion rotten shameful sickening sleazy squalid stench vile vulgar
        """,
}

EMOTION_WORDS: dict[str, Emotion] = {word: emotion for emotion, words in _WORDS.items() for word in words.split()}
