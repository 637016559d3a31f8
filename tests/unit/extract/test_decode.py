"""Bytes of any encoding become text, and no bytes whatever make it fail."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.extract.decode import clean, decode, encoding_of, symbols_of

patient = settings(deadline=None)  # machines that run tests are busy

WESTERN = "Le café était très élégant, «voilà» — dit-il. Die Straße führt über die Brücke nach München."
JAPANESE = "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。\n"
RUSSIAN = "Съешь ещё этих мягких французских булок, да выпей чаю. Привет, мир!"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (WESTERN, "utf-8"),
        (WESTERN, "cp1252"),
        (WESTERN, "utf-16-le"),
        (WESTERN, "utf-16-be"),
        (WESTERN, "utf-32-le"),
        (WESTERN, "utf-32-be"),
        (JAPANESE, "utf-16-le"),
        (JAPANESE, "utf-16-be"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        ("我是中国人,今天天气很好。我们一起去公园散步吧。", "gb18030"),
        ("我是中國人,今天天氣很好。我們一起去公園散步吧。", "big5"),
        ("안녕하세요. 오늘은 날씨가 아주 좋습니다. 우리 함께 공원에 갑시다.", "euc_kr"),
        ("Καλημέρα κόσμε. Σήμερα είναι πολύ ωραία μέρα.", "cp1253"),
        ("שלום עולם. מה שלומך היום? מזג האוויר יפה מאוד.", "cp1255"),
        ("مرحبا بالعالم. كيف حالك اليوم؟ الطقس جميل جدا.", "cp1256"),
        ("“Short”", "cp1252"),  # three bytes of evidence
        ("x" * 300_000 + " café", "cp1252"),  # the evidence comes late
    ],
)
def test_encodings_are_recognised(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_goes(mark: bytes, encoding: str) -> None:
    assert decode(mark + WESTERN.encode(encoding)) == WESTERN


def test_utf8_with_a_few_broken_bytes_stays_utf8() -> None:
    assert decode(WESTERN.encode() * 5 + b"\xff") == WESTERN * 5 + "\ufffd"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\rc\nd", "a\nb\nc\nd"),
        (b"a\x0bb\xc2\x85c", "a\nb\nc"),
        (b"page\fpage\ttab", "page\fpage\ttab"),
        (b"a\0b\x01\x7f", "ab"),
        (b"N\bNA\bAM\bME\bE", "NAME"),  # bold on a typewriter, and in manual pages
        (b"\x1b[1;31mred\x1b[0m", "red"),
        ("a\ufeffb".encode(), "ab"),
        (b"", ""),
    ],
)
def test_what_nobody_reads_is_gone(data: bytes, text: str) -> None:
    assert decode(data) == text


@patient
@given(st.binary() | st.text().map(lambda text: text.encode("utf-16-le", "surrogatepass")))
def test_any_bytes_become_text_that_can_be_stored(data: bytes) -> None:
    text = decode(data)
    text.encode()  # no lone surrogate
    assert not set(text) & {"\0", "\r", "\x1b", "\ufeff"}


@patient
@given(st.text())
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@patient
@given(st.binary())
def test_the_encoding_is_one_that_python_has(data: bytes) -> None:
    codecs.lookup(encoding_of(data))


@pytest.mark.parametrize(
    ("text", "font", "expected"),
    [
        ("\uf061\uf0b3", "Symbol", "\u03b1≥"),
        ("\uf0fc\uf0e0", "Wingdings", "✓→"),
        ("a \uf0b7 b \uf04a", "", "a • b ☺"),
        ("\uf061", "", "\u03b1"),
        ("\uf020x", "", " x"),
        ("plain", "Symbol", "plain"),
        ("\uf021", "Wingdings", "\ufffd"),
    ],
)
def test_characters_of_symbol_fonts_are_unicode(text: str, font: str, expected: str) -> None:
    assert symbols_of(text, font) == expected
