"""Chooses a document's number, date, order number, account number and due date from all numbers and dates in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octavo.facts.dates import is_ambiguous, writes_month_first
from octavo.facts.mentions import Mention, NearText, PageRuns
from octavo.facts.money import Choice
from octavo.facts.typed_values import FINDERS
from octavo.facts.words import Notation, RoleHit, fold

_NUMBER_WORD = re.compile(r"(?:number|num|numero|nummer|numer|nomor|nr|no|n[°º]?|#|cislo|c)[\s.:]*")
_FILLER = re.compile(r"[\s:.,;#=()\u2013\u2116*/|\[\]-]|\d")
_BARE_YEAR = re.compile(r"(?:19|20)\d\d")
_VAT_OR_IBAN = re.compile(
    r"[A-Z]{2}\d{2}[A-Z0-9]{10,30}|(?:DE|AT|FR|NL|BE|IT|ES|PL|LU|GB|DK|SE|FI|PT|IE|CZ)[A-Z]?\d{8,12}[A-Z]?\d*"
)
_FEW_DIGITS = 3
_CLEAR_FORMS = {"label", "composed", "label above"}  # the labels after which one digit is a number
_NEAR_NOUN = 25  # the most characters between "Lieferung" and "vom"
_CLEAR_DATE = {"date", "datum", "fecha", "data", "dato", "tanggal", "tgl", "dated"}
_MOST_FILLER = 14  # the most letters between a label and its value
_MOST_NOUN_GAP = 40  # the most characters between "Rechnung" and "Nr."
_STRONG, _COMPOSED, _HEADING, _NUMBER_ONLY, _TOP = 3.0, 3.0, 2.2, 0.9, 0.5
_SIDES = {"same": 1.0, "left": 0.95, "above": 0.85}
_ABOVE_LINES = 3
_TOP_SHARE = 0.35


@dataclass(frozen=True, slots=True)
class Labelled:
    """A value and its role, such as invoice number or due date.

    `form` says how the role was found, such as `label`, `heading` or `top` (near the top of the page).
    """

    mention: Mention
    role: str
    score: float
    form: str


@dataclass(frozen=True, slots=True)
class References:
    number: Choice | None = None
    order: Choice | None = None
    account: Choice | None = None
    date: Choice | None = None
    due_date: Choice | None = None


def choose_references(page: PageRuns, in_items: set[int]) -> References:
    numbers = [one for one in label_numbers(page) if one.mention.run.line not in in_items or one.form == "label"]
    number = _best(page, numbers, "number")
    taken = {number.value} if number else set[str]()
    order, account = (
        _best(page, [one for one in numbers if one.mention.value not in taken], role)
        for role in ("order_id", "account_id")
    )
    dates = label_dates(page, number, in_items)
    date = _best_date(page, dates)
    due = _best(page, [one for one in dates if date is None or one.mention.value >= date.value], "due_date")
    if date and due:
        date = Choice(date.value, date.mention, date.evidence | {"before due"})
        due = Choice(due.value, due.mention, due.evidence | {"after date"})
    return References(number, order, account, date, due)


# Numbers


def label_numbers(page: PageRuns) -> list[Labelled]:
    days = {(one.run.line, one.index, one.start) for one in page.every("date")}
    found: list[Labelled] = []
    for mention in page.every("reference"):
        is_date = (mention.run.line, mention.index, mention.start) in days
        if is_date or not _can_be_number(mention.value) or _is_money(mention):
            continue
        best = max(_number_roles(page, mention), key=lambda one: one.score, default=None)
        if best and (len(mention.value) > 1 or best.form in _CLEAR_FORMS):
            found.append(best)
    return found


def _is_money(mention: Mention) -> bool:
    """Whether a currency follows the number, so that it is an amount, as in "orders above 300 EUR"."""
    after = mention.run.text[mention.end : mention.end + 6]
    return any(not after[: one.start].strip() for one in FINDERS["currency"](after, Notation()))


def _can_be_number(value: str) -> bool:
    bare = re.sub(r"[\s.]", "", value)
    return not _BARE_YEAR.fullmatch(value) and not _VAT_OR_IBAN.fullmatch(bare) and len(value) <= 40  # noqa: PLR2004


def _number_roles(page: PageRuns, mention: Mention) -> Iterator[Labelled]:
    run = mention.run
    start = max(mention.start - 80, 0)
    prefix = run.folded[start : mention.start]
    texts: list[NearText] = []
    if any(map(str.isalpha, prefix)) or "#" in prefix:
        if _NUMBER_WORD.match(prefix) and (left := _run_left(page, mention)):
            prefix = f"{left.folded} {prefix}"
        texts.append(NearText(prefix, prefix, "same", run.box))
    elif mention.start <= 2:  # noqa: PLR2004 - the value begins its run
        left = _run_left(page, mention)
        above = page.above(mention, "reference", most=_ABOVE_LINES)
        texts += [one for one in (left, above) if one]
    for near in texts:
        found = _number_role(page, near, mention)
        if found:
            role, score, form = found
            yield Labelled(mention, role, score * _SIDES[near.side], form if near.side != "above" else f"{form} above")


def _run_left(page: PageRuns, mention: Mention) -> NearText | None:
    if mention.index == 0:
        return None
    run = page.lines[mention.run.line].runs[mention.index - 1]
    return (
        NearText(run.text, run.folded, "left", run.box) if any(map(str.isalpha, run.text)) or "#" in run.text else None
    )


def _number_role(page: PageRuns, near: NearText, mention: Mention) -> tuple[str, float, str] | None:
    hits = page.hits("numbers", near.folded)
    if not hits or not _reaches(near, hits[-1]):
        return None
    last = hits[-1]
    is_number_word = bool(_NUMBER_WORD.fullmatch(near.folded[last.start : last.end]))
    noun = _noun(near.folded, hits) if is_number_word else None
    if last.role == "reference" or (is_number_word and noun is None):
        return ("number", _NUMBER_ONLY, "number word")
    if last.role != "weak_number":
        return (last.role, _STRONG, "label")
    if noun:
        return ("number" if noun.role in {"number", "weak_number", "reference"} else noun.role, _COMPOSED, "composed")
    if near.side != "same":
        return ("number", 1.0, "heading")
    begins = last.start <= 2 and mention.end - mention.start >= 3  # noqa: PLR2004
    return ("number", _HEADING if begins else 1.2, "heading")


def _reaches(near: NearText, last: RoleHit) -> bool:
    """Whether a label is close to the value: only separators or a few letters are between them."""
    gap = len(_FILLER.sub("", near.folded[last.end :])) if near.side != "above" else 0
    return gap <= (_MOST_FILLER if last.role not in {"weak_number", "order_id", "account_id"} else 2)


def _noun(folded: str, hits: Sequence[RoleHit]) -> RoleHit | None:
    """Return the noun to which a word for "number" belongs, such as "Rechnung" (invoice) in "Rechnung (380) Nr.".

    Returns None if there is no such noun.
    """
    last = hits[-1]
    for hit in reversed(hits[:-1]):
        between = folded[hit.end : last.start]
        if len(between) > _MOST_NOUN_GAP:
            return None
        if not _NUMBER_WORD.fullmatch(folded[hit.start : hit.end]):
            return hit
    return None


def _best(page: PageRuns, found: Sequence[Labelled], role: str) -> Choice | None:
    own = [one for one in found if one.role == role]
    if not own:
        return None
    times = Counter(one.mention.value for one in own)
    printed = Counter(mention.value for mention in page.every("reference")) if role == "number" else times

    def score(one: Labelled) -> float:
        digits = 0.25 if sum(map(str.isdigit, one.mention.value)) >= 3 else 0.0  # noqa: PLR2004
        return one.score + 0.15 * min(times[one.mention.value], 3) + digits - 0.002 * min(one.mention.run.line, 100)

    best = max(own, key=score)
    evidence = {best.form}
    if role != "due_date" and sum(map(str.isdigit, best.mention.value)) < _FEW_DIGITS:
        evidence.add("short")
    if printed[best.mention.value] > 1:
        evidence.add("repeated")
    if any(one.mention.value != best.mention.value and one.score >= best.score - 0.35 for one in own):
        evidence.add("rival")
    return Choice(best.mention.value, best.mention, frozenset(evidence))


# Dates


def label_dates(page: PageRuns, number: Choice | None, in_items: set[int]) -> list[Labelled]:
    found: list[Labelled] = []
    for mention in page.every("date"):
        near = list(_date_texts(page, mention))
        best: Labelled | None = None
        for one in near:
            read = _date_role(page, one, number)
            if read:
                role, score, form = read
                best = Labelled(mention, role, score * _SIDES[one.side], form)
                break
        if best is None:
            best = _unlabelled(page, mention, near, in_items)
        if best:
            found.append(best)
    return found


def _date_texts(page: PageRuns, mention: Mention) -> Iterator[NearText]:
    """Yield the texts near a date that may be its label.

    If the date begins its line, the end of the line above is included, because it may contain a word such as "vom"
    (German for "dated").
    """
    before = page.before(mention, "date")
    if before:
        yield before
        return
    if mention.index and mention.start <= 2:  # noqa: PLR2004
        left = _run_left(page, mention)
        if left:
            yield left
    if mention.index == 0 and mention.run.line and mention.start == 0:
        line = page.lines[mention.run.line - 1]
        last = line.runs[-1]
        if (
            len(line.runs) == 1
            and line.page == mention.run.page
            and abs(line.runs[0].box.left - mention.run.box.left) < 3 * last.box.height
        ):
            start = max(len(last.text) - 80, 0)
            hits = page.hits("dates", last.folded[start:])
            if hits and hits[-1].end >= len(last.folded[start:].rstrip(" :.")):
                yield NearText(last.text[start:], last.folded[start:], "same", last.box)
    above = page.above(mention, "date", most=_ABOVE_LINES)
    if above:
        yield above


def _date_role(page: PageRuns, near: NearText, number: Choice | None) -> tuple[str, float, str] | None:
    hits = page.hits("dates", near.folded)
    if not hits:
        return None
    last = hits[-1]
    gap = _FILLER.sub("", near.folded[last.end :])
    if near.side != "above" and len(gap) > _MOST_FILLER:
        return None
    if last.role != "weak_date":
        return (last.role, _STRONG, "label")
    if number and fold(number.value) in near.folded:
        return ("date", _STRONG + 0.4, "with number")
    return _weak_date_role(page, near.folded, hits)


def _weak_date_role(page: PageRuns, folded: str, hits: Sequence[RoleHit]) -> tuple[str, float, str]:
    """Return the role of a date that follows a word such as "vom" (German for "dated").

    The noun before that word determines the role.
    """
    last = hits[-1]
    earlier = [hit for hit in hits[:-1] if hit.role in {"other", "due_date"} and last.start - hit.end < _NEAR_NOUN]
    if earlier:
        return (earlier[-1].role, 2.0, "composed")
    nouns = page.hits("numbers", folded[: last.start])
    if nouns and nouns[-1].role in {"number", "weak_number"}:
        return ("date", 2.6, "composed")
    if nouns and nouns[-1].role != "reference":
        return ("other", 2.0, "composed")
    is_clear = folded[last.start : last.end] in _CLEAR_DATE and last.start <= 3  # noqa: PLR2004
    return ("date", 2.2, "word") if is_clear else ("date", 1.0, "weak")


def _unlabelled(page: PageRuns, mention: Mention, near: Sequence[NearText], in_items: set[int]) -> Labelled | None:
    """Choose the role of a date without a label. Returns None for dates in the item table or after the first page.

    The role of any other date is:

    - `date`, if the date is next to the name of the kind of document
    - `date`, if it is near the top of the page and not inside a sentence
    - `unknown` in all other cases
    """
    sheet = page.sheets[0]
    if mention.run.page != sheet.number or mention.run.line in in_items:
        return None
    line = page.lines[mention.run.line]
    is_alone = mention.end - mention.start >= len(mention.run.text.strip())
    if is_alone and any(page.hits("kinds", run.folded) for run in line.runs):
        return Labelled(mention, "date", _HEADING, "heading")
    words = " ".join(one.text for one in near if one.side == "same").split()
    if len(words) > 3 or mention.box.bottom > sheet.height * _TOP_SHARE:  # noqa: PLR2004
        return Labelled(mention, "unknown", 0.1, "none")
    return Labelled(mention, "date", _TOP, "top")


def _best_date(page: PageRuns, found: Sequence[Labelled]) -> Choice | None:
    own = [one for one in found if one.role == "date"]
    if not own:
        return None
    due = [one.mention.value for one in found if one.role == "due_date" and one.form == "label"]
    latest = max(due, default="9999")
    times = Counter(one.mention.value for one in own)

    def score(one: Labelled) -> float:
        late = 2.0 if one.mention.value > latest else 0.0
        return one.score + 0.2 * min(times[one.mention.value], 3) - late - 0.003 * min(one.mention.run.line, 100)

    best = max(own, key=score)
    evidence = {best.form}
    if times[best.mention.value] > 1:
        evidence.add("repeated")
    if any(one.mention.value != best.mention.value and one.score >= best.score - 0.35 for one in own):
        evidence.add("rival")
    if is_ambiguous(best.mention.place.quote) and not _is_settled(page):
        evidence.add("ambiguous")
    return Choice(best.mention.value, best.mention, frozenset(evidence))


def _is_settled(page: PageRuns) -> bool:
    """Whether a date such as 31/12/2024 shows the order of day and month in this document."""
    return writes_month_first(page.texts) is not None
