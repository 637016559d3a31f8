# ruff: noqa: PLR2004, E501
"""Makes pairs in the forms that documents are full of: facts of contracts and reports, sections, captions, news.

A fact is a subject, an attribute and a value, worded in several ways. Another value contradicts it; another subject or
another year does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from octavo_small.edits import MONTHS, WEEKDAYS, Editor
from octavo_small.sources import CONTRADICTS, ENTAILS, NEUTRAL, NOT_CONTRADICTION, Pair

_THINGS = """the agreement|the lease|the contract|the service|the subscription|the policy|the programme|the project|the device|
the pump|the engine|the battery|the office|the warehouse|the committee|the board|the supplier|the landlord|the tenant|the buyer|
the seller|the customer|the employer|the library|the museum|the school|the hospital|the bridge|the plant|the survey|the course|
the loan|the fund|the licence|the software|the printer|the camera|the order|the shipment|the machine|the laboratory|the clinic|
the union|the agency|the department|the bank|the airline|the hotel|the newspaper|the club|the festival|the foundation""".replace(
    "\n", ""
).split("|")
_PLACES_TEXT = """
London Paris Berlin Madrid Rome Vienna Oslo Dublin Lisbon Boston Chicago Denver Toronto Sydney Tokyo Delhi
Cairo Lima Geneva Prague Warsaw Leeds Bristol Austin Seattle
"""
_PLACES = _PLACES_TEXT.split()
_PEOPLE_FIRST_TEXT = """
Anna James Maria John Laura Peter Susan David Emma Robert Alice Mark Julia Paul Nina Thomas Clara Henry Olga
Simon Ruth Victor Helen Carlos
"""
_PEOPLE_FIRST = _PEOPLE_FIRST_TEXT.split()
_PEOPLE_LAST_TEXT = """
Smith Jones Brown Miller Davis Wilson Moore Taylor Clark Lewis Walker Hall Young King Wright Hill Scott
Green Baker Nelson Carter Mitchell Roberts Turner Phillips
"""
_PEOPLE_LAST = _PEOPLE_LAST_TEXT.split()
_ROLES_TEXT = """
a spokesman|a spokeswoman|the chief executive|the mayor|an analyst|a lawyer for the family|the finance minister|a police officer|the director|a neighbour|the head coach|a union official|a senior adviser|the lead author|a resident|the governor
"""
_ROLES = _ROLES_TEXT.strip().split("|")


@dataclass(frozen=True, slots=True)
class Fact:
    """Wordings of one kind of fact: {s} is the subject, {v} the value, and `value` names how values are drawn."""

    value: str
    wordings: tuple[str, ...]


def _fact(value: str, wordings: str) -> Fact:
    return Fact(value, tuple(wordings.split(" | ")))


# Only wordings that give the attribute in full: then two values cannot both be true.
FACTS = (
    _fact(
        "days",
        "Either party may terminate {s} with {v} notice. | The notice period of {s} is {v}. | {S} can be ended by giving {v} notice. | Notice of termination of {s} must be given {v} in advance.",
    ),
    _fact(
        "days",
        "Invoices of {s} are payable within {v}. | Payment to {s} is due {v} after the invoice date. | {S} must be paid no later than {v} after receipt of the invoice.",
    ),
    _fact(
        "days",
        "The warranty of {s} lasts {v}. | {S} comes with a warranty of {v}. | {S} is guaranteed for {v}. | The guarantee on {s} runs for {v}.",
    ),
    _fact(
        "days",
        "Records of {s} are kept for {v}. | {S} stores the records for {v} and then deletes them. | The retention period of {s} is {v}.",
    ),
    _fact(
        "days",
        "Goods from {s} may be returned within {v}. | {S} accepts returns for {v} after purchase. | Customers of {s} have {v} to return an item.",
    ),
    _fact("days", "Delivery by {s} takes {v}. | {S} delivers within {v}. | The delivery time of {s} is {v}."),
    _fact(
        "years",
        "The term of {s} is {v}. | {S} runs for {v}. | {S} has a duration of {v}. | {S} was concluded for a period of {v}.",
    ),
    _fact(
        "money",
        "The monthly rent of {s} is {v}. | {S} pays a rent of {v} per month. | Rent for {s} amounts to {v} each month.",
    ),
    _fact("money", "{S} costs {v} a year. | The annual fee of {s} is {v}. | A yearly fee of {v} is charged for {s}."),
    _fact(
        "money",
        "The deposit for {s} is {v}. | A deposit of {v} must be paid for {s}. | {S} requires a security deposit of {v}.",
    ),
    _fact("money", "The total price of {s} was {v}. | {S} was bought for {v}. | {v} was paid for {s}."),
    _fact("money", "The budget of {s} is {v}. | {S} has a budget of {v}. | {v} was set aside for {s}."),
    _fact(
        "money",
        "The liability of {s} is limited to {v}. | {S} is liable for at most {v}. | Liability of {s} is capped at {v}.",
    ),
    _fact(
        "percent",
        "The interest rate of {s} is {v} a year. | {S} bears interest at {v} per year. | {S} charges {v} annual interest.",
    ),
    _fact("percent", "{S} owns {v} of the shares. | {v} of the shares belong to {s}. | {S} holds a stake of {v}."),
    _fact(
        "percent",
        "The unemployment rate in {p} was {v}. | {v} of the labour force in {p} was unemployed. | Unemployment in {p} stood at {v}.",
    ),
    _fact(
        "percent",
        "Turnout in {p} was {v}. | {v} of voters in {p} took part in the election. | In {p}, voter turnout reached {v}.",
    ),
    _fact(
        "count",
        "{S} has {v} employees. | {S} employs {v} people. | {v} people work for {s}. | The workforce of {s} numbers {v}.",
    ),
    _fact("count", "{S} has {v} members. | The membership of {s} stands at {v}. | {v} people are members of {s}."),
    _fact("count", "The population of {p} is {v}. | {p} has {v} inhabitants. | {v} people live in {p}."),
    _fact(
        "count",
        "{v} people attended the meeting of {s}. | The meeting of {s} was attended by {v} people. | Attendance at the meeting of {s} was {v}.",
    ),
    _fact(
        "count",
        "The study of {s} included {v} patients. | {v} patients took part in the study of {s}. | {S} enrolled exactly {v} patients in its study.",
    ),
    _fact("small", "{S} consists of {v} members. | There are {v} members in {s}. | {S} is made up of {v} people."),
    _fact(
        "small",
        "{S} has {v} floors. | The building of {s} is {v} storeys high. | There are {v} storeys in the building of {s}.",
    ),
    _fact(
        "place",
        "{S} is based in {v}. | The head office of {s} is in {v}. | {S} has its headquarters in {v}. | {v} is the seat of {s}.",
    ),
    _fact(
        "place",
        "The next meeting of {s} will be held in {v}. | {S} meets next in {v}. | {v} hosts the next meeting of {s}.",
    ),
    _fact("place", "{n} was born in {v}. | {v} is the birthplace of {n}. | {n}'s place of birth is {v}."),
    _fact(
        "person",
        "{v} is the director of {s}. | The director of {s} is {v}. | {S} is headed by {v}. | {v} is in charge of {s}.",
    ),
    _fact("person", "{S} was founded by {v}. | The founder of {s} was {v}. | {v} founded {s}."),
    _fact("person", "{v} signed {s}. | {S} was signed by {v} alone. | The only signature on {s} is that of {v}."),
    _fact(
        "date",
        "{S} starts on {v}. | The start date of {s} is {v}. | {S} takes effect on {v}. | The effective date of {s} is {v}.",
    ),
    _fact("date", "{S} expires on {v}. | The last day of {s} is {v}. | {S} ends on {v}. | {S} is valid until {v}."),
    _fact(
        "date",
        "The deadline for {s} is {v}. | Applications to {s} must be received by {v}. | {S} accepts applications until {v}.",
    ),
    _fact("date", "{n} was born on {v}. | {n}'s date of birth is {v}. | The birthday of {n} is {v}."),
    _fact(
        "year",
        "{S} was founded in {v}. | The foundation of {s} took place in {v}. | {S} has existed since {v}. | {v} saw the foundation of {s}.",
    ),
    _fact("year", "{S} opened in {v}. | The opening of {s} was in {v}. | {S} has been open since {v}."),
    _fact("year", "{n} died in {v}. | {n}'s death came in {v}. | {v} is the year of {n}'s death."),
    _fact(
        "length",
        "{S} is {v} long. | The length of {s} is {v}. | {S} has a length of {v}. | {S} measures {v} in length.",
    ),
    _fact("weight", "{S} weighs {v}. | The weight of {s} is {v}. | {S} has a weight of {v}."),
    _fact(
        "degrees",
        "The operating temperature of {s} must not exceed {v}. | {S} may be used up to {v}. | The maximum temperature of {s} is {v}.",
    ),
    _fact("volts", "{S} runs on {v}. | The supply voltage of {s} is {v}. | {S} requires a supply of {v}."),
    _fact(
        "dose",
        "The recommended dose of {s} is {v} a day. | Patients of {s} take {v} daily. | Adults at {s} should take {v} per day.",
    ),
    _fact("hours", "{S} opens at {v}. | The opening time of {s} is {v}. | Doors of {s} open at {v}."),
    _fact("weekday", "{S} is closed on {v}. | On {v}, {s} does not open. | {v} is the closing day of {s}."),
    _fact("colour", "The cover of {s} is {v}. | {S} has a {v} cover. | {v} is the colour of the cover of {s}."),
)
# What is allowed or true, and what is not: (wordings for yes, wordings for no).
CHOICES = (
    ("{S} may be transferred to a third party. | {S} is transferable. | A transfer of {s} to others is allowed.", "{S} may not be transferred to a third party. | {S} is not transferable. | {S} must not be passed on to others."),
    ("Pets are allowed in {s}. | {S} permits pets. | Tenants of {s} may keep pets.", "Pets are not allowed in {s}. | {S} forbids pets. | Keeping pets in {s} is prohibited."),
    ("{S} shares personal data with advertisers. | Personal data is passed to advertisers by {s}.", "{S} does not share personal data with advertisers. | {S} never passes personal data to advertisers."),
    ("{S} was approved by the council. | The council approved {s}. | The council voted in favour of {s}.", "{S} was rejected by the council. | The council turned down {s}. | The council voted against {s}."),
    ("{S} supports wireless printing. | Wireless printing works with {s}.", "{S} does not support wireless printing. | {S} cannot print wirelessly."),
    ("{S} was profitable. | {S} made a profit.", "{S} made a loss. | {S} was not profitable. | {S} lost money."),
    ("Sales of {s} rose. | {S} sold more than before. | Sales of {s} increased.", "Sales of {s} fell. | {S} sold less than before. | Sales of {s} decreased."),
    ("{S} is open to the public. | Anyone may visit {s}.", "{S} is closed to the public. | {S} is not open to the public. | The public has no access to {s}."),
    ("{S} is insured against fire. | The insurance of {s} covers fire.", "{S} is not insured against fire. | The insurance of {s} excludes fire. | Fire damage to {s} is not covered."),
    ("The fee for {s} is refundable. | {S} refunds the fee.", "The fee for {s} is non-refundable. | {S} does not refund the fee. | The fee for {s} will not be returned."),
    ("Overtime at {s} is paid. | {S} pays for overtime.", "Overtime at {s} is unpaid. | {S} does not pay for overtime."),
    ("{S} is still in use. | {S} remains in operation.", "{S} is no longer in use. | {S} has been shut down. | {S} is out of operation."),
    ("{n} is alive. | {n} is still living.", "{n} is dead. | {n} has died."),
    ("{n} is married. | {n} has a spouse.", "{n} is unmarried. | {n} is single. | {n} never married."),
    ("{n} accepted the offer of {s}. | {n} said yes to {s}.", "{n} declined the offer of {s}. | {n} turned {s} down. | {n} rejected the offer of {s}."),
    ("{S} requires written consent. | Written consent is needed for {s}.", "{S} requires no written consent. | No written consent is needed for {s}. | {S} may go ahead without written consent."),
    ("The treatment of {s} reduced pain. | Pain decreased under the treatment of {s}.", "The treatment of {s} had no effect on pain. | Pain did not decrease under the treatment of {s}. | The treatment of {s} increased pain."),
    ("A man is playing a guitar near {s}. | Somebody is playing the guitar near {s}.", "Nobody is playing a guitar near {s}. | There is no man playing a guitar near {s}."),
    ("The dog is running through {p}. | A dog runs through {p}.", "There is no dog running through {p}. | The dog is standing still in {p}. | No dog is running in {p}."),
    ("A woman is slicing an onion. | The onion is being sliced by a woman.", "There is no woman slicing an onion. | A woman is not slicing an onion. | Nobody is slicing an onion."),
)  # fmt: skip


_NUMBER_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
    "fourteen": 14, "thirty": 30, "sixty": 60, "ninety": 90,
}  # fmt: skip
_DAYS = {"days": 1, "weeks": 7, "months": 30}


def _is_same(first: str, second: str) -> bool:
    """Whether two values can mean the same: sixty days and two months, 5% and 5 percent, a date with and without year."""
    one, other = _plain(first), _plain(second)
    return one == other or one.startswith(other) or other.startswith(one)


def _plain(value: str) -> str:
    words = [str(_NUMBER_WORDS.get(word, word)) for word in value.replace(" percent", "%").replace(":00", "").split()]
    if len(words) == 2 and words[1] in _DAYS:
        return f"{int(words[0]) * _DAYS[words[1]]}d"
    for month in MONTHS:
        if month in words and words[0] == month and len(words) == 3:
            return f"{words[1].rstrip(',')} {month} {words[2]}"
    return " ".join(words)


class FormMaker:
    """Draws pairs of sentences in the forms of this module."""

    def __init__(self, rng: Random, editor: Editor, words: list[str], prose: list[str]) -> None:
        self._rng, self._editor, self._words, self._prose = rng, editor, words, prose
        self._names = [name for name in editor.subjects if 1 < len(name.split()) < 4 and not name.startswith("The")]
        self._forms = (
            self._sections, self._references, self._captions, self._scores, self._conferences, self._table_rows,
            self._contents, self._theorems, self._results, self._quoted_mail, self._headings, self._numbered_names,
            self._bounds, self._units, self._cited, self._numbered, self._roles, self._years, self._clauses, self._titles,
        )  # fmt: skip

    def fact_pairs(self) -> list[Pair]:
        """Draw a fact: another value contradicts it, the same value in other words is entailed, another subject is neutral."""
        fact = self._rng.choice(FACTS)
        slots, others = self._slots(), self._slots()
        value, changed = self._two_values(fact.value)
        first, second, third = (self._rng.choice(fact.wordings) for _ in range(3))
        a = self._fill(first, slots, value)
        pairs = [
            Pair(a, self._fill(second, slots, changed), CONTRADICTS, "fact-value"),
            Pair(a, self._fill(third, others, changed), NEUTRAL, "fact-subject"),
        ]
        if second != first:
            pairs.append(Pair(a, self._fill(second, slots, value), ENTAILS, "fact-same"))
        if fact.value in {"percent", "count"} and self._rng.random() < 0.7:
            years = self._rng.sample(range(1985, 2026), 2)
            in_years = [f"In {year}, {text[0].lower() if text.startswith('The ') else text[0]}{text[1:]}" for year, text in zip(years, (a, self._fill(third, slots, changed)), strict=True)]  # fmt: skip
            pairs.append(Pair(in_years[0], in_years[1], NEUTRAL, "fact-year"))
        other = self._rng.choice(FACTS)
        if other is not fact:
            b = self._fill(self._rng.choice(other.wordings), slots, self._two_values(other.value)[0])
            pairs.append(Pair(a, b, NOT_CONTRADICTION, "fact-attribute"))
        return pairs

    def choice_pairs(self) -> list[Pair]:
        yes, no = (text.split(" | ") for text in self._rng.choice(CHOICES))
        slots, others = self._slots(), self._slots()
        a, b = self._fill(self._rng.choice(yes), slots, ""), self._fill(self._rng.choice(no), slots, "")
        pairs = [Pair(*self._rng.sample([a, b], 2), CONTRADICTS, "choice")]
        if "{s}" in yes[0].lower() or "{n}" in yes[0]:
            far = self._fill(self._rng.choice(no), others, "")
            pairs.append(Pair(*self._rng.sample([a, far], 2), NEUTRAL, "choice-subject"))
        same = self._fill(self._rng.choice(yes), slots, "")
        if same != a:
            pairs.append(Pair(a, same, ENTAILS, "choice-same"))
        return pairs

    def form_pair(self) -> Pair:
        """Draw two statements that look alike and are both true."""
        a, b = self._rng.choice(self._forms)()
        return Pair(a, b, NOT_CONTRADICTION, "form")

    def news_pairs(self, sentence: str) -> list[Pair]:
        """Put a sentence into a news story. Two people who disagree do not make the story contradict itself."""
        denied = self._editor.contradict(sentence)
        if denied is None:
            return []
        who, other = self._person(), self._person()
        pairs = [
            Pair(self._say(who, sentence), self._say(other, denied[0]), NEUTRAL, "news-two-people"),
            Pair(
                self._say(who, sentence),
                self._say(who, self._rng.choice(self._prose)),
                NOT_CONTRADICTION,
                "news-same-person",
            ),
        ]
        if self._rng.random() < 0.5:
            pairs.append(Pair(self._say(who, sentence), self._say(who, denied[0]), CONTRADICTS, "news-contradiction"))
        subject = self._editor.change_subject(denied[0])
        if subject:
            pairs.append(Pair(sentence, self._say(other, subject), NOT_CONTRADICTION, "news-subject"))
        return pairs

    def _say(self, who: str, sentence: str) -> str:
        body, day, role = sentence.rstrip("."), self._rng.choice(WEEKDAYS), self._rng.choice(_ROLES)
        last = who.rsplit(maxsplit=1)[-1]
        form = self._rng.randrange(6)
        if form == 0:
            return f"“{body},” said {who}, {role}."
        if form == 1:
            return f"{who}, {role}, said on {day} that {body[0].lower()}{body[1:]}."
        if form == 2:
            return f"“{body},” Mr. {last} said."
        if form == 3:
            return f"But Ms. {last} told reporters: “{body}.”"
        if form == 4:
            return f"{self._rng.choice(_PLACES).upper()} — {body}, according to {who}."
        return f"Mr. {last}, {self._rng.randint(22, 80)}, recalled that {body[0].lower()}{body[1:]}."

    def _slots(self) -> dict[str, str]:
        thing = self._rng.choice(_THINGS)
        if self._rng.random() < 0.6:
            owner = self._rng.choice([*_PLACES, self._rng.choice(self._names), self._rng.choice(_PEOPLE_LAST)])
            thing = self._rng.choice([f"{thing} of {owner}", f"the {owner} {thing[4:]}", f"{owner}"])
        return {"s": thing, "S": thing[0].upper() + thing[1:], "p": self._rng.choice(_PLACES), "n": self._person()}

    def _fill(self, wording: str, slots: dict[str, str], value: str) -> str:
        text = wording.format(**slots, v=value)
        return text[0].upper() + text[1:]

    def _person(self) -> str:
        if self._rng.random() < 0.3:
            return self._rng.choice(self._names)
        return f"{self._rng.choice(_PEOPLE_FIRST)} {self._rng.choice(_PEOPLE_LAST)}"

    def _two_values(self, kind: str) -> tuple[str, str]:
        first = second = self._value(kind)
        while _is_same(first, second):
            second = self._value(kind)
        return first, second

    def _value(self, kind: str) -> str:
        draw, choice = self._rng.randint, self._rng.choice
        values = {
            "days": lambda: choice([f"{choice([7, 10, 14, 15, 20, 21, 28, 30, 45, 60, 90, 120, 180])} days", f"{choice([2, 3, 4, 6, 12, 18, 24])} months", f"{choice(['two', 'three', 'four', 'six', 'eight'])} weeks", f"{choice(['thirty', 'sixty', 'ninety', 'fourteen', 'ten'])} days"]),
            "years": lambda: f"{choice(['two', 'three', 'five', 'ten', 'twelve', '2', '3', '4', '5', '7', '10', '15', '20', '25'])} years",
            "money": lambda: choice([f"${draw(1, 99) * 50:,}", f"{draw(1, 99) * 50:,} euros", f"£{draw(2, 900)}", f"${draw(2, 90)} million", f"EUR {draw(1, 99) * 25:,}"]),
            "percent": lambda: f"{choice([str(draw(1, 95)), f'{self._rng.uniform(0.5, 80):.1f}'])}{choice(['%', ' percent'])}",
            "count": lambda: choice([f"{draw(1100, 900000):,}", str(draw(13, 999))]),
            "small": lambda: choice(["three", "four", "five", "six", "seven", "eight", "nine", "ten", "12", "15", "20"]),
            "place": lambda: choice(_PLACES),
            "person": lambda: f"{choice(_PEOPLE_FIRST)} {choice(_PEOPLE_LAST)}",
            "date": lambda: choice([f"{draw(1, 28)} {choice(MONTHS)} {draw(1990, 2027)}", f"{choice(MONTHS)} {draw(1, 28)}, {draw(1990, 2027)}", f"{draw(1, 28)} {choice(MONTHS)}"]),
            "year": lambda: str(draw(1850, 2025)),
            "length": lambda: f"{draw(2, 900)} {choice(['km', 'metres', 'cm', 'feet'])}",
            "weight": lambda: f"{draw(2, 900)} {choice(['kg', 'tonnes', 'grams', 'pounds'])}",
            "degrees": lambda: f"{draw(20, 250)} °C",
            "volts": lambda: f"{choice([5, 9, 12, 24, 48, 110, 120, 230, 240, 400])} volts",
            "dose": lambda: f"{choice([5, 10, 20, 25, 40, 50, 100, 150, 200, 250, 400, 500])} mg",
            "hours": lambda: f"{draw(6, 12)}{choice([':00', ':30', ''])} {choice(['a.m.', 'p.m.'])}",
            "weekday": lambda: choice(WEEKDAYS) + "s",
            "colour": lambda: choice(["red", "green", "blue", "black", "white", "yellow", "grey", "brown", "orange", "purple"]),
        }  # fmt: skip
        return values[kind]()

    def _some_words(self, count: int) -> str:
        return " ".join(self._rng.sample(self._words, count))

    def _fragment(self) -> str:
        words = self._rng.choice(self._prose).split()
        start = self._rng.randrange(max(1, len(words) - 9))
        return " ".join(words[start : start + self._rng.randint(5, 9)]).strip(".,;")

    def _author(self) -> str:
        names = self._rng.choice(self._names).split()
        return f"{names[0][0]}. {names[-1]}"

    def _sections(self) -> tuple[str, str]:
        topic, draw = self._some_words(3), self._rng.randint
        verb = self._rng.choice(["discusses", "describes", "presents", "reviews", "concludes with", "introduces"])
        return tuple(f"{self._rng.choice(['Section', 'Chapter', 'In Section', 'Appendix'])} {draw(1, 12)} {verb} {topic}, and Section {draw(1, 12)} {self._rng.choice(['concludes', verb + ' ' + self._some_words(1)])}." for _ in "ab")  # fmt: skip

    def _references(self) -> tuple[str, str]:
        authors, title, draw = ", ".join(self._author() for _ in range(self._rng.randint(1, 3))), self._fragment(), self._rng.randint  # fmt: skip
        return tuple(f"[{draw(1, 60)}] {authors}. {self._rng.choice([title, self._fragment()])}. {self._rng.choice(['In Proceedings of', 'Journal of', 'Annals of'])} {self._some_words(2).title()}, {draw(1985, 2024)}, pages {draw(1, 400)}-{draw(401, 800)}." for _ in "ab")  # fmt: skip

    def _captions(self) -> tuple[str, str]:
        topic = self._some_words(3)
        return tuple(f"{self._rng.choice(['Figure', 'Fig.', 'Table', 'Photo'])} {self._rng.randint(1, 14)}: {topic} {self._rng.choice(['', 'of ' + self._some_words(1), 'against ' + self._some_words(1)])}.".replace(" .", ".") for _ in "ab")  # fmt: skip

    def _scores(self) -> tuple[str, str]:
        team, draw = self._rng.choice([*_PLACES, *self._names[:500]]), self._rng.randint
        return tuple(f"{team} {self._rng.choice(['beat', 'lost to', 'drew with', 'defeated'])} {self._rng.choice([*_PLACES, *self._names[:500]])} {draw(1, 9)}-{draw(0, 9)}{self._rng.choice([f' on {self._rng.choice(MONTHS)} {draw(1, 28)}', f' on {self._rng.choice(WEEKDAYS)}', ''])}." for _ in "ab")  # fmt: skip

    def _conferences(self) -> tuple[str, str]:
        name = self._some_words(2).title()
        return tuple(f"The {self._rng.randint(4, 40)}th {name} {self._rng.choice(['conference', 'congress'])} was held in {self._rng.choice(_PLACES)} in {self._rng.randint(1980, 2024)}." for _ in "ab")  # fmt: skip

    def _table_rows(self) -> tuple[str, str]:
        heads = self._some_words(2).split()
        return tuple(f"{self._rng.choice([*_PLACES, *self._words[:400]])} | {heads[0]}: {self._rng.randint(0, 999)} | {heads[1]}: {self._rng.uniform(0, 99):.1f}" for _ in "ab")  # fmt: skip

    def _contents(self) -> tuple[str, str]:
        title, draw = self._fragment(), self._rng.randint
        return tuple(f"{draw(1, 9)}.{draw(1, 9)} {self._rng.choice([title, self._fragment()])} {'.' * draw(3, 12)} {draw(1, 90)}" for _ in "ab")  # fmt: skip

    def _theorems(self) -> tuple[str, str]:
        thing, quality = self._some_words(2).split()
        return tuple(f"{self._rng.choice(['Theorem', 'Lemma', 'Definition', 'Algorithm', 'Step', 'Example'])} {self._rng.randint(1, 20)}. {self._rng.choice(['Let', 'Given', 'For every', 'If'])} {thing} be {quality} with {self._rng.choice('nkmxyt')} {self._rng.choice('=<>')} {self._rng.randint(0, 99)}." for _ in "ab")  # fmt: skip

    def _results(self) -> tuple[str, str]:
        measure, sets = self._some_words(1), self._some_words(2).split()
        return tuple(f"{self._rng.choice(['On', 'For', 'With'])} the {name} {self._rng.choice(['data set', 'corpus', 'method', 'group', 'region'])}, {measure} {self._rng.choice(['rose', 'fell', 'increased', 'decreased', 'was'])} {self._rng.choice(['to', 'by', 'at'])} {self._rng.uniform(0.1, 99):.1f}{self._rng.choice(['%', ' percent', ''])}." for name in sets)  # fmt: skip

    def _quoted_mail(self) -> tuple[str, str]:
        subject, draw = self._fragment(), self._rng.randint
        return tuple(f"On {self._rng.choice(WEEKDAYS)[:3]}, {draw(1, 28)} {self._rng.choice(MONTHS)[:3]} {draw(2001, 2026)} at {draw(0, 23)}:{draw(10, 59)}, {self._person()} wrote: {self._rng.choice([subject, self._fragment()])}" for _ in "ab")  # fmt: skip

    def _headings(self) -> tuple[str, str]:
        words = self._some_words(4).split()
        return f"{self._rng.randint(1, 9)} {' '.join(words[:3]).title()}", f"{self._rng.randint(1, 9)}.{self._rng.randint(1, 9)} {words[0].title()} {self._rng.choice(['not', 'without', 'and', 'after'])} {words[3].title()}"  # fmt: skip

    def _numbered_names(self) -> tuple[str, str]:
        name = self._rng.choice(["".join(word[0].upper() for word in self._some_words(4).split()), self._some_words(1).title(), f"the {self._some_words(1).title()} Cup", "Task", "Group", "Experiment", "Building", "Model", "Lot", "Phase", "Unit"])  # fmt: skip
        numbers = self._rng.choice([self._rng.sample(range(1990, 2026), 2), self._rng.sample(range(1, 30), 2)])
        thing, verb, draw = self._some_words(1), self._rng.choice(["used", "had", "covered", "attracted", "contained", "cost", "involved"]), self._rng.randint  # fmt: skip
        opening = self._rng.choice(
            ["The {} track", "The {} survey", "{}", "The {} edition", "{} teams", "The {} trial"]
        )
        return tuple(f"{opening.format(f'{name} {number}')} {verb} {draw(2, 999)} {thing}s.".replace("ss.", "s.") for number in numbers)  # fmt: skip

    def _titles(self) -> tuple[str, str]:
        """Titles name works: two works of one field have almost the same title."""
        words = self._some_words(5).split()
        other = list(words)
        for place in self._rng.sample(range(5), self._rng.choice([1, 1, 2])):
            other[place] = self._rng.choice(self._editor.antonyms.get(words[place], self._words))
        form = self._rng.choice(["{} {} of {} with {} {}.", "On the {} of {} {} and {} {}", "Effects of {} {} on the {} of {} {}.", "{} of {} {} under {} {}.", "Tests of {} {} {} at {} {}.", "The {} and {} of {} {} in {}.", "Measurements of {} {} {} at {} and {}.", "A study of {} {}: {} {} {}"])  # fmt: skip
        return tuple((text[0].upper() + text[1:]) for text in (form.format(*words), form.format(*other)))  # fmt: skip

    def _bounds(self) -> tuple[str, str]:
        thing, noun, low = self._rng.choice(_THINGS), self._some_words(1), self._rng.randint(5, 400)
        first = f"{thing.capitalize()} has {self._rng.choice(['at least', 'more than', 'over', 'no fewer than'])} {low} {noun}s."
        return first, f"{thing.capitalize()} has {low + self._rng.randint(1, 90)} {noun}s."

    def _units(self) -> tuple[str, str]:
        thing, one, other = self._rng.choice(_THINGS), *self._rng.sample(["km", "hours", "kg", "euros", "people", "pages", "litres"], 2)  # fmt: skip
        verb = self._rng.choice(["needs", "covers", "takes", "holds", "uses"])
        return tuple(f"{thing.capitalize()} {verb} {self._rng.randint(2, 900)} {unit}." for unit in (one, other))  # fmt: skip

    def _cited(self) -> tuple[str, str]:
        sentence = self._rng.choice(self._prose)
        return f"{sentence} [{self._rng.randint(1, 50)}]", f"{self._rng.choice(['As shown in', 'See', 'Following'])} [{self._rng.randint(1, 50)}], {sentence[0].lower()}{sentence[1:]}"  # fmt: skip

    def _numbered(self) -> tuple[str, str]:
        sentence = self._rng.choice(self._prose)
        return f"{self._rng.randint(1, 20)}. {sentence}", f"{self._rng.randint(1, 20)}.{self._rng.randint(1, 9)} {self._editor.shorten(sentence) or sentence}"  # fmt: skip

    def _roles(self) -> tuple[str, str]:
        place, years = self._rng.choice(_PLACES), self._rng.sample(range(1970, 2026), 2)
        role = self._rng.choice(["mayor of", "ambassador to", "bishop of", "coach of"])
        return tuple(f"{self._person()} {self._rng.choice(['was elected', 'became', 'was named'])} {role} {place} in {year}." for year in years)  # fmt: skip

    def _years(self) -> tuple[str, str]:
        thing, unit = self._rng.choice(self._names), self._rng.choice(["people", "employees", "students", "members", "visitors", "tonnes"])  # fmt: skip
        years = self._rng.sample(range(1950, 2026), 2)
        return tuple(f"In {year}, {thing} had {self._rng.randint(1000, 90000):,} {unit}." for year in years)  # fmt: skip

    def _clauses(self) -> tuple[str, str]:
        party = self._rng.sample(["Tenant", "Landlord", "Buyer", "Seller", "Supplier", "Customer", "Employer", "Employee", "Licensor", "Licensee"], 2)  # fmt: skip
        act = self._rng.choice(["pay the costs", "assign this agreement", "enter the premises", "disclose the terms", "terminate the contract", "keep copies"])  # fmt: skip
        verbs = self._rng.sample(["shall", "shall not", "may", "may not", "must", "is not required to"], 2)
        return tuple(f"{self._rng.randint(1, 20)}.{self._rng.randint(1, 9)} The {who} {verb} {act}." for who, verb in zip(party, verbs, strict=True))  # fmt: skip
