"""Chooses the title of a document.

In formats in which people usually set the title, such as web pages and books, the title in the metadata is used first.
In other formats, a printed title has priority over the metadata. The file name is used if there is neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octavo.facts.dates import DATE_LINE
from octavo.facts.fact_source import FactSource, PrintedLine, plain
from octavo.facts.words import Box, Place, enclosing_box, fold

MOST_LETTERS = 160
_LEAST_SIZE = 1.12  # of a title relative to most of the text, if it is not a heading
_SAME_SIZE = 0.09
_OVERLAP, _GAP = 0.5, 0.75  # of the lines of one title, relative to their height
_MOST_LINES = 5
_LONG_LINE = 75
_MOST_CLAIMED = 200
_LEAST_AGREEMENT = 0.5

# Names of parts of a document. They are never the title of a document.
_PART = re.compile(
    r"(?:the )?(?:table of )?contents?|inhalt(?:sverzeichnis|sangabe)?|inhoud(?:sopgave)?|sommaire|table des matieres|"
    r"indice(?: general)?|index|toc|front cover|(?:back )?cover(?: image| page)?|abstract|zusammenfassung|resume|"
    r"summary|"
    r"(?:author|executive|editor's) summary|introduction|einleitung|introduccion|introduzione|inleiding|preface|"
    r"vorwort|foreword|prologue|acknowledge?ments?|"
    r"danksagung|references|bibliography|literatur(?:verzeichnis)?|keywords?|schlagworter|notes?|notices?|trademarks|"
    r"appendix(?: \w{1,2})?|anhang|annexe?(?: \w{1,2})?|imprint|impressum|copyright|colophon|dedication|attributes|"
    r"methods?|header|footer|title|untitled|subtitle|supplement|menu|home|navigation|attachments?|links?|start|"
    r"(?:list of )?(?:figures|tables|abbreviations|illustrations)|background|overview|account messages|"
    r"\u76ee\u6b21|\u76ee\u5f55|\u76ee \u5f55|\u76ee\u9304|\ubaa9\ucc28"
)
_SECTION = re.compile(
    r"(?:chapter|kapitel|chapitre|capitulo|capitolo|section|abschnitt|part|teil|appendix|anhang|annexe?|table|tabelle|"
    r"tableau|figure|fig|abbildung|exhibit|slide|page|seite|sheet|tabelle|feuil|hoja|blatt|foglio|step|issue|test)"
    r"[\s.:]*(?:\d[\d.\-]*|[ivxlc]+|[a-z])\b.{0,3}|\d+(?:\.\d+)+\.?\s.*|[ivxlc\d]+[.)]\s.*|\d{1,2}\s(?=[^\W\d]).*"
)
_CAPTION = re.compile(r"(?:table|tab|figure|fig|exhibit|chart|tabelle|abbildung|abb|tableau|schaubild)\.?\s[a-z]?\d")
_TEMPLATE = re.compile(
    r"(?:microsoft )?(?:word|power\s?point|excel)(?: presentation| document)?|(?:powerpoint|office) .*|"
    r"(?:untitled|unbenannt|sans titre|sin titulo|senza titolo|document|dokument|presentation|prasentation|"
    r"praesentation|"
    r"slide|page|scan|image|img|dsc|new|neu|title|titel|no title|template|vorlage|default|book|mappe|classeur|libro|"
    r"\u6587\u6863|\u6587\u66f8|cartel|sheet|tabelle|feuil|hoja|draft|entwurf|print|printout|fax|file|final|temp|"
    r"tmp|blank)"
    r"(?: document| dokument| with image| slide| page)?[\s_().#-]*\d*|\W*\d[\d\W_]*"
)
_FILE = re.compile(
    r"\S*\.(?:docx?|pdf|indd|odt|rtf|txt|tex|dvi|ps|eps|pptx?|xlsx?|xlsm|csv|html?|md|qxd|pages|graffle|ai|cdr|psd|fm|"
    r"pub|vsd|jpe?g|png|tiff?|zip|xml|json)(?:\s*\(\d+\))?",
    re.IGNORECASE,
)
_SOFTWARE = re.compile(
    r"python-(?:docx|pptx)|openpyxl|xlsxwriter|pandoc|(?:pdf|xe|lua)?latex|libreoffice|openoffice|acrobat|distiller|"
    r"pdfcreator|wkhtmltopdf|tcpdf|fpdf|itext|reportlab|ghostscript|quartz|pdfium|chromium|skia/pdf|princexml|"
    r"crystal (?:reports|decisions)|powered by|created (?:with|by)|generated (?:with|by|using)|evaluation only|"
    r"stylesheet",
    re.IGNORECASE,
)
_PAGE_NUMBER = re.compile(
    r"(?:page|seite|pagina|p\.|s\.|sheet|blatt|folio|strona|sida|side|pag\.)\s*:?\s*\d+(?:\s*(?:of|von|/|de|sur|van|"
    r"di|z|av)\s*\d+)?"
    r"|\W*\d+\s*(?:/|of|von|sur)\s*\d+\W*|\W*[ivxlcdm\d]+\W*"
)
_SALUTATION = re.compile(
    r"(?:dear|hi|hello|sehr geehrte\w*|liebe[rs]?|guten tag|hallo|cher|chere|madame|monsieur|bonjour|estimad[oa]s?|"
    r"hola|"
    r"gentile|egregio|geachte|beste|to whom it may concern|ladies and gentlemen|yours \w+|sincerely|kind regards|"
    r"best regards|mit freundlichen gru\w+|freundliche gru\w+|cordialement)\b[ ,:].{0,60}|"
    r"(?:from|to|cc|sent|von|an|de|a)\s*:.*"
)
_ADDRESS = re.compile(
    r"\b\d{4,6}\s+[A-Z\u00c0-\u00de][a-z\u00df-\u00ff]+|\b[A-Z]{1,2}\d[A-Z\d]?\s\d[A-Z]{2}\b|,\s*[A-Z]{2}\s+\d{5}\b|"
    r"(?i:\b\w*(?:stra\u00dfe|strasse|str\.|weg|platz|gasse|allee)\s+\d+|\b\d+[a-z]?,?\s+(?:rue|avenue|av\.|bd|"
    r"boulevard|chemin|"
    r"quai|place)\b|\b\d+\s+[\w. ]{3,30}\s(?:street|st\.|road|rd\.|avenue|ave\.?|lane|drive|terry|blvd)\b)|"
    r"(?i:p\.?\s?o\.? box|postfach)"
)
_CONTACT = re.compile(
    r"@\w|https?:|www\.|\btel\b|\btel\.|telefon|phone|\bfax\b|\b\w+\.(?:com|org|net|de|fr|nl|co\.uk|io|eu)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[^:]{1,40}:(?:\s.*)?|.*[:,;]")
_OWN_COLON = re.compile(
    r"(?!(?:sold|bill|ship|from|to|date|invoice|attn|name|subject|order|number|phone|customer|account|client|ref|"
    r"betreff)\b)"
    r"[^:]{2,70}:\s+[^\W\d].{10,}[^,;:]",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r".{30,}[.!\u3002\u061f]|.*[.!?]\s+[A-Z].*[.!?]|[a-z\u00df-\u00ff].{50,}")
_ORGANISATION = re.compile(
    r"universit|institut|ministr|minister|department of|faculty|laborator|\bgmbh\b|\bltd\b|\binc\b|\bllc\b|"
    r"\be\. ?v\b|council|\bcourt\b|corporation|company|society|verein\b|\bschool\b|association|agency|"
    r"committee|commission|\bclub\b|foundation|stiftung"
)
_PREFIX = re.compile(
    r"^(?:(?:microsoft (?:office )?(?:word|power\s?point|excel))\s*[-\u2013:]\s*|\[[^\[\]]{1,60}\]\s*|titel?:\s*|"
    r"\([^()]{1,40}\)\s+|re:\s*|fwd?:\s*|aw:\s*|wg:\s*|[-\u2013|\u00b7]\s*)+",
    re.IGNORECASE,
)
_SITE = re.compile(r"\s+[|\u00bb\u203a\u00b7\u2013\u2014-]\s+")
# In these formats, people write the metadata. In others, programs write it.
BY_PEOPLE = frozenset(
    {"epub", "fb2", "html", "mhtml", "web", "eml", "msg", "jats", "docbook", "latex", "youtube", "mobi"}
)
_SHEETS = frozenset({"xlsx", "xlsb", "xls", "ods", "csv"})


@dataclass(frozen=True, slots=True)
class Title:
    """A title, the evidence for it, and its printed position.

    `lines` are the indexes of its lines in `FactSource.front`.
    """

    text: str
    evidence: frozenset[str]
    place: Place | None = None
    quote: str = ""
    lines: tuple[int, ...] = ()


def find_title(source: FactSource) -> Title | None:
    """Return the best title from the printed text or the metadata. Returns None if neither contains a title."""
    claimed = clean_title(source.metadata.title, _MOST_CLAIMED)
    if claimed and source.source_type in BY_PEOPLE:
        return _claimed_by_people(source, claimed)
    printed = _largest(source, claimed) if source.front and source.front[0].page else _first_of_text(source, claimed)
    if printed:
        return printed
    if claimed and fold(claimed) not in source.heading_texts:
        return Title(claimed, frozenset({"metadata"}))
    return _running_head(source) or _first_on_page(source)


def clean_title(text: str | None, most: int = MOST_LETTERS) -> str | None:
    """Remove text added by programs, such as "Microsoft Word -", from a title. Returns None if it is not a title."""
    text = _PREFIX.sub("", plain(text or "")).strip(" -\u2013|\u00b7*#")
    return text if can_be_title(text, most) else None


def can_be_title(text: str, most: int = MOST_LETTERS) -> bool:
    """Whether a text can be the title of a document.

    Addresses, dates, labels, sentences, and names of sections, templates or programs cannot be titles.
    """
    folded = fold(text).strip(" .:-")
    if sum(map(str.isalpha, text)) < 2 or len(text) > most or len(text.split()) > most / 6:  # noqa: PLR2004
        return False
    words = text.split()
    is_torn = len(words) > 2 and 2 * sum(len(word) == 1 for word in words) > len(words) and text.isascii()  # noqa: PLR2004
    if is_torn or any(letter in "<>{}\u0000" for letter in text) or (len(words) == 1 and text[0].islower()):
        return False
    whole = (_PART, _TEMPLATE, _PAGE_NUMBER, _SALUTATION, DATE_LINE)
    if (
        _CAPTION.match(folded)
        or any(pattern.fullmatch(folded) for pattern in whole)
        or _FILE.fullmatch(text)
        or _SOFTWARE.search(text)
    ):
        return False
    if _ADDRESS.search(text) or _CONTACT.search(text) or _SENTENCE.fullmatch(text) or "|" in text or ".." in text:
        return False
    return not _LABEL.fullmatch(text) or bool(_OWN_COLON.fullmatch(text))


def title_from_filename(name: str) -> str | None:
    """Make a title from a file name. Removes the extension. If there are no spaces, separators become spaces.

    Returns None for names made by a scanner or camera.
    """
    stem = re.sub(r"\.\w{1,8}$", "", name)
    text = " ".join(re.sub(r"[_+]+|(?<=\w)-(?=\w)|%20", " ", stem).split()) if " " not in stem else stem
    words = [word for word in text.split() if sum(map(str.isalpha, word)) > 1]
    is_code = any(map(str.isdigit, text)) and len(words) < 3  # noqa: PLR2004
    return text if words and not is_code and can_be_title(text) else None


# Titles written by people


def _claimed_by_people(source: FactSource, claimed: str) -> Title:
    """Return the title in the metadata.

    If one part of it is also a heading in the document, only that part is returned. Otherwise, only the first part of
    a web page's title is returned. This removes the name of the website from titles such as "News | Example Site".
    """
    parts = [part for part in _SITE.split(claimed) if can_be_title(part)]
    headings = {fold(plain(one.text)): one for one in source.headings[:20]}
    own = min(
        (part for part in parts if fold(part) in headings),
        key=lambda part: bool(_ORGANISATION.search(fold(part))),
        default=None,
    )
    text = own or (parts[0] if source.source_type in {"html", "web", "mhtml"} and parts else claimed)
    is_printed = fold(text) in headings or fold(text) in fold(source.markdown[:4000])
    return Title(text, frozenset({"claimed", "printed"} if is_printed else {"claimed"}))


# Printed titles


def _largest(source: FactSource, claimed: str | None) -> Title | None:
    """Return the largest text on the first page that can be a title.

    Neighbouring lines of the same size form one text.
    """
    found = [(_score(source, group, claimed), group) for group in _groups(source.front)]
    best = max(((score, group) for score, group in found if score > 0), key=lambda one: one[0], default=None)
    if best is None:
        return None
    group = best[1]
    text = clean_title(_joined(group)) or _joined(group)
    if best[0] < 1 and (head := _running_head(source)):
        return head
    text = _as_heading(source, group) or text
    evidence = {"printed"}
    if _agrees(claimed, text):
        evidence.add("claimed")
    if _is_heading(source, text):
        evidence.add("heading")
    if group[0][1].size >= 1.5 * _LEAST_SIZE:
        evidence.add("large")
    runs = [line.run for _, line in group if line.run]
    box = enclosing_box([run.box for run in runs]) if runs else Box(0, 0, 0, 0)
    place = Place(group[0][1].page, box, text) if runs and group[0][1].page else None
    return Title(text, frozenset(evidence), place, text, tuple(index for index, _ in group))


Group = Sequence[tuple[int, PrintedLine]]


def _as_heading(source: FactSource, group: Group) -> str | None:
    """Return the text of the Markdown heading at the position of these lines. Returns None if there is no such heading.

    The heading is preferred to the text of the lines, in which the letters can be in the wrong order.
    """
    boxes = [line.run.box for _, line in group if line.run]
    for heading in source.headings[:20]:
        place = heading.place
        if place and place.page == group[0][1].page and any(_overlap(place.box, box) for box in boxes):
            text = clean_title(heading.text)
            if text and 0.7 < len(text) / len(_joined(group)) < 1.4:  # noqa: PLR2004
                return text
    return None


def _overlap(one: Box, two: Box) -> bool:
    return one.left < two.right and two.left < one.right and one.top < two.middle < one.bottom


def _groups(lines: Sequence[PrintedLine]) -> Iterator[Group]:
    """Group neighbouring lines with the same letter size, in reading order. No line is in two groups.

    Paragraphs and groups of very many lines are left out.
    """
    taken: set[int] = set()
    for start, first in enumerate(lines):
        if start in taken or first.size < _LEAST_SIZE - 0.15 or first.run is None:
            continue
        group = [(start, first)]
        for index in range(start + 1, min(start + 24, len(lines))):
            line, last = lines[index], group[-1][1]
            if index not in taken and _continues(last, line):
                group.append((index, line))
        taken.update(index for index, _ in group)
        if len(group) <= _MOST_LINES and not _is_paragraph(group):
            yield group


def _is_label(line: PrintedLine) -> bool:
    """Whether a line is a page number or the name of a section. Such a line is never part of a title."""
    folded = fold(line.text).strip(" .:-")
    return bool(_PAGE_NUMBER.fullmatch(folded) or _PART.fullmatch(folded))


def _is_paragraph(group: Group) -> bool:
    return len(group) > 1 and sum(len(line.text) for _, line in group) / len(group) > _LONG_LINE


def _continues(last: PrintedLine, line: PrintedLine) -> bool:
    if line.run is None or last.run is None or line.page != last.page or _is_label(line) or _is_label(last):
        return False
    gap = line.run.box.top - last.run.box.bottom
    if abs(line.size - last.size) > _SAME_SIZE * last.size or not -_OVERLAP < gap / last.run.box.height < _GAP:
        return False
    one, two = last.run.box, line.run.box
    shared = min(one.right, two.right) - max(one.left, two.left)
    return shared > 0.3 * min(one.right - one.left, two.right - two.left)


def _joined(group: Group) -> str:
    text = ""
    for _, line in group:
        text = text[:-1] + line.text if text.endswith("-") and line.text[:1].islower() else f"{text} {line.text}"
    return " ".join(text.split())


def _score(source: FactSource, group: Group, claimed: str | None) -> float:
    """Score how likely these lines are to be the title. Returns 0 if they cannot be the title."""
    text = _joined(group)
    first = group[0][1]
    agrees = _agrees(claimed, text)
    is_heading = _is_heading(source, text)
    # If a file has no title, its first main heading is used as the metadata title, which proves nothing.
    is_own = agrees and fold(plain(source.metadata.title or "")) not in source.heading_texts
    if not (clean_title(text) or (agrees and len(text) <= MOST_LETTERS)) or first.page != source.front[0].page:
        return 0.0
    if (first.size < _LEAST_SIZE or text[0].islower() or not text[0].isalnum()) and not is_heading and not agrees:
        return 0.0
    if not is_heading and not agrees and _is_continued(source, group):
        return 0.0
    folded = fold(text)
    is_first = is_heading and group[0][0] == 0
    score = 0.6 * is_first + min(first.size, 4.0) + 0.4 * is_heading + 0.5 * is_own + 0.4 * (1 - first.top)
    if _SECTION.fullmatch(folded) or _is_numbered(source, folded):
        score -= 2.5
    if _ORGANISATION.search(folded) and len(text.split()) < 9:  # noqa: PLR2004
        score -= 0.8
    if len(text.split()) == 1:
        score -= 0.35
    return max(score, 0.0)


def _is_continued(source: FactSource, group: Group) -> bool:
    """Whether the text continues in the line after the group.

    The group is then the beginning of a paragraph, not a title.
    """
    index, last = group[-1]
    below = [line for line in source.front[index + 1 : index + 4] if line.run and last.run and line.page == last.page]
    return any(
        line.text[0].islower() and line.run.box.top - last.run.box.bottom < last.run.box.height
        for line in below
        if line.run and last.run and abs(line.run.box.left - last.run.box.left) < 2 * last.run.box.height
    )


def _is_numbered(source: FactSource, folded: str) -> bool:
    """Whether the document has a heading that consists of a section number and this text."""
    return any(re.fullmatch(r"[\d.]+\s+" + re.escape(folded), one) for one in source.heading_texts)


def _is_heading(source: FactSource, text: str) -> bool:
    folded = fold(text)
    return any(folded in one or (one in folded and len(one) >= len(folded) / 2) for one in source.heading_texts if one)


def _agrees(claimed: str | None, text: str) -> bool:
    """Whether this text and the title in the metadata agree: they are equal, or one of them is a large part of the
    other.
    """
    one, two = sorted((fold(claimed or ""), fold(text)), key=len)
    return bool(one) and one in two and len(one) >= _LEAST_AGREEMENT * len(two)


def _first_of_text(source: FactSource, claimed: str | None) -> Title | None:
    """Return the title of a text without pages: the first heading, the first bold line, or a short first line."""
    lines = [(index, line) for index, line in enumerate(source.front) if line.cells < 2]  # noqa: PLR2004
    headings = [(index, line) for index, line in lines if line.level]
    if source.source_type in _SHEETS:
        headings += [(index, line) for index, line in lines if not line.level and line.top < 0.3]  # noqa: PLR2004
    for is_weak in (False, True):
        for index, line in headings:
            text = clean_title(line.text)
            if not text or line.top > 0.8 or (line.level not in range(1, 7) and text[0].islower()):  # noqa: PLR2004
                continue
            is_section = bool(_SECTION.fullmatch(fold(text)))
            if (is_section or bool(_ORGANISATION.search(fold(text)))) is is_weak and not (is_weak and len(text) < 20):  # noqa: PLR2004
                evidence = {"heading"} | ({"claimed"} if _agrees(claimed, text) else set[str]())
                return Title(text, frozenset(evidence), quote=line.text, lines=(index,))
    return _first_line(source, claimed)


def _first_line(source: FactSource, claimed: str | None) -> Title | None:
    if (
        not source.front
        or source.front[0].text.startswith("#!")
        or source.source_type in {"vtt", "srt", "json", "xml", *_SHEETS}
    ):
        return None
    first = source.front[0]
    text = clean_title(first.text)
    alone = len(source.front) > 1 and first.cells < 2 and len(first.text) <= MOST_LETTERS / 2  # noqa: PLR2004
    if text and alone and not first.text.rstrip().endswith((".", ",", "?", "!", ";")) and ":" not in text[:30]:
        evidence = {"first line"} | ({"claimed"} if _agrees(claimed, text) else set[str]())
        return Title(text, frozenset(evidence), quote=first.text, lines=(0,))
    return None


def _first_on_page(source: FactSource) -> Title | None:
    """Return the first line of the first page, if it is short and the next line does not continue it."""
    lines = [line for line in source.front if line.page == source.front[0].page and line.run]
    if len(lines) < 3 or lines[0].cells > 1 or lines[0].top > 0.35 or lines[0].page > 1:  # noqa: PLR2004
        return None
    first, second = (line.run for line in lines[:2])
    widest = max(line.run.box.right for line in lines if line.run)
    text = clean_title(lines[0].text)
    if not text or not first or not second or len(text.split()) < 3 or text[0].islower():  # noqa: PLR2004
        return None
    is_short = first.box.right - first.box.left < _SHORT_LINE * (widest - first.box.left)
    if not is_short or second.text[0].islower() or text.endswith((",", ".", ":", "-", "?", "!")):
        return None
    return Title(text, frozenset({"first line"}), lines[0].place, lines[0].text, (0,))


_SHORT_LINE = 0.85
_HEAD_WITH_NUMBER = re.compile(r"(?:\d{1,4}\s+(?P<after>\D.{14,110})|(?P<before>.{14,110}\D)\s+\d{1,4})")


def _running_head(source: FactSource) -> Title | None:
    """Return the running header of an excerpt as its title: a line at the top of the page with a page number
    beside it.
    """
    for index, line in enumerate(source.front[:3]):
        match = _HEAD_WITH_NUMBER.fullmatch(line.text) if line.page and line.top < 0.2 else None  # noqa: PLR2004
        text = clean_title(match["after"] or match["before"]) if match else None
        if text:
            return Title(text, frozenset({"running head"}), line.place, line.text, (index,))
    return None
