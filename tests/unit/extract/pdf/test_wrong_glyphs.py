# ruff: noqa: RUF001 - the signs are what is tested
"""Symbols that PDFium reads as letters, separate accents, and codes of fonts without names."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise

import pytest

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, TextRun, Word
from octavo.extract.pdf.letters import Characters, clean_letters, has_split_letters, is_phonetic, with_right_bytes
from octavo.extract.pdf.wrong_glyphs import with_right_symbols, without_known_codes

WIDE, HIGH = 5.0, 10.0


def run(text: str, left: float = 50.0, top: float = 100.0) -> TextRun:
    words: list[Word] = []
    start = 0
    for part in text.split(" "):
        end = start + len(part)
        words.append(Word(left + start * WIDE, top, left + end * WIDE, top + HIGH, part))
        start = end + 1
    box = Box(left, top, left + len(text) * WIDE, top + HIGH)
    return TextRun(box, text, 10.0, "CMR10", False, False, 0.0, None, tuple(words))


def characters(text: str) -> Characters:
    places = [Box(50 + index * WIDE, 100, 50 + (index + 1) * WIDE, 110) for index in range(len(text))]
    return Characters(text, places.__getitem__)


def fonts(text: str, special: str, name: bytes) -> Callable[[int], bytes]:
    """A character is in the special font if `special` has "^" below it."""
    return lambda index: name if special.ljust(len(text))[index] == "^" else b"CMR10"


@pytest.mark.parametrize(
    ("own", "special", "font", "right"),
    [
        (r"\did{hnamei} here", r"     ^    ^     ", b"CMSY10", r"\did{⟨name⟩} here"),
        ("{hmy wordi} and high", " ^       ^", b"CMSY10", "{⟨my word⟩} and high"),
        ("if a 6= b then", "     ^", b"ABCDEF+CMSY10", "if a ≠ b then"),
        ("costs e100 now", "      ^", b"TeX-feymr10", "costs €100 now"),
        ("as Kc( n ) is", "    ^", b"LMMathExtension10-Regular", "as K\u0302( n ) is"),
        ("for k ě 0 only", "      ^", b"matha10", "for k ≥ 0 only"),
        ("his Hawaii e4 x6= Kc( ě 1", "", b"", "his Hawaii e4 x6= Kc( ě 1"),
    ],
)
def test_a_symbol_of_a_tex_font_is_not_read_as_a_letter(own: str, special: str, font: bytes, right: str) -> None:
    page = PageContent(1, 600, 800, (run(own),), (), ())
    found = with_right_symbols(page, own, lambda: characters(own), fonts(own, special, font))
    assert [one.text for one in found.runs] == [right]
    assert [word.text for word in found.runs[0].words] == right.split(" ")


def test_a_separate_accent_is_joined_with_the_letter_below_it() -> None:
    own = "Strumbelj, E. ˇ"
    read = characters(own)
    page = PageContent(1, 600, 800, (run("Strumbelj, E."), run("ˇ")), (), ())
    found = with_right_symbols(page, own, lambda: read, lambda _: b"CMR10")
    assert [one.text for one in found.runs] == ["Štrumbelj, E."]


def test_an_accent_becomes_a_word_if_its_letter_was_left_out() -> None:
    own = "A. A.; Perer ´"
    page = PageContent(1, 600, 800, (run("´"), run("A.; Perer", 50 + 3 * WIDE)), (), ())
    found = with_right_symbols(page, own, lambda: characters(own), lambda _: b"CMR10")
    assert [one.text for one in found.runs] == ["Á.", "A.; Perer"]


def test_phonetic_fonts_are_known() -> None:
    assert is_phonetic("ABCDEF+TeX-tipa10")
    assert not is_phonetic("Antipasto")


def test_codes_of_fonts_without_names_are_read() -> None:
    own = "\x88 di\x1berent"
    page = PageContent(1, 600, 800, (run("difterent", 50 + 2 * WIDE),), (), ())
    found = with_right_symbols(page, own, lambda: characters(own), lambda _: b"")
    assert sorted(one.text for one in found.runs) == ["different", "•"]
    assert without_known_codes(own) == "• different"


def test_an_accent_that_follows_its_word_is_joined_with_the_letter_below_it() -> None:
    own = "Franz Gahler \u00a8"
    places = [Box(50 + index * WIDE, 100, 50 + (index + 1) * WIDE, 110) for index in range(len(own) - 1)]
    places.append(places[own.index("ahler")])  # the accent is above the "a"
    whole, name = run(own), run("Franz Gahler")
    apart = whole._replace(words=(*name.words, Word(*places[-1], "\u00a8")))
    attached = name.words[1]._replace(text="Gahler\u00a8")
    fused = name._replace(text="Franz Gahler\u00a8", words=(name.words[0], attached))
    for one in (apart, fused):
        page = PageContent(1, 600, 800, (one,), (), ())
        found = with_right_symbols(page, own, lambda: Characters(own, places.__getitem__), lambda _: b"CMR10")
        assert [word.text for word in found.runs[0].words] == ["Franz", "Gähler"]
        assert found.runs[0].text == "Franz Gähler"


def test_a_star_inside_a_word_is_a_straight_quote() -> None:
    assert clean_letters("psi\u272cs and \u272c a star") == "psi's and \u272c a star"


def test_the_coded_ligature_fl_is_not_read_as_th() -> None:
    own = "That de\x1dection is \x1dat"
    page = PageContent(1, 600, 800, (run("That deThection is That"),), (), ())
    # The ligature is as wide as the two letters that liteparse returns.
    ends = list(accumulate((WIDE * (1 + (letter == "\x1d")) for letter in own), initial=50.0))
    places = [Box(left, 100, right, 110) for left, right in pairwise(ends)]
    found = with_right_symbols(page, own, lambda: Characters(own, places.__getitem__), lambda _: b"")
    assert [one.text for one in found.runs] == ["That deflection is flat"]


def test_single_letters_of_an_arabic_font_are_unread() -> None:
    assert has_split_letters("ی ه ا " * 10)
    assert not has_split_letters("این کتاب در باره آهک است " * 5)
    assert not has_split_letters("a b c " * 10)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("po\u7200\u7400ability", "portability"),
        ("user-de\u6600\u6900ned", "user-defined"),
        ("\u6600\u6900nd", "find"),
        ("e\u6600\ucf00cient", "efficient"),
        ("shu\u6600\ud200e", "shuffle"),
        ("Sta\u6600\u6600", "Staff"),
        ("Python\u6700\u597d", "Python\u6700\u597d"),
        ("a \u6600\u6900 b", "a \u6600\u6900 b"),
        ("\u4f7f\u6600\u6900x", "\u4f7f\u6600\u6900x"),
    ],
)
def test_ligatures_with_swapped_bytes_are_read_only_inside_latin_words(text: str, right: str) -> None:
    assert with_right_bytes(text) == right


def test_a_euro_sign_without_text_next_to_it_is_not_the_letter_e() -> None:
    sign, word = run("e", 60)._replace(font="TeX-feymr10"), run("e", 90)
    page = PageContent(1, 595.0, 842.0, (sign, word), (), ())
    found = with_right_symbols(page, "e e", lambda: characters("e e"), fonts("e e", "", b""))
    assert [one.text for one in found.runs] == ["€", "e"]
    assert found.runs[0].words[0].text == "€"
