"""Finds the author of a document in a byline, in names below the title, in a signature or in the metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octavo.facts.dates import DATE_LINE
from octavo.facts.fact_source import FactSource, PrintedLine
from octavo.facts.words import Place, fold
from octavo.language.names import first_names, is_ordinary_word
from octavo.language.vocabulary import rarity

_MARKS = re.compile(
    r"[\u2217\u2020\u2021\u00a7\u00b6*+#$\u204e\u00b9\u00b2\u00b3\u2070-\u2079]+|(?<=[^\W\d])\d(?:,\d)*(?!\w)|"
    r"(?<=[^\W\d_])\s?\d+$"
)
_BETWEEN = re.compile(r"\s*[;\u00b7\u2022|]\s*|,?\s+(?:and|und|et|y|en|e)\s+|,?\s*&\s*|,\s*")
_WORD = re.compile(r"(?:[^\W\d_]\.-?){1,3}|[^\W\d_][^\W\d_'\u2019.-]*(?:['\u2019-][^\W\d_]+)*\.?")
_INITIAL = re.compile(r"(?:[A-Z\u00c0-\u00de]\.-?)+")
_PARTICLE_WORDS = "von van de der den del della di da dos du la le ter ten zu bin al el y af st"
_PARTICLES = frozenset(_PARTICLE_WORDS.split())
_SUFFIXES = frozenset({"jr", "sr", "ii", "iii", "iv", "phd", "md"})
# Chinese and Korean names begin with one of a few family names. Korean names may be printed with spaces.
_KOREAN = (
    "\uae40\uc774\ubc15\ucd5c\uc815\uac15\uc870\uc724\uc7a5\uc784\ud55c\uc624\uc11c\uc2e0\uad8c\ud669\uc548"
    "\uc1a1\ub958\uc804\ud64d\uace0\ubb38\uc591\uc190\ubc30\ubc31\ud5c8\uc720\ub0a8\uc2ec\ub178"
)
_CHINESE = (
    "\u738b\u674e\u5f20\u5218\u9648\u6768\u9ec4\u8d75\u5434\u5433\u5468\u5f90\u5b59\u9a6c\u6731\u80e1\u90ed"
    "\u4f55\u9ad8\u6797\u7f57\u90d1\u6881\u8c22\u5b8b\u5510\u8bb8\u97e9\u51af\u9093\u66f9\u5f6d\u66fe"
)
_EASTERN = re.compile(rf"[{_CHINESE}][\u4e00-\u9fff]{{1,2}}|[{_KOREAN}] ?[\uac00-\ud7a3] ?[\uac00-\ud7a3]")
_BYLINE = re.compile(
    r"(?:(?:written |edited |prepared |presented |submitted )?by|authors?:?|von|par|por|di|door|autor(?:in|en|es)?:|"
    r"auteurs?:)"
    r"\s+(?P<names>\S.{2,160})",
    re.IGNORECASE,
)
_STOP = re.compile(
    r"(?:abstract|zusammenfassung|resume|summary|introduction|contents|keywords|\d+\.? introduction|inhalt\w*)\b.*"
)
_WORK = re.compile(
    r"universit|institut|department|dept|faculty|laborator|corporation|college|school|inc\b|gmbh|ltd|center|centre|@|"
    r"research|academy|hospital|committee|council|commission"
)
_TITLES = re.compile(r"^(?:(?:prof|dr|mr|mrs|ms|dipl|ing|herr|frau|sir|rev)\b\.?(?:-ing\.?)?\s*)+", re.IGNORECASE)
_CLOSING = re.compile(
    r"(?:yours (?:sincerely|faithfully|truly)|(?:yours )?sincerely|(?:kind|best|warm|with kind) regards|regards|"
    r"best wishes|"
    r"mit (?:freundlichen|besten|herzlichen) gru\w+|(?:freundliche|viele|herzliche|beste|liebe) gru\w+|"
    r"hochachtungsvoll|"
    r"cordialement|(?:veuillez|salutations) .{0,80}|bien a vous|atentamente|un saludo|saludos cordiales|"
    r"cordiali saluti|"
    r"distinti saluti|met vriendelijke groet\w*|hoogachtend|sincerely yours|respectfully(?: yours)?)\W{0,3}"
)
_USER = re.compile(
    r".*(?:\d|[_@\\/<>]).*|un-?named|unknown|anonymous|various|author|autor|user|admin\w*|owner|default|root|guest|"
    r"none|"
    r"n/?a|me|pc|test|office|home|windows.*|microsoft.*|apple.*|dell|hp|lenovo|toshiba|acer|asus|sony|canon|epson|"
    r"brother|"
    r"xerox|scanner|kyocera|ricoh"
)
_SOFTWARE = re.compile(
    r"python-|openpyxl|xlsxwriter|pandoc|latex|\btex\b|office|acrobat|adobe|distiller|pdf|itext|reportlab|ghostscript|"
    r"quartz|chrom|crystal decisions|indesign|setpagedevice|quark|software|generator|converter|calibre|sigil|apache|"
    r"wordpress|typo3|drupal|\.(?:com|net|org|de)\b"
)
_LEGAL = re.compile(
    r"\b(?:gmbh|ag|kg|inc|ltd|llc|corp|corporation|company|e\.? ?v|sarl|b\.?v|s\.?a|plc|association|institute|"
    r"university|ministry|foundation)\b"
)
_MOST_BELOW = 16
_MOST_WORDS, _LEAST_WORDS = 5, 2
_RARE, _COMMON = 0.86, 0.8
_FEW = 2


@dataclass(frozen=True, slots=True)
class Author:
    """The names of the authors, joined by commas, and the evidence for them."""

    names: str
    evidence: frozenset[str]
    place: Place | None = None
    quote: str = ""


def find_author(source: FactSource, title_lines: Sequence[int] = (), *, with_metadata: bool = True) -> Author | None:
    """Find the author in the publisher's metadata, the printed text or the file's metadata, in this order of
    preference.

    An author in the metadata must look like a name, except that the name of a video channel can be any text.
    """
    if source.source_type == "youtube" and source.metadata.author:
        return Author(source.metadata.author, frozenset({"publisher"}))  # the name of a channel can be any text
    claimed = claimed_author(source.metadata.author)
    if claimed and source.source_type in {"epub", "fb2", "mobi", "jats", "docbook", "html", "mhtml", "web"}:
        return Author(claimed, frozenset({"publisher"}))
    printed = _byline(source) or _below_title(source, title_lines)
    if printed:
        return printed
    return Author(claimed, frozenset({"metadata"})) if claimed and with_metadata else None


def claimed_author(text: str | None) -> str | None:
    """Return the author named in the file's metadata. Returns None if it is neither a person nor an organisation."""
    text = " ".join((text or "").split()).strip(" ,;")
    folded = fold(text)
    if not text or _USER.fullmatch(folded) or _SOFTWARE.search(folded):
        return None
    names = [part.strip() for part in _BETWEEN.split(text) if part.strip()]
    is_named = bool(_LEGAL.search(folded)) or any(is_name(name) for name in (text, *names)) or not text.isascii()
    is_surname_first = len(names) == _FEW and all(map(_is_name_word, " ".join(names).split()))
    is_short = text.isupper() and text.isalpha() and 2 < len(text) < 6  # noqa: PLR2004 - FAA, NASA
    return text if is_named or is_surname_first or is_short else None


def is_name(text: str) -> bool:
    """Whether a text looks like a person's name.

    It must consist of two to five capitalised words, none of which is an ordinary word, or be a Chinese or Korean name.
    """
    text = _TITLES.sub("", text.strip(" .,:"))
    if _EASTERN.fullmatch(text):
        return True
    words = [word for word in text.split() if fold(word) not in _PARTICLES and fold(word.strip(".")) not in _SUFFIXES]
    if not _LEAST_WORDS <= len(words) <= _MOST_WORDS or not all(map(_is_name_word, words)):
        return False
    if _WORK.search(fold(text)):
        return False
    return not all(len(word.strip(".")) == 1 for word in words) and not is_ordinary_word(words[-1])


def _is_name_word(word: str) -> bool:
    word = word.strip(",")
    is_initial = bool(_INITIAL.fullmatch(word))
    return is_initial or (bool(_WORD.fullmatch(word)) and word[0].isupper() and not is_ordinary_word(word))


def is_likely(text: str) -> bool:
    """Whether a text that looks like a name is probably one.

    It must contain a known first name or an initial, consist only of rare words, or be a Chinese or Korean name.
    """
    words = _TITLES.sub("", text.strip(" .,:")).split()
    known = fold(words[0]).partition("-")[0] in first_names() if words else False
    initial = any(_INITIAL.fullmatch(word) for word in words)
    rare = all(rarity(fold(word)) >= _RARE for word in words if word.isascii() and len(word) > 2)  # noqa: PLR2004
    return known or initial or rare or bool(_EASTERN.fullmatch(text))


def read_names(text: str) -> list[str]:
    """Return the names in a line that consists only of names, optionally followed by a workplace.

    Returns an empty list for other lines.
    """
    parts = [part.strip(" .:") for part in _BETWEEN.split(_MARKS.sub(" ", text).strip()) if part.strip(" .:")]
    names: list[str] = []
    for part in parts:
        clean = " ".join(part.split())
        if not is_name(clean):
            break
        names.append(_as_name(clean))
    rest = parts[len(names) :]
    is_affiliation = all(_WORK.search(fold(part)) or part.isupper() or len(part.split()) <= 4 for part in rest)  # noqa: PLR2004
    return names if names and is_affiliation and len(names) >= min(len(rest), 1) else []


def _as_name(text: str) -> str:
    text = _TITLES.sub("", text)
    return text.title() if text.isupper() and len(text) > 4 and text.isascii() else text  # noqa: PLR2004


def _byline(source: FactSource) -> Author | None:
    for line in source.front:
        match = _BYLINE.fullmatch(line.text.strip())
        names = read_names(match["names"]) if match else []
        if names and (len(names) > 1 or is_likely(names[0]) or line.text.isupper() or line.text[:2] == "By"):
            return Author(", ".join(names), frozenset({"byline"}), line.place, line.text)
    return None


def _below_title(source: FactSource, title_lines: Sequence[int]) -> Author | None:
    """Find authors in the lines after the title, up to the abstract or the main text."""
    if not title_lines:
        return None
    names: list[str] = []
    first: PrintedLine | None = None
    after: list[str] = []
    for line in _following(source, title_lines):
        found = read_names(line.text) if len(line.text) < 200 else []  # noqa: PLR2004
        is_same = first is None or abs(line.size - first.size) < 0.15 * first.size
        if found and is_same:
            names += [name for name in found if name not in names]
            first = first or line
        elif names:
            after.append(fold(line.text))
            if not _WORK.search(after[-1]) and not _is_contact(after[-1]):
                break
    if not names or first is None or not _is_supported(names, after):
        return None
    return Author(", ".join(names), frozenset({"below title"}), first.place, first.text)


def _following(source: FactSource, title_lines: Sequence[int]) -> Iterator[PrintedLine]:
    last = max(title_lines)
    page = source.front[last].page
    for line in source.front[last + 1 : last + 1 + 2 * _MOST_BELOW]:
        folded = fold(line.text)
        if line.page == 0 and line.cells > 1:
            continue
        if line.page != page or _STOP.match(folded) or line.level in {1, 2, 3}:
            return
        is_prose = len(line.text) > 70 and not read_names(line.text) and not _WORK.search(folded)  # noqa: PLR2004
        if is_prose:
            return
        yield line


def _is_contact(text: str) -> bool:
    return "@" in text or "www." in text or text.startswith(("{", "http", "email"))


def _is_supported(names: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the names in a line are probably people.

    True if at least half of them are likely names. Otherwise, none of them may consist only of common words, and one of
    these must be true:

    - A workplace or a date follows.
    - The line contains more than two names, of which at least one is likely.
    """
    likely = sum(map(is_likely, names))
    if 2 * likely >= len(names):
        return True
    if any(all(rarity(fold(word)) < _COMMON for word in name.split()) for name in names if name.isascii()):
        return False
    follows = any(_WORK.search(text) or DATE_LINE.fullmatch(text.strip(" .")) for text in after[:3])
    return follows or (len(names) > _FEW and likely > 0)


def find_signature(source: FactSource) -> Author | None:
    """Find the name below a closing phrase such as "Yours sincerely"."""
    lines = [line.strip() for line in (source.tail or source.markdown)[-3000:].splitlines() if line.strip()]
    for index, line in enumerate(lines):
        if _CLOSING.fullmatch(fold(line).strip(" *_,.")):
            for below in lines[index + 1 : index + 4]:
                text = below.strip(" *_")
                if is_name(text):
                    return Author(_as_name(text), frozenset({"signature"}), quote=text)
    return None
