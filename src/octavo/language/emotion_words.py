"""A small lexicon of feelings, of our own: English words that name a feeling or what people feel it about.

It is short on purpose. It holds words that mean one feeling nearly everywhere, and leaves out those that often mean
something else ("kind", "mean", "sick", "like"); who wants more asks a model.
"""

from __future__ import annotations

from octavo.language.outputs import Emotion

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
