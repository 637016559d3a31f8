"""Model task: rewrite a follow-up question such as "And how much is the deposit?" so that it makes sense on its own.

Without a model, rules add the words that the follow-up question leaves out: the subject of the previous question, a
name, a time, or a source of the previous answer. The rules cover English and the most common German forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from octavo.ai.calls import InstructionText, Part, QuotedText
from octavo.ai.tasks.task import Task, UnusableAnswer
from octavo.language.insights import Output
from octavo.language.vocabulary import STOPWORDS, WORD

MAX_TURNS, MAX_ANSWER, MAX_SOURCES = 4, 600, 20
MAX_QUESTION = 1000
ANSWER_TOKENS = 120
CALL_SECONDS = 20.0
# A question with at most this many words other than stop words, and without a name or a number, has no clear subject.
FEW_WORDS = 2


@dataclass(frozen=True, slots=True)
class EarlierTurn:
    """An earlier question after rewriting, its answer, and the titles of the answer's sources, ordered by source
    number.
    """

    question: str
    answer: str = ""
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question and the turns before it, oldest first."""

    question: str
    earlier: Sequence[EarlierTurn]


class RewrittenQuestion(Output):
    """A question that makes sense on its own.

    `same_documents` is true if the question is about the documents of the previous answer. If the question is about
    only one source of that answer, `source` is its number.
    """

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION)]
    same_documents: bool = False
    source: Annotated[int, Field(ge=1)] | None = None


def build_parts(given: FollowUp) -> list[Part]:
    parts: list[Part] = [InstructionText("The conversation so far:")]
    for number, turn in enumerate(given.earlier[-MAX_TURNS:], start=1):
        sources = "\n".join(f"{place}. {title}" for place, title in enumerate(turn.titles[:MAX_SOURCES], start=1))
        text = f"Question: {turn.question}\nAnswer: {turn.answer[:MAX_ANSWER]}\nSources:\n{sources}"
        parts.append(QuotedText(f"turn-{number}", text))
    return [*parts, InstructionText(f"The next question:\n{given.question}")]


def check_source(given: FollowUp, answer: RewrittenQuestion) -> RewrittenQuestion:
    last = len(given.earlier[-1].titles) if given.earlier else 0
    if answer.source and answer.source > last:
        raise UnusableAnswer(f"`source` must be null or a number from 1 to {last}")
    return answer


# Rules --------------------------------------------------------------------------------------------------------------

_QUESTION_WORD = (
    r"what|which|who|whom|whose|when|where|why|how(?: (?:long|much|many|often|far|old|large|big|high|deep|heavy|soon))?"
)
_AUXILIARY = r"is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must"
_DO = frozenset({"do", "does", "did", "can", "could", "will", "would", "may", "must", "should"})
_CASE_WORD = r"of|for|in|at|from|about|on|by|with|between|under|after|before|since|until|into"
_GERMAN = r"des|vom|von|für|im|bei|beim|zum|zur"
_DETERMINER = r"the|a|an|my|our|your|this|that|these|those|its|their|his|her"
_MONTH = r"january|february|march|april|may|june|july|august|september|october|november|december"
_TIME = rf"(?:the year )?(?:(?:\d{{1,2}} )?(?:{_MONTH}) )?(?:19|20)\d\d|q[1-4]|(?:{_MONTH})(?= |$)"
_NAME = r"[A-ZÄÖÜ][\w-]*(?: [A-ZÄÖÜ][\w-]*)*"
_ORDINALS: dict[str, int] = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}
_ITEM_NOUN = r"one|document|file|source|text|quote|result|passage"
_PARTICIPLES = {"wrote": "written", "took": "taken", "gave": "given", "chose": "chosen", "drew": "drawn"}
_MANY = 6  # words
# The length of a verb with a short noun phrase, such as "does the fee": the words after it belong to the noun phrase.
_SHORT_THING = 3


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_LEAD = _compile(r"(?:and|but|so|or|also|then|okay|und|aber|oder)\b[, ]*(?:also )?")
_ABOUT = _compile(r"(?:what about|how about|what of|the same for|same for|was ist mit|wie ist es mit)\s+(?P<rest>.+)")
_SENTENCE = _compile(rf"(?:(?:{_CASE_WORD}|to) )?(?:{_QUESTION_WORD}|{_AUXILIARY}|wer|wie|was|wann|wo|warum)\b .+")
_ITEM = _compile(rf"\bthe (?P<place>{'|'.join(_ORDINALS)})(?: (?:{_ITEM_NOUN})\b|$)(?: of (?:them|these|those))?")
_BARE = _compile(
    rf"(?P<word>{_QUESTION_WORD}|since when|until when|by whom|for whom|with whom)"
    r"(?: (?:is|was) (?:that|this|it)| (?:so|exactly|not))?"
)
_OPENING = _compile(rf"(?:(?:{_CASE_WORD}) )?(?:{_QUESTION_WORD})(?: [\w-]+)?? (?=(?:{_AUXILIARY})\b)")
_WHO_DID = _compile(rf"who (?!(?:{_AUXILIARY})\b)(?P<verb>[a-z]+) (?P<what>(?:{_DETERMINER}) .+)")
_HE = _compile(r"\b(?:he|she|him|her|his)\b")
_IT = _compile(r"\b(?:it|its|they|them|their)\b|\b(?:this|that|these|those)\b(?=$| (?:is|are|was|were|cost|mean)\b)")
_THEY = _compile(r"\b(?:they|them|their)\b")
# In lower case: a name that ends with s is not a plural.
_PLURAL = re.compile(
    rf"(?<![Ww]hat )(?<![Ww]ho )(?<![Ww]hich )\b(?:(?:{_DETERMINER}|two|all) )?"
    r"(?!does\b|this\b|was\b|has\b|is\b)[a-z]{2,}[a-rt-z]s\b"
)
_THERE = _compile(r"\bthere\b(?! (?:is|are|was|were)\b)")
_OF_THEM = frozenset({"its", "their", "his", "her"})
_IS_THING = _compile(rf"(?:{_QUESTION_WORD})(?: [\w-]+)? (?P<verb>is|are|was|were) (?P<what>[\w' -]+)")
_WITHOUT_NOUN = _compile(
    r"(?P<start>(?:(?:the|his|her|its|their|my) )?(?:(?:best|most|least|worst|\w+est|first|last|next|other|second)"
    r"(?: \w+(?:wn|ed|id|en))?|\w+(?: \w+)?(?= ones?$)))(?: ones?)?"
)
_NAMES = re.compile(rf"(?<=[\w,] ){_NAME}")
_OWNER = re.compile(rf"(?P<name>{_NAME})['\u2019]s\b")
_CASE = _compile(rf"(?P<word>{_CASE_WORD}|to|{_GERMAN}) (?P<what>.+)")
_WITH_OWNER = _compile(r"\b(?:the|a|an|my|our) [\w-]+ of (?:(?:the|a|an|my|our) )?[\w-]+")
_AT_TIME = _compile(rf" (?:in|on|since|until|by|before|after|at the end of) (?:{_TIME}).*")
# Properties of things: "What about the deposit?" asks for the deposit of the thing in the previous question.
_PROPERTIES = _compile(
    r"(?:address|age|amount|area|author|balance|bonus|budget|buyer|capacity|charge|clause|colour|condition|contact|"
    r"cost|currency|customer|date|day|deadline|delivery|deposit|depth|discount|distance|duration|duty|end|expense|"
    r"expiry|extension|fee|fine|frequency|guarantee|height|hour|interest|interest rate|landlord|length|lessee|lessor|"
    r"liability|limit|location|maintenance|manager|name|notice|number|obligation|option|order|owner|payment|penalty|"
    r"percentage|period|phone|place|price|purpose|quantity|rate|reason|renewal|rent|repair|result|risk|rule|salary|"
    r"scope|seller|sender|signature|size|start|status|sum|supplier|surface|tax|temperature|tenant|term|termination|"
    r"time|title|total|type|value|vat|version|volume|warranty|weight|width|insurance)(?:s|es)?"
)
_THING = _compile(rf"(?:{_DETERMINER}) (?:[\w-]+ ){{0,2}}?(?P<noun>[\w-]+)")
_PRONOUN = _compile(r"it|this|that|they|them|these|those|he|she|i|you|we|there")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A follow-up question without its leading "And" or "What about".

    `is_part` is true if `text` is not a complete question. `is_about` is true if the question began with "What about".
    """

    text: str
    is_part: bool
    is_about: bool = False


def rewrite_offline(given: FollowUp) -> RewrittenQuestion:
    """Rewrite a follow-up question using rules. A question that makes sense on its own is returned unchanged."""
    question = " ".join(given.question.split())
    text = _plain(question)
    if not given.earlier or not text:
        return RewrittenQuestion(question=question or given.question)
    led = _LEAD.match(text)
    rest = text[led.end() :] if led else text
    about = _ABOUT.fullmatch(rest)
    is_part = bool(about or (led and not _SENTENCE.match(rest)))
    thing = about["rest"] if about else rest
    without_owner = _compile(r"(?:his|her|its|their) ").sub("the ", thing, count=1) if is_part else thing
    asked = _Asked(without_owner, is_part, is_about=bool(about) and without_owner == thing)
    found = (rule(asked, given.earlier[-1]) for rule in _RULES)
    rewritten = next((one for one in found if one), None)
    if rewritten is None and (led or asked.is_part or _is_short(asked.text)):
        rewritten = _with_subject(asked, given.earlier[-1])
    return rewritten or RewrittenQuestion(question=question)


def _finish(question: str, *, same: bool = True, source: int | None = None) -> RewrittenQuestion:
    text = question.strip()[: MAX_QUESTION - 1]
    return RewrittenQuestion(question=f"{text[:1].upper()}{text[1:]}?", same_documents=same, source=source)


def _plain(question: str) -> str:
    return question.rstrip("?!. ")


def _is_short(text: str) -> bool:
    words = [word for word in WORD.findall(text) if word.lower() not in STOPWORDS["en"]]
    return 0 < len(words) <= FEW_WORDS and not _NAMES.search(text) and not re.search(r"\d", text)


# Each rule returns None if it does not apply.


def _by_item(asked: _Asked, before: EarlierTurn) -> RewrittenQuestion | None:
    """Replace "the second one" with the second source of the previous answer."""
    match = _ITEM.search(asked.text)
    place = _ORDINALS[match["place"].lower()] if match else 0
    place = len(before.titles) if place < 0 else place
    if not match or not 0 < place <= len(before.titles):
        return None
    title = f"“{before.titles[place - 1]}”"
    if asked.is_part and match[0] == asked.text:
        return _finish(f"{_plain(before.question)} ({title})", source=place)
    return _finish(f"{asked.text[: match.start()]}{title}{asked.text[match.end() :]}", source=place)


def _by_question_word(asked: _Asked, before: EarlierTurn) -> RewrittenQuestion | None:
    """Repeat the previous question with another question word, for a follow-up question such as "Why?"."""
    match = _BARE.fullmatch(asked.text)
    if not match:
        return None
    word, previous = match["word"], _plain(before.question)
    if opening := _OPENING.match(previous):
        how = re.fullmatch(r"how (?P<much>\w+) ", opening[0], re.IGNORECASE)
        if how and how["much"].lower() in {"much", "many", "often"}:
            return _finish(f"{word}: {previous[:1].lower()}{previous[1:]}")
        degree = f" so {how['much']}" if how else ""
        return _finish(f"{word} {previous[opening.end() :]}{degree}")
    if did := _WHO_DID.fullmatch(previous):
        return _finish(f"{word} was {did['what']} {_PARTICIPLES.get(did['verb'].lower(), did['verb'])}")
    return _finish(f"{word}: {previous[:1].lower()}{previous[1:]}")


def _by_time(asked: _Asked, before: EarlierTurn) -> RewrittenQuestion | None:
    """Rewrite a follow-up such as "And in 2023?" by repeating the previous question with the new date or period."""
    match = re.fullmatch(rf"(?:(?:{_CASE_WORD}) )?(?:the )?(?P<time>{_TIME})", asked.text, re.IGNORECASE)
    if not match or not asked.is_part:
        return None
    previous, other = _plain(before.question), _compile(rf"\b(?:{_TIME})")
    if other.search(previous):
        return _finish(other.sub(match["time"], previous, count=1), same=False)
    return _finish(f"{previous} in {match['time']}", same=False)


def _by_case(asked: _Asked, before: EarlierTurn) -> RewrittenQuestion | None:
    """Repeat the previous question with another prepositional phrase, for a follow-up question such as "And for the
    vans?".
    """
    match = _CASE.fullmatch(asked.text)
    if not match or not asked.is_part:
        return None
    previous = _plain(before.question)
    same = list(_compile(rf"\b{match['word']} ").finditer(previous))
    end = same[-1].start() if same else _last_case(previous) or len(previous)
    return _finish(f"{previous[:end].strip()} {asked.text}", same=False)


def _by_name(asked: _Asked, before: EarlierTurn) -> RewrittenQuestion | None:
    """Repeat the previous question with another name, for a follow-up question such as "What about Norway?"."""
    wanted = re.fullmatch(rf"(?:the )?(?P<name>{_NAME})(?:['\u2019]s)?", asked.text)
    previous = _plain(before.question)
    names = list(_NAMES.finditer(previous))
    if not wanted or not names or not asked.is_part:
        return None
    return _finish(f"{previous[: names[-1].start()]}{wanted['name']}{previous[names[-1].end() :]}", same=False)


def _by_thing(asked: _Asked, before: EarlierTurn) -> RewrittenQuestion | None:
    """Repeat the previous question with another noun phrase, for a follow-up such as "What about the crane?"."""
    wanted = _THING.fullmatch(asked.text)
    if not wanted or not asked.is_about or _PROPERTIES.fullmatch(wanted["noun"]):
        return None
    previous, thing = _AT_TIME.sub("", _plain(before.question)), _last_thing(before)
    start, found, end = previous.rpartition(thing) if thing else ("", "", "")
    return _finish(_at_same_time(f"{start}{asked.text}{end}", before), same=False) if found else None


def _last_thing(before: EarlierTurn) -> str:
    """Return the last noun phrase with an article in the previous question, such as "the van lease"."""
    case = _case(before).partition(" ")[2]
    if re.match(rf"(?:{_DETERMINER})\b", case, re.IGNORECASE):
        return case
    question = _AT_TIME.sub("", _plain(before.question))
    thing = _main_thing(question)
    return thing if re.match(rf"(?:{_DETERMINER})\b", thing, re.IGNORECASE) else ""


def _by_pronoun(asked: _Asked, before: EarlierTurn) -> RewrittenQuestion | None:
    """Replace a pronoun with the person, object or place that it refers to."""
    for pattern, find in ((_HE, _person), (_THEY, _things), (_IT, _thing), (_THERE, _place)):
        match = pattern.search(asked.text)
        meant = find(before, match[0].lower()) if match else ""
        if match and meant:
            is_owner = match[0].lower() in _OF_THEM and match.end() < len(asked.text)
            text = f"{asked.text[: match.start()]}{meant}{_own(meant) if is_owner else ''}{asked.text[match.end() :]}"
            return _finish(_at_same_time(text, before))
    return None


def _own(owner: str) -> str:
    return "\u2019" if owner.endswith("s") else "\u2019s"


_RULES: Sequence[Callable[[_Asked, EarlierTurn], RewrittenQuestion | None]] = (
    _by_item,
    _by_question_word,
    _by_time,
    _by_case,
    _by_name,
    _by_thing,
    _by_pronoun,
)


def _with_subject(asked: _Asked, before: EarlierTurn) -> RewrittenQuestion:
    """Add the subject of the previous question to a follow-up question such as "And how much is the deposit?"."""
    if asked.is_part:
        return _finish(_in_place(asked.text, before))
    case, subject = _case(before), _subject(before)
    if _IS_THING.fullmatch(asked.text) and not _last_case(asked.text) and subject:
        return _finish(_at_same_time(f"{asked.text} of {subject}", before))
    if case and re.match(rf"(?:{_GERMAN})\b", case):
        return _finish(f"{asked.text} {case}")
    return _finish(_at_same_time(f"{asked.text} ({subject})" if subject else asked.text, before))


def _in_place(thing: str, before: EarlierTurn) -> str:
    """Complete a follow-up question that consists only of a noun phrase, such as "And the deposit?".

    `thing` is that noun phrase. The missing words come from the previous question.
    """
    previous = _plain(before.question)
    place = _last_case(previous)
    start, end = previous[:place].strip(), previous[place:]
    if _WITH_OWNER.fullmatch(thing) and (same := _WITH_OWNER.search(previous)):
        return f"{previous[: same.start()]}{thing}{previous[same.end() :]}"
    if end.lower().startswith("about "):
        return f"{start} about {thing}"
    if place and (is_thing := _IS_THING.fullmatch(start)):
        if without := _WITHOUT_NOUN.fullmatch(thing):
            thing = f"{without['start']} {is_thing['what'].split()[-1]}"
        return f"what {is_thing['verb']} {thing} {end}"
    subject = _subject(before)
    return _at_same_time(f"what about {thing} of {subject}" if subject else f"{previous}: {thing}", before)


def _at_same_time(text: str, before: EarlierTurn) -> str:
    """Add the time that the previous question names to the new question, unless it already names a time."""
    time = _AT_TIME.search(_plain(before.question))
    return text if not time or _compile(rf"\b(?:{_TIME})").search(text) else f"{text}{time[0]}"


# The subject of the previous question


def _last_case(question: str) -> int:
    """Return the position of the last phrase that begins with a preposition and does not name a time.

    Returns 0 if there is no such phrase.
    """
    found = _compile(rf"(?<=\w )(?:{_CASE_WORD}|{_GERMAN}) (?!(?:{_TIME}|the end)\b)\w").finditer(question)
    return max((one.start() for one in found), default=0)


def _case(before: EarlierTurn) -> str:
    """Return the last phrase of the previous question that begins with a preposition.

    Phrases that name a time are skipped, and a verb at the end is removed.
    """
    question = _AT_TIME.sub("", _plain(before.question))
    place = _last_case(question)
    case, start = question[place:] if place else "", question[:place].lower().split()
    words = case.split()
    asks_action = len(words) > 2 and bool(_DO.intersection(start))  # noqa: PLR2004 - a preposition, a thing, a verb
    place = max((number for number, word in enumerate(start) if word in _DO), default=len(start))
    follows_thing = len(start) - place <= _SHORT_THING
    ends_in_verb = len(words) > 1 and words[-1].islower() and words[-2][:1].isupper()
    return _without_verb(words) if (asks_action and follows_thing) or ends_in_verb else case


def _subject(before: EarlierTurn) -> str:
    """Return the subject of the previous question.

    If the question names no subject, returns the title of the answer's first source.
    """
    if owner := _OWNER.search(_plain(before.question)):
        return owner["name"]
    found = _case(before).partition(" ")[2] or _main_thing(_AT_TIME.sub("", _plain(before.question)))
    if found and not _PRONOUN.fullmatch(found):
        return found
    return before.titles[0] if before.titles else ""


def _main_thing(question: str) -> str:
    """Return the noun phrase after the first verb, such as "the crane lease" in "When does the crane lease end"."""
    match = re.search(rf"\b(?P<verb>{_AUXILIARY})\b (?P<what>.+)", question, re.IGNORECASE)
    words = (match["what"] if match else question).split()
    if not match or _PRONOUN.fullmatch(words[0]) or " to " in question:
        starts = [place for place, word in enumerate(words) if re.fullmatch(_DETERMINER, word.lower())]
        return " ".join(words[starts[-1] :]) if starts else ""
    return _without_verb(words) if match["verb"].lower() in _DO else " ".join(words)


def _without_verb(words: Sequence[str]) -> str:
    """Remove the verb at the end of a question, such as "last" or "be replaced"."""
    left = list(words[:-1] if len(words) > 1 else words)
    return " ".join(left[:-1] if left[-1].lower() in {"be", "have", "been"} else left)


def _thing(before: EarlierTurn, pronoun: str) -> str:
    """Return the words to use in place of "it".

    These words are the previous answer, if the previous question began with "what" or "which" and its answer is short.
    Otherwise, they are the subject of the previous question.
    """
    answer = before.answer.strip()
    asks_thing = re.match(r"(?:what|which)\b", before.question, re.IGNORECASE)
    is_thing = 0 < len(answer.split()) <= _MANY and not re.search(r"\d", answer)
    return answer if asks_thing and is_thing and pronoun not in _OF_THEM else _subject(before)


def _things(before: EarlierTurn, _pronoun: str) -> str:
    """Return the first plural noun phrase in the previous question, such as "the vans"."""
    match = _PLURAL.search(_plain(before.question))
    return match[0] if match else ""


def _place(before: EarlierTurn, _pronoun: str) -> str:
    subject = _subject(before)
    return f"in {subject}" if subject else ""


def _person(before: EarlierTurn, _pronoun: str) -> str:
    """Return the name to use in place of "he" or "she".

    If the previous question asked "who" or "whom" and its answer is a name, returns that name. Otherwise, returns the
    name that comes last in the previous question.
    """
    asks_person = re.match(r"(?:by |with |for )?(?:who|whom)\b", before.question, re.IGNORECASE)
    if asks_person and re.fullmatch(_NAME, before.answer.strip()):
        return before.answer.strip()
    names = list(_NAMES.finditer(_plain(before.question)))
    people = [one for one in names if not re.search(r"\b(?:in|at|from|to|on) $", before.question[: one.start()])]
    return (people or names)[-1][0] if names else _subject(before)


REWRITE_QUESTION: Task[FollowUp, RewrittenQuestion] = Task(
    name="rewrite_question",
    output=RewrittenQuestion,
    build_parts=build_parts,
    estimate_tokens=lambda _given: ANSWER_TOKENS,
    output_tokens=5 * ANSWER_TOKENS,
    check=check_source,
    seconds=CALL_SECONDS,
    offline=rewrite_offline,
)
