"""Finds the sender and the recipient of a document from labels, the return address, the letterhead, the footer, and
the position of the recipient's address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from octavo.facts.layout import Line, TextRun, make_run
from octavo.facts.mentions import Mention, PageRuns
from octavo.facts.money import Choice
from octavo.facts.words import Box, Word, fold

_FORMS = (
    r"GmbH(?:\s?&\s?Co\.?\s?(?:KGaA|KG|OHG))?|mbH|GesmbH|Ges\.m\.b\.H\.|AG(?:\s?&\s?Co\.?\s?KG)?|KGaA|KG|OHG|GbR|SE|eG|"
    r"UG(?:\s?\(haftungsbeschr\w*\))?|e\.\s?K\.?|e\.\s?V\.|a\.\s?G\.|Ltd\.?|Limited|LLC|L\.L\.C\.|LLP|Inc\.?|"
    r"Incorporated|"
    r"Corp\.?|Corporation|PLC|plc|Pvt\.?\s?Ltd\.?|Pty\.?(?:\s?Ltd\.?)?|Private\s+Limited|SARL|S\.?\u00e0\.?\s?r\.?l\.?|"
    r"S\.A\.R\.L\.|SASU|S\.A\.S\.?|SAS|EURL|SNC|S\.A\.|SA|SCI|SCOP|B\.V\.|BV|BVBA|N\.V\.|NV|SPRL|S\.?r\.?l\.?s?|"
    r"S\.?p\.?A\.?|S\.?n\.?c\.|S\.L\.U?\.?|S\.?L\.?U\.|SL|S\.C\.|Lda\.?|Ltda\.?|Sp\.\s?z\s?o\.\s?o\.|S\.K\.A\.|AB|"
    r"A/S|ApS|"
    r"ASA|AS|Oyj?|s\.r\.o\.|a\.s\.|Kft\.?|Zrt\.?|d\.o\.o\.|Tbk|Verein|Stiftung|Vereniging|Universit\w+"
)
_LEGAL = re.compile(rf"(?<!\w)(?:{_FORMS})(?!\w)")
_COMPANY = re.compile(rf"(?:[A-Z\u00c0-\u00de0-9&][\w&.'\u2019+/\-]*,?\s+){{1,6}}(?:{_FORMS})(?!\w)")
_POSTCODE = re.compile(
    r"(?<![\d.,/-])(?:[A-Z]{1,2}[- ])?\d{4,6}\s?(?:[A-Z]{2}\s)?[A-Z\u00c0-\u00de][^\W\d]+"
    r"|[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}\b|[A-Z]{2},?\s+\d{5}(?:-\d{4})?\b"
)
_OWNER = re.compile(
    r"ust\W{0,3}id|vat\b|tva\b|btw|p\.?\s?iva|partita iva|nif\b|cif\b|siret|siren|rcs\b|hrb|hra\b|handelsregister|"
    r"registergericht|steuer-?nummer|st\.?-?nr|steuer-?nr|iban|\bbic\b|swift|kvk|company reg|"
    r"registered (?:in|office|no)|regd|capital|"
    r"gstin|\btin\b|geschaftsf|vorstand|cvr|org\.?\s?nr|\bcin\b|amtsgericht|gerichtsstand|naf\b|\bape\b"
)
_CONTACT = re.compile(r"\btel\b|telefon|phone|\bfon\b|\bfax\b|e-?mail|@|www\.|https?:|telephone|mobil")
_DOMAIN = re.compile(r"(?:@|www\.|https?://(?:www\.)?)([a-z0-9][a-z0-9-]*)\.[a-z]{2,}")
_PARTS = re.compile(r"\s*[\u25cf\u2022\u00b7|\u2219\u25aa]\s*|\s+[-\u2013\u2014*/]\s+|,\s+")
_BULLET = re.compile(r"[\u25cf\u2022\u00b7|\u2219\u25aa*\u2013-]")
_HOUSE = re.compile(r"(?:strasse|stra\u00dfe|str\.|weg|platz|gasse|allee|street|road|avenue)\s+\d+\s?[a-z]?$")
_NUMBERED = re.compile(r"\s\d+\s?[a-zA-Z]?$")
_COUNTRY = re.compile(
    r"osterreich|deutschland|schweiz|germany|austria|switzerland|suisse|france|frankreich|nederland|netherlands|belgie|"
    r"belgium|belgique|italia|italy|espana|spain|portugal|polska|poland|united kingdom|great britain|england|"
    r"ireland|usa|"
    r"united states(?: of america)?|canada|india|hong kong|china|japan|sverige|sweden|danmark|denmark|norge|norway|"
    r"luxembourg"
)
_COPYRIGHT = re.compile(r"\u00a9|copyright|^(?:19|20)\d\d\b")
_CODE = re.compile(r"^(?:bic|iban|swift|blz|kto)\b|\b[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$")
_NO_NAME = re.compile(r"\d{4,6}\s+[A-Z]|\d{5}|\d[\d ]{7}")
_TITLE = re.compile(
    r"(?:herrn?|frau|firma|fa\.|mr\.?|mrs\.?|ms\.?|m\.|mme|monsieur|madame|dhr\.?|mevr\.?"
    r"|sr\.?|sra\.?|an|to|spett\.?le|z\.\s?hd\.?|attn\.?):?"
)
_NAME_KEY = re.compile(
    r"(?:name|firma|firmenname|company|company name|nom|societe|raison sociale|naam|nombre|ragione sociale"
    r"|denominazione|nome|nazwa)\s*:?"
)
_KEYED = re.compile(r"^[^:]{2,40}\s?:(?:\s|$)|^(?:gln|gtin|duns|siret|siren|id)\b")
_STREET = re.compile(
    r"\d|(?:str(?:asse|\u00dfe|\.)|weg|platz|allee|street|road|avenue|rue|via|calle|plaza)\b", re.IGNORECASE
)
_BANK = re.compile(r"bank\b|sparkasse|banque|banca\b|banco\b|volksbank|credit agricole|\bbnp\b|commerzbank")
# The end of a label of an identifier, such as "Num\u00e9ro SIREN". In folded text.
_ID_LABEL = re.compile(r"(?:siren|siret|tva|vat|btw|iva|iban|bic|nif|cif|ust-?id\w*|steuer-?n\w+|kvk|rcs|gstin)\W*$")
_MOST_NAME, _MOST_WORDS, _MOST_LABEL = 70, 9, 60
_HALF, _MOST_OF = 0.5, 0.8  # shares of a text
_WORDS_OF_SENTENCE = 4  # from this number on, a text with mostly lower case words is a sentence
_OPEN_BLOCKS = 40
_DOMAIN_LETTERS = 4
_LEAST_NAME = 2
_LABEL, _RETURN, _WINDOW = 3.0, 2.5, 2.0
_TOP, _FOOT, _HEAD = 0.22, 0.82, 0.15  # shares of the page height
_BLOCK_LINES = 12
_SHORT_HEAD = 3  # lines of a name with its email address or phone number


@dataclass(slots=True)
class Candidate:
    """A name, with the evidence that it is the sender or the recipient."""

    name: str
    mention: Mention
    seller: dict[str, float] = field(default_factory=dict[str, float])
    buyer: dict[str, float] = field(default_factory=dict[str, float])
    times: int = 0

    @property
    def seller_score(self) -> float:
        return sum(self.seller.values()) - 1.2 * sum(self.buyer.values()) + 0.15 * min(self.times, 4)

    @property
    def buyer_score(self) -> float:
        return sum(self.buyer.values()) - 0.8 * sum(score for score in self.seller.values() if score > 0)


@dataclass(frozen=True, slots=True)
class Block:
    """Text runs with the same left edge, one below the other, such as the lines of an address."""

    runs: tuple[TextRun, ...]

    @property
    def text(self) -> str:
        return "\n".join(run.folded for run in self.runs)


@dataclass(frozen=True, slots=True)
class Parties:
    seller: Choice | None = None
    buyer: Choice | None = None


class PartyFinder:
    """Finds names that can be the sender or the recipient, and collects the evidence for each of them."""

    def __init__(self, page: PageRuns) -> None:
        self._page = page
        self._index = {id(run): index for line in page.lines for index, run in enumerate(line.runs)}
        self._blocks = list(_blocks(page.lines))
        self._found: dict[str, Candidate] = {}
        self._domains = {match[1] for text in page.texts for match in _DOMAIN.finditer(fold(text))}

    def find(self) -> Parties:
        self._find_labelled()
        window = self._find_return_line()
        self._find_in_blocks(window)
        self._find_companies()
        self._judge()
        seller = max(self._found.values(), key=lambda one: one.seller_score, default=None)
        if seller is None or seller.seller_score <= 0.5:  # noqa: PLR2004
            seller = self._top_name()
        buyers = [one for one in self._found.values() if one is not seller and one.buyer_score > 0.5]  # noqa: PLR2004
        buyer = max(buyers, key=lambda one: one.buyer_score, default=None)
        return Parties(self._choice(seller, is_seller=True), self._choice(buyer, is_seller=False))

    def _choice(self, one: Candidate | None, *, is_seller: bool) -> Choice | None:
        if one is None:
            return None
        reasons = one.seller if is_seller else one.buyer
        evidence = {name for name, score in reasons.items() if score > 0}
        score = one.seller_score if is_seller else one.buyer_score
        rivals = [
            (other.seller_score if is_seller else other.buyer_score)
            for other in self._found.values()
            if other is not one and not _same_name(other.name, one.name)
        ]
        if max(rivals, default=0.0) > score - 1.0:
            evidence.add("rival")
        return Choice(one.name, one.mention, frozenset(evidence))

    def _add(self, run: TextRun, start: int, end: int, *, any_case: bool = False) -> Candidate | None:
        """Add the name in a text run, from `start` to `end`.

        A name in lower case is added only if `any_case` is true or the name matches a web address.
        """
        start, end = _trim(run.text, start, end)
        name = run.text[start:end]
        if not _is_name(self._page, name):
            return None
        if not (any_case or name[0].isdigit() or name != name.lower() or self._has_domain(name)):
            return None
        mention = Mention(name, run, self._index.get(id(run), 0), start, end)
        return self._found.setdefault(_key(name), Candidate(name, mention))

    # Labels

    def _find_labelled(self) -> None:
        for line in self._page.lines:
            for index, run in enumerate(line.runs):
                role = self._party_label(run)
                if role:
                    found = self._labelled_value(line, index, run, role[1])
                    if found:
                        # The parties of the document are named before those of a delivery or an item.
                        self._count(found, role[0], _LABEL - 0.004 * min(line.number, 100))

    def _party_label(self, run: TextRun) -> tuple[str, int] | None:
        """Return the party to which a label such as "Seller:" refers, and the offset at which the label ends.

        Returns None unless the label is the whole text or is followed by a colon.
        """
        hits = [hit for hit in self._page.hits("parties", run.folded[:_MOST_LABEL]) if hit.start <= 1]
        if not hits:
            return None
        role, end = hits[0].role, hits[0].end
        rest = run.folded[end:]
        colon = rest.find(":")
        if 0 <= colon <= 25:  # noqa: PLR2004
            return role, end + colon + 1
        more = self._page.hits("parties", rest)
        left = rest if not more else rest[: more[0].start] + rest[more[-1].end :]
        return (role, len(run.folded)) if not any(map(str.isalnum, left)) else None

    def _labelled_value(self, line: Line, index: int, run: TextRun, end: int) -> Candidate | None:
        if any(map(str.isalnum, run.text[end:])):
            return self._add(run, end, len(run.text))
        after = line.runs[index + 1] if index + 1 < len(line.runs) else None
        ends_with_colon = run.text.rstrip().endswith(":")
        below = list(self._below(run))
        if after and ends_with_colon and not self._party_label(after) and (not below or not _is_aligned(below[0], run)):
            found = self._add(after, 0, len(after.text))
            if found:
                return found
        return self._first_name(below, any_case=True)

    def _below(self, label: TextRun) -> Iterator[TextRun]:
        """Yield the text runs below a label in the same column, up to a vertical gap or the next label."""
        bottom = label.box.bottom
        for line in self._page.lines[label.line + 1 : label.line + 1 + _BLOCK_LINES]:
            if line.page != label.page or line.box.top - bottom > 2.6 * label.box.height:
                return
            runs = [run for run in line.runs if run.box.left >= label.box.left - 4]
            own = next((run for run in runs if _is_aligned(run, label)), None)
            if own is None:
                continue
            if self._party_label(own):
                return
            bottom = line.box.bottom
            yield own

    def _first_name(self, runs: Sequence[TextRun], *, any_case: bool = False) -> Candidate | None:
        keyed = next((run for run in runs if _NAME_KEY.fullmatch(run.folded.strip())), None)
        if keyed:
            return self._keyed_name(keyed)
        names = [run for run in runs if not _KEYED.match(run.folded) and not _TITLE.fullmatch(run.folded.strip())]
        for position, run in enumerate(names):
            if not _is_name(self._page, run.text):
                continue
            following = names[position + 1] if position + 1 < len(names) else None
            found = self._joined(run, following, any_case=any_case)
            if found:
                return found
        return None

    def _keyed_name(self, key: TextRun) -> Candidate | None:
        """Return the name to the right of the label "Name:".

        If the line above contains only one text run, and this run is aligned with the name, it is the first line of the
        name.
        """
        line = self._page.lines[key.line]
        after = next((run for run in line.runs if run.box.left > key.box.right), None)
        if after is None:
            return None
        above = self._page.lines[key.line - 1] if key.line else None
        first = above.runs[0] if above and len(above.runs) == 1 else None
        if (
            first
            and first.page == key.page
            and _is_aligned(first, after)
            and not _TITLE.fullmatch(first.folded.strip())
        ):
            return self._joined(first, after, always=True)
        return self._add(after, 0, len(after.text))

    def _joined(
        self, first: TextRun, second: TextRun | None, *, always: bool = False, any_case: bool = False
    ) -> Candidate | None:
        """Add a name. It is joined with the next line if only the next line contains the legal form, such as GmbH."""
        continues = (
            second and not _LEGAL.search(first.text) and _LEGAL.search(second.text) and not _STREET.search(second.text)
        )
        if second and (always or continues):
            words: list[Word] = [*first.words, *second.words]
            run = make_run(first.page, first.line, words)
            return self._add(run, 0, len(run.text))
        return self._add(first, 0, len(first.text), any_case=any_case)

    # Layout

    def _find_return_line(self) -> Box | None:
        """Find the return address line, such as "A GmbH, Street 1, 12345 Town". It names the sender.

        The recipient's address is below this line.
        """
        sheet = self._page.sheets[0] if self._page.sheets else None
        for line in self._page.lines:
            if sheet is None or line.page != sheet.number or line.box.top > sheet.height * 0.45:
                return None
            for run in _merged(line):
                parts = [part for part in _PARTS.split(run.text) if part.strip()]
                if len(parts) < 3 or not any(_POSTCODE.search(part) for part in parts[1:]):  # noqa: PLR2004
                    continue
                if _POSTCODE.search(parts[1]) and _NUMBERED.search(parts[0]):
                    continue  # an address without a name: street, town, country
                found = self._add(run, 0, run.text.index(parts[0]) + len(parts[0]), any_case=True)
                if found:
                    self._count(found, "seller", _RETURN, "return line")
                    self._find_recipient(run.box, sheet.height, sheet.width)
                    return run.box
        return None

    def _find_recipient(self, window: Box, height: float, width: float) -> None:
        """Find the recipient: the first name below the sender's return address line."""
        below = [
            run
            for line in self._page.lines
            if line.page == 1 and 0 < line.box.top - window.top < height * 0.16
            for run in line.runs
            if abs(run.box.left - window.left) < width * 0.12
        ]
        names = [run for run in below if not _TITLE.fullmatch(run.folded.strip())]
        found = self._first_name(names) if len(names) > 1 else None
        if found:
            self._count(found, "buyer", _WINDOW, "address window")

    def _find_in_blocks(self, window: Box | None) -> None:
        sheet = self._page.sheets[0] if self._page.sheets else None
        has_buyer = any("label" in one.buyer for one in self._found.values())
        for block in self._blocks:
            first = block.runs[0]
            if sheet is None:
                return
            owner, contact = len(set(_OWNER.findall(block.text))), bool(_CONTACT.search(block.text))
            has_place = any(_POSTCODE.search(run.text) for run in block.runs)
            if not (owner or contact or has_place) or self._is_labelled(block):
                continue
            is_window = not has_buyer and _is_window(block, sheet.height, sheet.width, window)
            if is_window and not owner and not contact and has_place:
                names = [run for run in block.runs if not _TITLE.fullmatch(run.folded.strip())]
                found = self._first_name(names)
                if found:
                    self._count(found, "buyer", _WINDOW, "address window")
                continue
            is_head = contact and len(block.runs) <= _SHORT_HEAD and first.box.top < sheet.height * _TOP
            name = self._first_name(block.runs) if has_place or owner or is_head else None
            if name is None:
                continue
            page_height = next(one.height for one in self._page.sheets if one.number == first.page)
            where = (
                "letterhead"
                if first.box.top < page_height * _TOP
                else "footer"
                if first.box.top > page_height * _FOOT
                else "block"
            )
            self._count(name, "seller", 0.7 if where == "block" else 1.0, where)
            if owner:
                self._count(name, "seller", 0.5 + 0.2 * min(owner, 3), "owner")
            if contact:
                self._count(name, "seller", 0.4, "contact")

    def _is_labelled(self, block: Block) -> bool:
        """Whether the block has a label such as "Bill to".

        The names in such a block have already been found by their label.
        """
        first = block.runs[0]
        lines = self._page.lines[max(first.line - 1, 0) : first.line]
        above = [run for line in lines for run in line.runs if line.page == first.page and _is_aligned(run, first)]
        return any(self._party_label(run) for run in (*above, *block.runs[:2]))

    def _find_companies(self) -> None:
        """Find names with a legal form, such as GmbH, anywhere in the document."""
        for line in self._page.lines:
            for run in line.runs:
                for match in _COMPANY.finditer(run.text):
                    found = self._add(run, *match.span())
                    if found:
                        found.seller.setdefault("legal form", 0.6)
                        if _OWNER.search(run.folded, match.end()):
                            self._count(found, "seller", 0.9, "owner")
                        if line.page == 1 and line.number <= 1:
                            self._count(found, "seller", 1.0, "letterhead")

    def _top_name(self) -> Candidate | None:
        """Guess the sender: the largest name without digits at the top of the first page."""
        sheet = self._page.sheets[0] if self._page.sheets else None
        runs = [
            run
            for line in self._page.lines
            if sheet and line.page == sheet.number and line.box.top < sheet.height * _HEAD
            for run in line.runs
        ]
        for run in sorted(runs, key=lambda one: (-round(one.box.height), one.line)):
            found = None if any(map(str.isdigit, run.text)) else self._add(run, 0, len(run.text))
            if found and not found.buyer:
                found.seller["top"] = 0.6
                return found
        return None

    # Weighing

    def _judge(self) -> None:
        whole = " ".join(_key(text) for text in self._page.texts)
        for key, one in self._found.items():
            one.times = whole.count(key) if key else 0
            if self._has_domain(one.name):
                one.seller["domain"] = 1.0
            if _LEGAL.search(one.name):
                one.seller.setdefault("legal form", 0.6)
            if _BANK.search(fold(one.name)) and "label" not in one.seller and one.times < 3:  # noqa: PLR2004
                one.seller["bank"] = -2.0
            if one.name.rstrip().endswith(("!", "?", ".")) and not _LEGAL.search(one.name):
                one.seller["sentence"] = -1.5

    def _has_domain(self, name: str) -> bool:
        """Whether a web or email domain in the document belongs to this name.

        This is true if the domain begins with a word of the name, or a word of the name begins with the domain.
        """
        words = [word for word in re.split(r"[^a-z0-9]+", fold(name)) if len(word) >= _DOMAIN_LETTERS]
        domains = [domain.replace("-", "") for domain in self._domains if len(domain) >= _DOMAIN_LETTERS]
        return any(domain.startswith(word) or word.startswith(domain) for word in words for domain in domains)

    def _count(self, one: Candidate, role: str, score: float, name: str = "label") -> None:
        if role == "seller":
            one.seller[name] = max(one.seller.get(name, 0.0), score)
        elif role == "buyer":
            one.buyer[name] = max(one.buyer.get(name, 0.0), score)
        elif role == "delivery":
            # Goods usually go to the recipient of the invoice, but a recipient label is better evidence.
            one.buyer["delivery"] = 0.6
        else:
            one.seller["other party"] = -1.0


def _merged(line: Line) -> Iterator[TextRun]:
    """Yield the text runs of a line. Runs that are separated only by a bullet or a similar character are joined."""
    words: list[Word] = []
    for run in line.runs:
        gap = run.box.left - words[-1].box.right if words else 0.0
        if words and not (gap < 3 * run.box.height and (_BULLET.match(run.text) or _BULLET.match(words[-1].text))):
            yield make_run(line.page, line.number, words)
            words = []
        words += run.words
    if words:
        yield make_run(line.page, line.number, words)


def _blocks(lines: Sequence[Line]) -> Iterator[Block]:
    open_blocks: list[list[TextRun]] = []
    for line in lines:
        for run in line.runs:
            recent = open_blocks[-_OPEN_BLOCKS:]
            own = next((block for block in recent if _continues(block[-1], run)), None)
            if own is not None:
                own.append(run)
            else:
                open_blocks.append([run])
    yield from (Block(tuple(block)) for block in open_blocks)


def _continues(last: TextRun, run: TextRun) -> bool:
    gap = run.box.top - last.box.bottom
    height = max(last.box.height, run.box.height, 1.0)
    is_near = last.page == run.page and last.line != run.line and -0.5 * height < gap < 1.5 * height
    return is_near and _is_aligned(last, run)


def _is_aligned(first: TextRun, second: TextRun) -> bool:
    return abs(first.box.left - second.box.left) < 4 or abs(first.box.right - second.box.right) < 2  # noqa: PLR2004


def _is_window(block: Block, height: float, width: float, window: Box | None) -> bool:
    """Whether a block is the recipient's address: it is below the sender's return address, or at the usual position in
    a letter.
    """
    first = block.runs[0]
    if first.page != 1:
        return False
    if window and 0 <= first.box.top - window.top < height * 0.2 and abs(first.box.left - window.left) < width * 0.25:
        return True
    return height * 0.1 < first.box.top < height * 0.42 and len(block.runs) >= 3  # noqa: PLR2004


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and not (text[start].isalnum() or text[start] in "\"'\u201e(&"):
        start += 1
    while end > start and text[end - 1] in " ,;:|-\u2013\u2022\u25cf\u00b7":
        end -= 1
    return start, end


def _is_name(page: PageRuns, text: str) -> bool:
    """Whether a text can be the name of a person or company."""
    name = text.strip()
    words = name.split()
    letters = sum(map(str.isalpha, name))
    if not _LEAST_NAME <= len(name) <= _MOST_NAME or len(words) > _MOST_WORDS:
        return False
    if letters < max(_LEAST_NAME, 0.6 * len(name.replace(" ", ""))) or _is_blacked_out(words[0]):
        return False  # too few letters, or a redacted name: XXXX
    folded = fold(name)
    if any(pattern.search(folded) for pattern in (_COPYRIGHT, _HOUSE, _CODE, _CONTACT)) or _COUNTRY.fullmatch(folded):
        return False
    if _CODE.search(name) or _NO_NAME.search(name) or _POSTCODE.match(name) or _KEYED.match(folded) or ":" in name:
        return False
    return bool(_LEGAL.search(name)) or not (_is_sentence(words) or _is_label(page, folded))


def _is_label(page: PageRuns, folded: str) -> bool:
    """Whether a text is the label of a value or the header of a column."""
    if _ID_LABEL.search(folded) or _covered(page, folded, "numbers", "dates", "kinds") >= _HALF:
        return True
    return any(_covered(page, folded, section) >= _MOST_OF for section in ("columns", "amounts"))


def _is_sentence(words: Sequence[str]) -> bool:
    small = [word for word in words if word[:1].islower() and len(word) > 3]  # noqa: PLR2004
    return len(words) >= _WORDS_OF_SENTENCE and len(small) >= _HALF * len(words)


def _covered(page: PageRuns, folded: str, *sections: str) -> float:
    """Return the share of a text that consists of known labels. `sections` selects parts of the vocabulary."""
    hits = (hit for section in sections for hit in page.hits(section, folded))
    return sum(hit.end - hit.start for hit in hits) / len(folded)


def _is_blacked_out(word: str) -> bool:
    letters = word.strip(".,;")
    return len({*letters.lower()}) == 1 < len(letters)


def _key(name: str) -> str:
    return "".join(letter for letter in fold(name) if letter.isalnum())


def _same_name(first: str, second: str) -> bool:
    one, two = _key(first), _key(second)
    return one.startswith(two) or two.startswith(one)


def find_parties(page: PageRuns) -> Parties:
    return PartyFinder(page).find()
