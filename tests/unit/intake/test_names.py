"""Whatever a file is called, its label is one short readable line that no program can take for a path."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from octavo.intake import clean_filename
from octavo.intake.upload_rows import MOST_CHARACTERS, NAMELESS

CASES: dict[str, tuple[str, str]] = {
    "a good name stays": ("report.pdf", "report.pdf"),
    "a good name in another script stays": ("отчёт 2026.pdf", "отчёт 2026.pdf"),
    "several endings stay": ("archive.tar.gz", "archive.tar.gz"),
    "inner dots and spaces stay": ("v1.2 final (3).txt", "v1.2 final (3).txt"),
    "a path up the tree": ("../../etc/passwd", "passwd"),
    "an absolute path": ("/etc/cron.d/evil", "evil"),
    "a path of Windows": ("C:\\Users\\ada\\report.pdf", "report.pdf"),
    "a path up the tree of Windows": ("..\\..\\boot.ini", "boot.ini"),
    "a share of Windows": ("\\\\server\\share\\a.txt", "a.txt"),
    "both separators": ("a/b\\c/d\\e.txt", "e.txt"),
    "a separator at the end": ("folder/", "folder"),
    "many separators at the end": ("folder//\\/", "folder"),
    "a way up at the end": ("folder/..", NAMELESS),
    "a NUL before the real ending": ("evil.pdf\0.exe", "evil.pdf.exe"),
    "a NUL inside a way up": (".\0./.\0./passwd", "passwd"),
    "a new header": ("a.txt\r\nSet-Cookie: x=1", "a.txtSet-Cookie: x=1"),
    "another line": ("one\ntwo.txt", "onetwo.txt"),
    "Unicode's other lines": ("one\u2028two\u2029three\u0085.txt", "onetwothree.txt"),
    "an ending that reads backwards": ("invoice\u202efdp.exe", "invoicefdp.exe"),
    "every mark of direction": ("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u2066\u2067\u2068\u2069a.txt", "a.txt"),
    "what has no width": ("a\u200b\ufeff\u00ad.txt", "a.txt"),
    "a hidden message": ("a\U000e0001\U000e0062.txt", "a.txt"),
    "joiners that a script needs": ("\u0645\u06cc\u200c\u062e.txt", "\u0645\u06cc\u200c\u062e.txt"),
    "nothing but joiners": ("\u200d\u200c\u200d", NAMELESS),
    "half a character": ("a\ud800.txt", "a.txt"),
    "what is no character": ("a\ufffe\uffff\ufdd0\U0001fffe.txt", "a.txt"),
    "what stands for something unreadable": ("a\ufffd\ufffc.txt", "a.txt"),
    "nothing": ("", NAMELESS),
    "spaces": (" \u00a0\u3000 ", NAMELESS),
    "one dot": (".", NAMELESS),
    "two dots": ("..", NAMELESS),
    "three hundred dots": ("." * 300, NAMELESS),
    "dots and spaces": (". . .", NAMELESS),
    "dots behind dots and spaces": (". .hidden", "hidden"),
    "a dot at the end, which Windows drops": ("evil.exe.", "evil.exe"),
    "an accent apart from its letter": ("re\u0301sume\u0301.pdf", "r\u00e9sum\u00e9.pdf"),
    "an accent behind a mark of direction": ("re\u200e\u0301sume.pdf", "r\u00e9sume.pdf"),
    "a name that is a device elsewhere": ("CON.txt", "CON.txt"),
    "a name with a stream of Windows": ("a.txt:evil.exe", "a.txt:evil.exe"),
    "what only looks like a way up": ("\uff0e\uff0e\uff0fetc", "\uff0e\uff0e\uff0fetc"),
    "an encoded way up is only text": ("..%2f..%2fpasswd", "%2f..%2fpasswd"),
    "ten thousand characters": ("x" * 10_000 + ".pdf", "x" * 196 + ".pdf"),
    "an ending of ten thousand characters": ("x." + "y" * 10_000, "x." + "y" * 198),
    "a cut that would end in a space": ("x" * 195 + " " * 10_000 + ".pdf", "x" * 195 + ".pdf"),
    "a cut that would end in a dot": ("x" * 199 + "." + "y" * 100, "x" * 199),
}
# Halves of characters too, which JSON can carry.
NAMES = st.text(st.characters(codec=None), max_size=400)
NASTY = st.text(st.sampled_from("./\\ ~:\0\r\n\t\u200d\u202e\u2028\ud800\u0301\ufffdea\u3000"), max_size=30)


@pytest.mark.parametrize("case", CASES)
def test_a_name_becomes_a_label(case: str) -> None:
    given_name, label = CASES[case]
    assert clean_filename(given_name) == label


@given(NAMES | NASTY)
@example("." * 199 + " a")
@example("e\u200e\u0301")
def test_a_label_is_one_short_readable_line(name: str) -> None:
    label = clean_filename(name)
    assert 0 < len(label) <= MOST_CHARACTERS
    assert not set("/\\") & set(label)
    assert label not in {".", ".."}
    assert not {unicodedata.category(character) for character in label} & {"Cc", "Cs", "Zl", "Zp"}
    assert {character for character in label if unicodedata.category(character) == "Cf"} <= set("\u200c\u200d")
    assert label == label.strip()
    assert label.splitlines() == [label]
    label.encode()


@given(NAMES | NASTY | NAMES.map(lambda name: name * 20))
def test_a_label_is_its_own_label(name: str) -> None:
    assert clean_filename(clean_filename(name)) == clean_filename(name)


@given(NAMES | NAMES.map(lambda name: name * 50), st.from_regex(r"[A-Za-z0-9]{1,20}", fullmatch=True))
def test_a_short_ending_stays_however_long_the_name_is(name: str, ending: str) -> None:
    assert clean_filename(f"{name}x.{ending}").endswith(f"x.{ending}" if len(name) < 100 else f".{ending}")


@given(NAMES, st.sampled_from("/\\"), st.from_regex(r"[a-z]{1,10}\.[a-z]{3}", fullmatch=True))
def test_only_the_last_part_of_a_path_counts(folder: str, separator: str, name: str) -> None:
    assert clean_filename(f"{folder}{separator}{name}") == name
