# ruff: noqa: E501, PLR2004
"""Changes a sentence so that it contradicts the original, says something about another thing, or says the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
COUNTS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]

_NUMBER = re.compile(r"(?<![\w.,/-])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w/]|[.,]\d|-\d)")
_WORD_LISTS = tuple(
    (words, re.compile(rf"\b(?:{'|'.join(words)})\b")) for words in (MONTHS, WEEKDAYS, COUNTS, ORDINALS)
)
# A bound is no exact figure: "more than 30" and "more than 40" can both be true.
_BOUND = re.compile(
    r"\b(?:than|over|least|most|up to|about|around|approximately|roughly|nearly|almost|some|between|and|or|to)\s\W?$",
    re.IGNORECASE,
)
# A number behind one of these words is the number of a section, a figure or a version, or a part of a name.
_LABEL = re.compile(
    r"(?:\b(?:Section|Chapter|Article|Figure|Fig\.|Table|No\.|Number|Part|Volume|Vol\.|Page|pages?|version|Act|Title|Room|"
    r"Highway|Route|Flight|Type|Class|Grade|Season|Episode|Resolution|Regulation|Directive)|[A-Z][\w.]*[A-Z]\w*)[\s-]$"
)
_NAME_BEFORE = re.compile(r"\b([A-Z][\w'-]+) $")
_NOT_A_NAME_TEXT = """
In On By From Since Until After Before The At During For About Only All With To Of And But Between Over
Under Some Around It He She They This That These Those There Let We You I If When While As Such Our Each
Many One Two Three However No Not Now Here Both Such Since What Who Which Although Because Through Despite
Like Unlike His Her Their Its My Your A An So Then Thus Also More Most Every Another Other Several Few Under
Following Another Congress Top Hot
"""
_NOT_A_NAME = frozenset([*_NOT_A_NAME_TEXT.split(), *MONTHS])

_AUXILIARY = re.compile(
    r"\b(is|was|are|were|has|have|had|can|could|will|would|does|did|shall|should|must|may) (?!not\b|n't|no\b|never\b)"
)
_DENIAL = re.compile(
    r"\b(is|was|are|were|has|have|had|can|could|will|would|does|did|shall|should|must|may) (?:not|never) "
)
_IRREGULAR = {
    "won": "win", "lost": "lose", "became": "become", "began": "begin", "made": "make", "took": "take", "gave": "give",
    "went": "go", "came": "come", "wrote": "write", "sold": "sell", "bought": "buy", "built": "build", "led": "lead",
    "left": "leave", "held": "hold", "met": "meet", "paid": "pay", "grew": "grow", "fell": "fall", "rose": "rise",
    "found": "find", "kept": "keep", "said": "say", "told": "tell", "spent": "spend", "sent": "send", "broke": "break",
    "chose": "choose", "sang": "sing", "fought": "fight", "stood": "stand", "understood": "understand", "ran": "run",
}  # fmt: skip
_PRESENT = {
    "contains": "contain", "includes": "include", "provides": "provide", "requires": "require", "supports": "support",
    "allows": "allow", "plays": "play", "stars": "star", "features": "feature", "makes": "make", "uses": "use",
    "owns": "own", "produces": "produce", "shares": "share", "collects": "collect", "applies": "apply", "lives": "live",
    "works": "work", "remains": "remain", "borders": "border", "consists": "consist", "covers": "cover",
}  # fmt: skip

_RELATION = re.compile(
    r"\b((?:directed|written|founded|created|published|born|located|based|headquartered|invented|discovered|died|composed|"
    r"painted|designed|developed|built|capital of|authored|established|situated|borders?|married to|owned|conquered|"
    r"defeated|produced|distributed|signed|led|chaired|appointed|starring|stars)(?: by| in| at| to| of| with)?(?: the)?) "
    r"((?:[A-Z][\w'.-]+)(?: (?:[A-Z][\w'.-]+|of|de|the))*)"
)
_SUBJECT = re.compile(
    r"^((?:The )?(?:[A-Z][\w'.-]+ ){0,4}[A-Z][\w'.-]+)"
    r"(?= (?:\(|is|was|are|were|has|had|have|will|would|can|may|shall|must|does|did|[a-z]+ed|[a-z]+s|won|wrote|made|became)\b| \()"
)
_COMMON_SUBJECT = re.compile(
    r"^(The|Our|Their|His|Her|This) ([a-z]+) "
    r"(?=(?:is|was|are|were|has|had|have|will|would|can|may|shall|must|does|did|[a-z]+ed)\b)"
)
_UNIQUE = re.compile(
    r"\b(capital|only|president|first|largest|oldest|most|winner|won the|king|queen|founder|prime)\b", re.IGNORECASE
)
_NAME_INSIDE = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_NAME_WITH_NUMBER = re.compile(r"\b([A-Z][A-Za-z]+ )(\d{1,4})\b(?![,.]\d| [a-z]+s\b| (?:percent|million|billion)\b)")
_PARENTHESES = re.compile(r" \([^()]*\)")
_CLAUSE = re.compile(r", (?:and|which|who|where|but|while|with|as|including|making|becoming|although|though|when)\b")


def replace(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def other_number(number: str, rng: Random) -> str:
    """Return a clearly different number of the same form."""
    if "," in number or len(number) > 4:
        value = int(float(number.replace(",", "")) * rng.choice([0.3, 0.5, 0.7, 1.4, 2, 3, 10]))
        return f"{value:,}" if value >= 1000 else str(value + 1)
    if "." in number:
        return f"{float(number) * rng.choice([0.4, 0.6, 1.5, 2.2, 3]) + 0.1:.{len(number.split('.')[1])}f}"
    value = int(number)
    if 1000 <= value <= 2030:
        return str(value + rng.choice([-30, -12, -9, -5, -4, -3, -2, -1, 1, 2, 3, 5, 7, 10, 20]))
    if value < 100:
        step = rng.choice([-9, -5, -3, -2, -1, 1, 2, 3, 4, 6, 10, 20, 30, 60])
        return str(value + step if value + step > 0 else value + abs(step))
    return str(int(value * rng.choice([0.4, 0.6, 0.8, 1.3, 1.7, 2.5])) + 1)


def is_label(text: str, start: int) -> bool:
    """Whether the number at this place belongs to a name, a section or a reference, and so is not a figure."""
    before = text[:start]
    name = _NAME_BEFORE.search(before)
    return bool(_LABEL.search(before)) or (name is not None and name[1] not in _NOT_A_NAME)


@dataclass
class Editor:
    """Edits sentences, with the names and words of a collection of sentences."""

    rng: Random
    antonyms: dict[str, list[str]]
    objects: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    subjects: list[str] = field(default_factory=list[str])
    nouns: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])

    def learn_names(self, sentences: list[str]) -> None:
        for sentence in sentences:
            for match in _RELATION.finditer(sentence):
                self.objects.setdefault(match[1], []).append(match[2].rstrip("."))
            self.names += [match[0] for match in _NAME_INSIDE.finditer(sentence)]
            if (match := _SUBJECT.match(sentence)) and match[1].split()[0] not in _NOT_A_NAME - {"The"}:
                self.subjects.append(match[1])
            if match := _COMMON_SUBJECT.match(sentence):
                self.nouns.append(match[2])
        self.subjects = sorted(set(self.subjects))

    def contradict(self, sentence: str, within: str | None = None) -> tuple[str, str] | None:
        """Return a sentence that contradicts this one, and the kind of change; None if this change is not possible."""
        kinds: list[tuple[str, float, Callable[[], str | None]]] = [
            ("number", 0.42, lambda: self.change_number(sentence, within)),
            ("denial", 0.2, lambda: self.deny(sentence)),
            ("antonym", 0.23, lambda: self.change_antonym(sentence)),
            ("name", 0.15, lambda: self.change_name(sentence, within)),
        ]
        name, _, change = self.rng.choices(kinds, [kind[1] for kind in kinds])[0]
        result = change()
        return (result, name) if result and result != sentence else None

    def change_number(self, sentence: str, within: str | None = None) -> str | None:
        """Change one figure, month, weekday or number word; if `within` is given, one that it contains too."""
        places = [
            (match.start(), match.end(), other_number(match[0], self.rng))
            for match in _NUMBER.finditer(sentence)
            if not is_label(sentence, match.start()) and not _BOUND.search(sentence[: match.start()])
        ]
        for words, pattern in _WORD_LISTS:
            for match in pattern.finditer(sentence):
                is_verb = match[0] == "May" and not re.match(r"May \d", sentence[match.start() :])
                if not is_verb and not _BOUND.search(sentence[: match.start()]):
                    others = [word for word in words if word != match[0]]
                    places.append((match.start(), match.end(), self.rng.choice(others)))
        if within is not None:
            places = [place for place in places if sentence[place[0] : place[1]] in within]
        return replace(sentence, *self.rng.choice(places)) if places else None

    def deny(self, sentence: str) -> str | None:
        """Deny a statement, or state what the sentence denies."""
        if match := _DENIAL.search(sentence):
            return replace(sentence, match.start(), match.end(), f"{match[1]} ")
        if (match := _AUXILIARY.search(sentence)) and match.start() < 90:
            never = match[1] in {"is", "was", "has", "have", "had", "were", "will"} and self.rng.random() < 0.3
            return replace(sentence, match.start(), match.end(), f"{match[1]} {'never' if never else 'not'} ")
        return self._deny_full_verb(sentence)

    def _deny_full_verb(self, sentence: str) -> str | None:
        for word in re.finditer(r"\b[a-z]+\b", sentence[:90]):
            base, auxiliary = _IRREGULAR.get(word[0]), "did"
            if base is None and word[0] in _PRESENT:
                base, auxiliary = _PRESENT[word[0]], "does"
            if base:
                return replace(sentence, word.start(), word.end(), f"{auxiliary} not {base}")
        return None

    def change_antonym(self, sentence: str) -> str | None:
        words = [match for match in re.finditer(r"\b[a-z]+\b", sentence) if match[0] in self.antonyms]
        if not words:
            return None
        word = self.rng.choice(words)
        return replace(sentence, word.start(), word.end(), self.rng.choice(self.antonyms[word[0]]))

    def change_name(self, sentence: str, within: str | None = None) -> str | None:
        """Change who did it or where it is, in relations that allow only one."""
        matches = [
            match
            for match in _RELATION.finditer(sentence)
            if len(set(self.objects.get(match[1], []))) > 5 and (within is None or match[2].rstrip(".") in within)
        ]
        if not matches:
            return None
        match = self.rng.choice(matches)
        old, new = match[2].rstrip("."), self.rng.choice(self.objects[match[1]])
        if set(old.split()) & set(new.split()):
            return None
        return replace(sentence, match.start(2), match.start(2) + len(old), new)

    def change_any_name(self, sentence: str) -> str | None:
        """Change a name inside the sentence. Whether that contradicts it is for the teacher to say."""
        names = list(_NAME_INSIDE.finditer(sentence))
        if not names or not self.names:
            return None
        name = self.rng.choice(names)
        return replace(sentence, name.start(), name.end(), self.rng.choice(self.names))

    def change_subject(self, sentence: str) -> str | None:
        """Say the same of another thing, unless it can be true of one thing only."""
        if _UNIQUE.search(sentence):
            return None
        if match := _COMMON_SUBJECT.match(sentence):
            new = self.rng.choice(self.nouns)
            return f"{match[1]} {new} {sentence[match.end() :]}" if new.rstrip("s") != match[2].rstrip("s") else None
        match = _SUBJECT.match(sentence)
        if not match or match[1].split()[0] in _NOT_A_NAME - {"The"}:
            return None
        new, rest = self.rng.choice(self.subjects), sentence[match.end() :]
        if match[1].split()[-1] in rest or set(new.split()) & set(match[1].split()) - {"The"}:
            return None
        return new + rest

    def change_period(self, sentence: str) -> str | None:
        """Move the sentence to another year, where other things can be true."""
        year = re.match(r"(?:In|During|By|For) (?:the year )?((?:1[5-9]|20)\d\d)\b", sentence)
        return replace(sentence, year.start(1), year.end(1), other_number(year[1], self.rng)) if year else None

    def change_numbered_name(self, sentence: str) -> str | None:
        """Apollo 11 and Apollo 12 are two things."""
        names = [match for match in _NAME_WITH_NUMBER.finditer(sentence) if match[1].strip() not in _NOT_A_NAME]
        if not names:
            return None
        name = self.rng.choice(names)
        return replace(sentence, name.start(2), name.end(2), other_number(name[2], self.rng))

    def shorten(self, sentence: str) -> str | None:
        """Leave out a clause: the sentence entails the rest."""
        text = _CLAUSE.split(_PARENTHESES.sub("", sentence))[0].rstrip(".,; ") + "."
        return text if 20 < len(text) < len(sentence) - 8 else None

    def restate(self, sentence: str) -> str | None:
        """Write a number or a date in another way: the sentence entails the result, and the other way round."""
        result = _restate_dates(_restate_amounts(sentence))
        if result == sentence:
            result = re.sub(r"\b(two|three|four|five|six|seven|eight|nine|ten)\b", _digits_of, sentence)
        return result if result != sentence else None


def _digits_of(match: re.Match[str]) -> str:
    return str(COUNTS.index(match[0]) + 2)


def _restate_amounts(sentence: str) -> str:
    text = re.sub(r"(\d) ?percent\b", r"\1%", sentence)
    text = re.sub(r"\b(\d+),000,000\b", r"\1 million", text)
    return re.sub(r"\b(\d+),(\d{3})\b(?!,)", r"\1\2", text)


def _restate_dates(sentence: str) -> str:
    months = "|".join(MONTHS)
    text = re.sub(rf"\b({months}) (\d{{1,2}}), (\d{{4}})\b", r"\2 \1 \3", sentence)
    if text != sentence:
        return text
    return re.sub(rf"\b(\d{{1,2}}) ({months}) (\d{{4}})\b", r"\2 \1, \3", sentence)
