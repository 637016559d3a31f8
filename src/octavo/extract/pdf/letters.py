"""Replaces unusual characters in the text of PDFs with ordinary ones, and detects text that is not readable."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from string import ascii_letters
from typing import NamedTuple

from octavo.extract.decode import SYMBOL, WINGDINGS, clean
from octavo.extract.extracted import Box

# Ligatures, soft hyphens, special spaces, and bullets from the symbol fonts of office programs.
_LIGATURES = {
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
    "\u00ad": "",
    "\u00a0": " ",
    "\u2002": " ",
    "\u2003": " ",
    "\u2009": " ",
    "\u200b": "",
    "\uf0b7": "•",
    "\uf0a7": "▪",
    "\uf0d8": "➢",
    "\uf0fc": "✓",
    "\uf06e": "▪",
    "\uf0ae": "→",
    "\uf0a8": "☐",
    "\uf0fd": "☒",
    "\uf0fe": "☑",
    **{chr(0xF000 + ord(sign)): sign for sign in "()+<=>°±"},
    "\uf02d": "\u2212",
    "\uf0a3": "≤",
    "\uf0b3": "≥",
    "\uf0b4": "\u00d7",
    "\uf0b9": "≠",
    "\uf0bb": "≈",
    "\U000f0854": "\u2018",
    "\U000f0855": "\u2019",
}
_STRANGE = re.compile(f"[{''.join(_LIGATURES)}]")
# PDFium's character for a hyphen at the end of a line, with or without the line break.
_BROKEN_WORD = re.compile("(?<=\\w)[\x02\ufffe\u00ad][ \t]*(?:\r?\n[ \t]*|[ \t]+)?(?=\\w)")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-[ \t]*\n[ \t]*(?=[^\W\d_A-Z])")
_NOT_CHARACTERS = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_NOT_LETTERS = re.compile(r"[\W\d_]+")
_NOT_ASCII_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_NO_LETTERS = re.compile("[\ue000-\uf8ff\ufffd\U000f0000-\U0010ffff]")
_MANY = 0.3


# Marks where a word was divided at a line end, until the rest of the document shows whether it keeps its hyphen.
HYPHEN = "\ufdd0"
# Follows the space between two lines of Korean text, until PDFium's text shows whether the line ended inside a word.
_LINE_BREAK = "\ufdd4"
_HANGUL = "[\uac00-\ud7a3]"
_HANGUL_END = re.compile(f"{_HANGUL}\\Z")
_HANGUL_START = re.compile(_HANGUL)
_BROKEN_HANGUL = re.compile(f"(\\S+) {_LINE_BREAK}([^\\s{_LINE_BREAK}]+)")
_OWN_BREAK = re.compile(f"(\\S*{_HANGUL})( ?)\r?\n({_HANGUL}\\S*)")
_DIVIDED = re.compile(f"([^\\W\\d_]+){HYPHEN}([^\\W\\d_]+)")
_CONTINUED = "\u2190-"  # drawn by Doxygen where it divides a name at the end of a line
_BROKEN_END = re.compile("[^\\W\\d_]-\\Z")
_NUMBER_END = re.compile(r"(?<![\w.])\d{1,4}-\Z")
_ADDRESS_END = re.compile(r"(?:@|://|www\.)\S*-\Z")
# After these words, a hyphen stands for the end of a compound word: "pre- and postwar".
_SUSPENDED = re.compile(
    r"(?:and|or|to|und|oder|bis|bzw|sowie|et|ou|y|o|e|en|of|och|og|eller|i|lub|oraz)\b(?!-)", re.IGNORECASE
)
_SHARED_PART = re.compile(r"\w- (?:and|or|to|und|oder|bis|et|ou|y|o) \Z")
# Chinese and Japanese have no spaces between words.
IDEOGRAPH = re.compile("[\u3001-\u303f\u3041-\u30ff\u3400-\u9fff\uff01-\uff65]")
# First parts of compound words. The first ones keep their hyphen before any long word, the others before known words.
_PREFIXES = frozenset({"self", "non", "well", "quasi"})
_COMPOUNDING = frozenset(
    {"all", "cross", "full", "half", "high", "large", "long", "low", "open", "real", "short", "small", "state"}
    | {"one", "two", "three", "four", "five", "six", "first", "second", "third", "single", "double"}
)
_LEAST_AFTER_PREFIX = 5  # letters
_CAPITALS = 24  # characters on each side of a hyphen
_ADVERB = re.compile(r"[^\W\d_]{3,}ly")  # before a participle, as in "newly-built"
_WORDS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_SMALL_ASCII_WORDS = re.compile(r"[a-z]+(?:-[a-z]+)*")


class Vocabulary:
    """All words of a document, for deciding whether a word that is divided at the end of a line keeps its hyphen.

    For example, "exam-" and "ple" become "example", but "well-" and "known" become "well-known".
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._words: Counter[str] = Counter()
        for text in texts:
            self._words.update(_small_words(_DIVIDED.sub(" ", text) if HYPHEN in text else text))
        self._first_parts = {word.split("-", 1)[0] for word in self._words if "-" in word}

    def undivided(self, text: str) -> str:
        """Rejoin the words that were divided by a hyphen at the end of a line."""
        return _DIVIDED.sub(self._whole, text).replace(HYPHEN, "-") if HYPHEN in text else text

    def _whole(self, found: re.Match[str]) -> str:
        first, second = found[1], found[2]
        joined, hyphenated = f"{first}{second}", f"{first}-{second}"
        with_hyphen, without = self._words[hyphenated.lower()], self._words[joined.lower()]
        if with_hyphen or without:
            return hyphenated if with_hyphen >= without else joined
        start, is_word = first.lower(), second.lower() in self._words
        if _is_compound(found, is_word=is_word) or (
            (start in _PREFIXES or _ADVERB.fullmatch(start)) and (is_word or len(second) >= _LEAST_AFTER_PREFIX)
        ):
            return hyphenated
        return hyphenated if is_word and (start in self._first_parts or start in _COMPOUNDING) else joined


def _is_compound(divided: re.Match[str], *, is_word: bool) -> bool:
    """Whether a word that is divided at a hyphen is a compound, such as "state-of-the-art".

    It has another hyphen, or shares its last part with the word before it, as in "light- and heavy-duty".
    """
    text, start, end = divided.string, divided.start(), divided.end()
    if text[end : end + 1] == "-" or (is_word and text[max(start - 1, 0) : start] == "-"):
        return True
    return _SHARED_PART.search(text, max(start - 12, 0), start) is not None


def _are_capitals(above: str, below: str) -> bool:
    """Whether a hyphen between two lines is surrounded by text in capital letters, as in legal texts."""
    before, after = above[-_CAPITALS:], below[:_CAPITALS]
    return before.isupper() and after.isupper() and before.count(" ") > 1


def ends_in_hyphen(text: str) -> bool:
    # Searching only at the end avoids trying the expression at every letter.
    return text.endswith("-") and _BROKEN_END.search(text, max(len(text) - 2, 0)) is not None


def join_lines(texts: Sequence[str]) -> str:
    """Join the lines of a paragraph into one line.

    Where a word is divided at the end of a line, its hyphen is replaced with the character `HYPHEN`, so that the word
    can be rejoined later.
    """
    joined = texts[0]
    for text in texts[1:]:
        joined = _with_line(joined, text)
    return " ".join(joined.split())


def _with_line(above: str, below: str) -> str:
    if above.endswith(_CONTINUED):
        return above.removesuffix(_CONTINUED).rstrip() + below
    if above.endswith("-") and below[:1].isalnum() and not _SUSPENDED.match(below):
        if _NUMBER_END.search(above, max(len(above) - 6, 0)) or _ADDRESS_END.search(above.rpartition(" ")[2]):
            return above + below
        if ends_in_hyphen(above) and below[0].isalpha():
            is_divided = below[0].islower() or _are_capitals(above, below)
            return f"{above[:-1]}{HYPHEN}{below}" if is_divided else above + below
    elif IDEOGRAPH.match(above, max(len(above) - 1, 0)) and IDEOGRAPH.match(below):
        return above + below
    elif _HANGUL_END.search(above, max(len(above) - 1, 0)) and _HANGUL_START.match(below):
        return f"{above} {_LINE_BREAK}{below}"
    return f"{above} {below}"


def with_whole_korean(text: str, own: str) -> str:
    """Join Korean words that are divided at the end of a line.

    Korean lines can end inside a word. In PDFium's text (`own`), a line that ends after a word has a space at its end.
    If `own` contains no such line, it does not show where words end, and all lines are joined with a space.
    """
    if _LINE_BREAK not in text:
        return text
    breaks = _OWN_BREAK.findall(own)
    divided = {(above, below) for above, space, below in breaks if not space} if any(one[1] for one in breaks) else ()
    text = _BROKEN_HANGUL.sub(lambda found: f"{found[1]}{'' if found.groups() in divided else ' '}{found[2]}", text)
    return text.replace(_LINE_BREAK, "")


def _small_words(text: str) -> Iterable[str]:
    if text.isascii():
        return _SMALL_ASCII_WORDS.findall(text.lower())
    return map(str.lower, _WORDS.findall(text))


def clean_letters(text: str) -> str:
    """Remove invisible characters and characters that the database rejects. Line breaks are kept.

    Ligatures are replaced with ordinary letters, and loose accents are combined with their letters.
    """
    if text.isascii() and text.isprintable():
        return _LOOSE_ACCENT.sub(_with_accent, text) if "`" in text else text
    text = clean(_BROKEN_WORD.sub("", text))
    if not text.isascii():
        text = _STAR_QUOTE.sub("'", text)
        text = _LOOSE_ACCENT.sub(_with_accent, text)
        text = _NOT_CHARACTERS.sub("", _STRANGE.sub(_usual_form, text))
        text = text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
    return text


# Some presentation programs swap the bytes of the letters of a ligature: "fi" becomes U+6600 and U+6900.
# PDFium adds the last two letters of a long ligature: "ffi" becomes U+6600 and U+CF00.
_SWAPPED = {chr(ord(letter) << 8): letter for letter in ascii_letters}
_ADDED = {chr((ord("f") + ord(letter)) << 8): f"f{letter}" for letter in "fil"}
_SWAPPED_LIGATURE = f"[{''.join(_SWAPPED)}](?:[{''.join(_SWAPPED)}]{{1,2}}|[{''.join(_ADDED)}])"
_EAST_ASIAN = "\u3000-\u9fff\uac00-\ud7a3"
_SWAPPED_IN_WORD = re.compile(
    f"(?<![{_EAST_ASIAN}])(?:(?<=[A-Za-z]){_SWAPPED_LIGATURE}|{_SWAPPED_LIGATURE}(?=[A-Za-z]))(?![{_EAST_ASIAN}])"
)


def with_right_bytes(text: str) -> str:
    """Correct the ligatures inside Latin words whose letters have swapped bytes and look like Chinese characters."""
    if text.isascii():
        return text
    return _SWAPPED_IN_WORD.sub(lambda found: "".join((_SWAPPED | _ADDED)[letter] for letter in found[0]), text)


# Old TeX fonts draw an accent before its letter. Dotless letters are only used under accents. Over other letters, a
# circumflex or tilde may belong to the variable before it.
ACCENTS = {
    "\u00a8": "\u0308",
    "\u00b4": "\u0301",
    "\u02c7": "\u030c",
    "\u02da": "\u030a",
    "\u02c6": "\u0302",
    "\u02dc": "\u0303",
    "\u02d8": "\u0306",
    "\u02d9": "\u0307",
    "\u02dd": "\u030b",
    "\u00b8": "\u0327",
    "`": "\u0300",
}
# A font without names that TeX uses for straight quotes. PDFium reads the quote as a star.
_STAR_QUOTE = re.compile("(?<=\\w)\u272c|\u272c(?=\\w)")
_DOTLESS = {"\u0131": "i", "\u0237": "j"}
_LOOSE_ACCENT = re.compile(
    "([\u00a8\u00b4\u02c7\u02da\u00b8])([A-Za-z\u0131\u0237])|([\u02c6\u02dc])([\u0131\u0237])|((?<=[^\\W\\d_])`)([aeiouAEIOU])"
)


def _with_accent(found: re.Match[str]) -> str:
    return with_accent(found[1] or found[3] or found[5], found[2] or found[4] or found[6]) or found[0]


def with_accent(accent: str, letter: str) -> str:
    """Return the letter with the accent. Returns an empty string if there is no such character."""
    joined = unicodedata.normalize("NFC", _DOTLESS.get(letter, letter) + ACCENTS[accent])
    return joined if len(joined) == 1 else ""


_CHINESE = "[\u3000-\u303f\u3400-\u9fff\uff00-\uffef\u2026]"
_SPACED = re.compile(f"(?<={_CHINESE}) (?={_CHINESE})")
_MOST_SPACED = 0.4


def without_wide_spaces(text: str) -> str:
    """Remove the spaces between characters if a line of Chinese or Japanese is printed with wide letter spacing."""
    if text.isascii() or len(_SPACED.findall(text)) < _MOST_SPACED * len(text):
        return text
    return _SPACED.sub("", text)


def one_line(text: str) -> str:
    """Join the lines of a paragraph, and rejoin words that are hyphenated at the end of a line."""
    text = clean_letters(text)
    if "\n" in text:
        text = _HYPHENATED.sub("", text)
    return " ".join(text.split())


# Fonts whose letters are drawn as signs: the signs by code, as office programs and PDFs without a mapping store them.
_MORE_WINGDINGS = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "☐"}
_DINGBATS = (
    dict(zip(range(0x33, 0x39), "✓✔✕✖✗✘", strict=True))
    | dict(zip(range(0x6C, 0x77), "●❍■☐❐☐❒▲▼◆❖", strict=True))
    | {0x28: "✈", 0x29: "✉", 0x48: "★", 0xD4: "➔", 0xD5: "→", 0xE4: "➤"}
)
# The typographic symbols of WordPerfect, in the order of their codes.
_WORDPERFECT = dict(enumerate("●○■•*¶§¡¿«»£¥₧ƒªº½¼¢²ⁿ®©¤¾³‛’‘‟”“–—", 0x21))  # noqa: RUF001
_PRIVATE = 0xF000
_SIGN_FONTS = (
    (re.compile(r"wingdings\W?[23]"), _MORE_WINGDINGS),
    (re.compile(r"wingdings"), WINGDINGS),
    (re.compile(r"zapfdingbats|zadb"), _DINGBATS),
    (re.compile(r"wptypographicsymbols"), _WORDPERFECT),
)
_PHONETIC_FONT = re.compile(r"(?:\w+\+)?(?:tex-)?(?:x?tipa|tipx|xipa)")
_SYMBOL_FONT = re.compile(r"(?:\A|\+)symbol(?:mt|ps|std|neu)?\W?\w*\Z")
_ICON_FONT = re.compile(r"icons?(?![a-z])|icons|fontawesome|glyphicon|lcircle|dingbats(?:one|two|three)")


@cache
def signs_of(font: str) -> dict[int, str] | None:
    """Return the symbols of a symbol font by character code.

    Returns an empty dictionary for an icon font, and None for any other font.
    """
    lowered = font.lower().replace(" ", "")
    found = next((signs for name, signs in _SIGN_FONTS if name.search(lowered)), None)
    return {} if found is None and _ICON_FONT.search(lowered) else found


@cache
def is_phonetic(font: str) -> bool:
    """Whether a font draws phonetic symbols instead of letters, so that the extracted letters are wrong."""
    return _PHONETIC_FONT.match(font.lower()) is not None


def as_signs(text: str, signs: dict[int, str]) -> str:
    """Convert a word in a symbol font to the symbols that it shows.

    Codes that are not in `signs` become bullets, and characters above 255 are kept. Returns an empty string if `signs`
    is empty.
    """
    if not signs:
        return ""
    codes = (ord(letter) - _PRIVATE if "\uf000" <= letter <= "\uf0ff" else ord(letter) for letter in text)
    return "".join(signs.get(code, "•") if code < 0x100 else chr(code) for code in codes)  # noqa: PLR2004


@cache
def is_symbol_font(font: str) -> bool:
    return _SYMBOL_FONT.search(font.lower().replace(" ", "")) is not None


def as_symbols(text: str) -> str:
    """Replace private-use characters of the Symbol font with Greek letters and mathematical symbols."""
    return _PRIVATE_SYMBOL.sub(lambda found: SYMBOL.get(ord(found[0]) - _PRIVATE, found[0]), text)


_PRIVATE_SYMBOL = re.compile("[\uf021-\uf0ef]")
# PDFium writes glyphs without a character as control characters; 2 is a hyphen at the end of a line.
_UNREAD = re.compile("[\x01\x03-\x08\x0b\x0e-\x1f\x7f-\x9f\ue000-\uf71f\uf800-\uf8ff\ufffd]")
_BETWEEN_WORDS = re.compile("[ \t\r\n\x02\ufffe]+")
_IMPLAUSIBLE = re.compile("[a-zß-ÿ][‰¤¢£¥¦¬¶¿¡÷±‡†][a-zß-ÿ]")
_RARE_LETTERS = re.compile("[\u0180-\u02af]")
_MOST_UNREAD = 50  # words


# Signs of formulas in fonts that number them freely: "¼" shows "=", and "ð" and "Þ" show brackets.
_WRONG_SIGN = re.compile(r"[A-Za-z\u0370-\u03ff)\]Þ]¼\s?[^\W_]|\Wð[^\sðÞ]{1,12}Þ(?![^\W\d_])")


def has_unread_letters(own: str, found: str, signs: int) -> bool:
    """Whether the text of a page has unreadable characters.

    `own` is the text from PDFium, and `found` is the text from liteparse. An unreadable character in `own` is ignored
    if `found` has readable characters in its place. `signs` is the number of symbols that were identified by their
    font.
    """
    if not found.isascii() and (_IMPLAUSIBLE.search(found) or _WRONG_SIGN.search(found) or _is_unreadable(found)):
        return True
    if not _UNREAD.search(own):
        return False
    own, found = _STRANGE.sub(_usual_form, own), clean_letters(found)
    words = [word for word in _BETWEEN_WORDS.split(own) if _UNREAD.search(word)]
    alone = [word for word in words if not _UNREAD.sub("", word)]
    mixed = {word for word in words if _UNREAD.sub("", word)}
    return len(alone) > signs or len(mixed) > _MOST_UNREAD or not all(_is_repaired(word, found) for word in mixed)


def _is_unreadable(text: str) -> bool:
    """Whether a text has unreadable characters, apart from ligatures and symbols with a known meaning."""
    return _NO_LETTERS.search(text) is not None and _NO_LETTERS.search(_STRANGE.sub(_usual_form, text)) is not None


def _usual_form(found: re.Match[str]) -> str:
    return _LIGATURES[found.group()]


def _is_repaired(word: str, found: str) -> bool:
    """Whether `found` contains the word with each unreadable character replaced by one to three letters or a space."""
    first, *others = map(re.escape, _UNREAD.split(word))
    *inner, last = others
    pattern = first + "".join(rf"(?:\S{{1,3}}|\s){part}" for part in inner)
    pattern = pattern + (rf"(?:\S{{1,3}}|\s){last}" if last else r"\S{1,3}(?!\S)")
    if not first:
        pattern = r"(?<!\S)\S{1,3}" + pattern[len(r"(?:\S{1,3}|\s)") :]
    return re.search(pattern, found) is not None


_NOT_LATIN = re.compile("[^A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_LETTER = re.compile(r"[^\W\d_]")
_LONGER_WORDS = re.compile("[a-z]{4,}")
_COMMON = frozenset("eainorstlud")
_ENOUGH_LETTERS = 120
_FEW_COMMON = 0.48
_FILLERS = b" \t\r\n._=|+*-"
_NOT_MARKS = bytes(code for code in range(256) if code > 127 or chr(code).isalnum())  # noqa: PLR2004
_LEAST_ALPHANUMERIC = 0.5


def is_garbled(text: str) -> bool:
    """Whether a text is nonsense, because its font maps glyphs to wrong characters.

    A real text is assumed to contain hardly any unassigned characters, unreadable characters or words that mix
    alphabets. In Latin script, it has more plain letters than accented ones, and consists mainly of the eleven most
    common letters. In Korean, Chinese and Japanese, hardly any characters are missing from the national character sets.
    """
    if is_meaningless(text) or _is_mostly_marks(text):
        return True
    if text.isascii():
        return _has_uncommon_letters(text.lower())
    if _has_rare_ideographs(text) or _has_unassigned(text):
        return True
    if len(_RARE_LETTERS.findall(text)) > max(_FEW_RARE, count_letters(text) / 2):
        return True
    latin = _NOT_LATIN.sub("", text).lower()
    marked = len(latin) - len(latin.encode("ascii", "ignore"))
    if len(latin) > _LEAST_FONT and marked > len(latin) / 2:
        return True
    return _mixes_alphabets(text) or _has_uncommon_letters(unicodedata.normalize("NFD", latin))


def _is_mostly_marks(text: str) -> bool:
    """Whether a long text has more punctuation than letters and digits.

    Characters that draw lines or rows of dots are ignored. All characters beyond ASCII count as letters, so that bytes
    can be counted, which is much faster.
    """
    dense = text.encode(errors="replace").translate(None, _FILLERS)
    marks = len(dense.translate(None, _NOT_MARKS))
    return len(dense) > _ENOUGH_LETTERS and len(dense) - marks < _LEAST_ALPHANUMERIC * len(dense)


def _has_uncommon_letters(text: str) -> bool:
    """Whether the letters that are most common in Latin script are unusually rare in this text.

    Short words are ignored, because they may be the names of variables.
    """
    words = "".join(_LONGER_WORDS.findall(text))
    return len(words) >= _ENOUGH_LETTERS and sum(map(words.count, _COMMON)) < _FEW_COMMON * len(words)


_LEAST_FONT = 20
_FEW_RARE = 8  # letters


def _mixes_alphabets(text: str) -> bool:
    if not _OTHER_SCRIPT.search(text):
        return False
    words = [word for word in text.split() if len(word) > 3]  # noqa: PLR2004 - short words are formulas
    mixed = sum(len(set(map(_script, _LETTER.findall(word)))) > 1 for word in words)
    return len(words) > _LEAST_FONT and mixed > 0.25 * len(words)


@cache
def _script(letter: str) -> int:
    """Return a number that identifies the script of a letter.

    Latin and East Asian letters have the same number, because words often mix them.
    """
    code = ord(letter)
    if code < _FIRST_GREEK or code >= _FIRST_EXTENDED:
        return 0
    return 1 if code < _FIRST_CYRILLIC else 2 if code < _FIRST_HEBREW else code >> 7


_FIRST_GREEK, _FIRST_CYRILLIC, _FIRST_HEBREW, _FIRST_EXTENDED = 0x370, 0x400, 0x590, 0x1C80
_OTHER_SCRIPT = re.compile("[\u0370-\u1c7f]")
_IDEOGRAPHS = re.compile("[\u3400-\u9fff\uac00-\ud7a3]")
_NATIONAL_SETS = ("euc_kr", "gb2312", "big5", "euc_jp")
_LONGEST_CODE = 3  # bytes; euc_kr encodes syllables that it does not contain as longer sequences
_MANY_RARE = 0.08


def _has_rare_ideographs(text: str) -> bool:
    found = _IDEOGRAPHS.findall(text)
    return len(found) > _LEAST_FONT and sum(map(_is_rare, found)) > _MANY_RARE * len(found)


@cache
def _is_rare(ideograph: str) -> bool:
    """Whether a Korean syllable or Chinese character is missing from all national character sets."""
    return not any(0 < len(ideograph.encode(name, "ignore")) <= _LONGEST_CODE for name in _NATIONAL_SETS)


def _has_unassigned(text: str) -> bool:
    letters = sum(map(len, text.split()))
    if letters <= _LEAST_FONT:
        return False
    unassigned = sum(unicodedata.category(letter) == "Cn" for letter in _BEYOND_LATIN.findall(text))
    return unassigned > _MANY_RARE * letters


_BEYOND_LATIN = re.compile("[^\0-\u024f\\s]")


def is_meaningless(text: str) -> bool:
    """Whether a large part of the text is unreadable, because its fonts do not map their glyphs to characters."""
    if text.isascii():
        return False
    return len(_NO_LETTERS.findall(text)) > _MANY * len(text)


def count_letters(text: str) -> int:
    if text.isascii():
        return len(text.encode().translate(None, _NOT_ASCII_LETTERS))
    return len(_NOT_LETTERS.sub("", text))


_INDIAN_WORD, _LEAST_CONSONANTS = re.compile("[\u0900-\u0963\u0971-\u0df4]+"), 1.9
_RIGHT_TO_LEFT_WORD = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]+")
_MANY_WORDS = 20


_ACCENT_BEHIND = re.compile("[^\\W\\d_]\u02c7(?:\\s|\\Z)")  # a caron; other accents are also used as signs


def has_right_to_left(text: str) -> bool:
    return not text.isascii() and _RIGHT_TO_LEFT.search(text) is not None


def has_split_letters(text: str) -> bool:
    """Whether words were probably broken apart: into single letters, or into a word and an accent.

    This is assumed if most words of a right-to-left text are single letters, if the words of an Indian script have
    fewer than two consonants on average, or if a caron follows a word.
    """
    if not text.isascii() and _ACCENT_BEHIND.search(text):
        return True
    if not text.isascii() and len(indian := _INDIAN_WORD.findall(text)) >= _MANY_WORDS:
        return sum(map(str.isalpha, "".join(indian))) < _LEAST_CONSONANTS * len(indian)
    words = _RIGHT_TO_LEFT_WORD.findall(text) if has_right_to_left(text) else []
    return len(words) >= _MANY_WORDS and 2 * sum(len(word) == 1 for word in words) > len(words)


def is_right_to_left(text: str) -> bool:
    """Whether most letters belong to a right-to-left script."""
    if not has_right_to_left(text):
        return False
    return 2 * len(_RIGHT_TO_LEFT.findall(text)) > count_letters(text)


# Digits and signs that may be an exponent or the number of a note, and how they are written.
RAISED = re.compile(r"(?<=[\w)\]}.,;:!?\u201d\u2019%])(?:[-+\u2212\u2013]?\d{1,3}|(?<=[\d)])n(?![A-Za-z]))")
AS_RAISED = str.maketrans("0123456789+-\u2212\u2013n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻ⁿ")


_MARKS = "\u064b-\u0652\u0670"  # vowel signs, which follow their letter
_LATE_MARK = re.compile(rf"(?<=[\u0621-\u064a])\s*([.,:!\u060c\u061b\u061f]?)\s*([{_MARKS}]+)")
_TOUCHING = re.compile(r"(?<=[A-Za-z]{2})(?=[\u0621-\u064a])")
_BRACKETS = str.maketrans("()[]{}", ")(][}{")
_ANY_BRACKET = re.compile(r"[()\[\]]")


def with_right_marks(text: str) -> str:
    """Correct a right-to-left line.

    Vowel signs are put after their letters, and Latin and Arabic words are separated. Opening and closing brackets are
    swapped if more of them match after the swap. Some programs store brackets as they are drawn, which reverses them in
    right-to-left scripts.
    """
    text = _TOUCHING.sub(" ", _LATE_MARK.sub(lambda found: found[2] + found[1], text))
    swapped = text.translate(_BRACKETS)
    return swapped if _unmatched(swapped) < _unmatched(text) else text


def _unmatched(text: str) -> int:
    """Return the number of brackets that are not closed or not opened."""
    opened: list[str] = []
    alone = 0
    for bracket in _ANY_BRACKET.findall(text):
        if bracket in "([":
            opened.append(bracket)
        elif opened and opened[-1] == bracket.translate(_BRACKETS):
            opened.pop()
        else:
            alone += 1
    return alone + len(opened)


HIGH_SURROGATES = range(0xD800, 0xDC00)
SURROGATES = re.compile("[\ud800-\udfff]")
_LOW_SURROGATES = range(0xDC00, 0xE000)
_LAM = "\u0644"
_ALEFS = "\u0627\u0622\u0623\u0625"


def letter_of(high: int, code: int) -> str:
    """Return the character for a UTF-16 code unit.

    `high` is the preceding high surrogate. It is 0 if there is none.
    """
    if code not in _LOW_SURROGATES:
        return chr(code)
    return chr(0x10000 + ((high - 0xD800) << 10) + code - 0xDC00) if high else "\ufffd"


def with_right_ligatures(letters: Iterator[tuple[str, Box] | None]) -> Iterator[tuple[str, Box] | None]:
    """Swap alef and lam if they form an Arabic ligature, because PDFium returns the two letters in reverse order."""
    before: tuple[str, Box] | None = None
    for one in letters:
        if before and one and one[0] == _LAM and before[0] in _ALEFS and one[1] == before[1]:
            yield one
            yield before
            before = None
            continue
        if before:
            yield before
        if one is None:
            yield None
        before = one
    if before:
        yield before


class Characters(NamedTuple):
    """The text of a page with PDFium's character indexes, and a function that returns the box of a character."""

    text: str
    box: Callable[[int], Box | None]
