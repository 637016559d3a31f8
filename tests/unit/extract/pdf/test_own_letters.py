# ruff: noqa: RUF001 - the signs are what is tested
"""Letters that liteparse replaces or leaves out are put back as PDFium has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from octavo.extract.extracted import Box
from octavo.extract.pdf.content import PageContent, TextRun, Word, with_signs
from octavo.extract.pdf.letters import Characters, clean_letters, has_unread_letters, is_garbled
from octavo.extract.pdf.own_letters import (
    OwnLetters,
    may_have_halved_ligatures,
    with_own_letters,
    with_own_spaces,
    with_whole_ligatures,
)
from tests.support.pdf import Pdf, Words, paragraph, read_pdf

WIDE, HIGH = 5.0, 10.0


class Drawn(NamedTuple):
    """A line of text, with letters of equal width."""

    text: str
    left: float = 50.0
    top: float = 100.0


def run(text: str, left: float = 50.0, top: float = 100.0) -> TextRun:
    words: list[Word] = []
    start = 0
    for part in text.split(" "):
        end = start + len(part)
        words.append(Word(left + start * WIDE, top, left + end * WIDE, top + HIGH, part))
        start = end + 1
    box = Box(left, top, left + len(text) * WIDE, top + HIGH)
    return TextRun(box, text, 10.0, "Serif", False, False, 0.0, None, tuple(words))


def characters(lines: Sequence[Drawn]) -> Characters:
    places = [
        Box(line.left + number * WIDE, line.top, line.left + (number + 1) * WIDE, line.top + HIGH)
        for line in lines
        for number in range(len(line.text) + 1)
    ]
    return Characters("\n".join(line.text for line in lines), places.__getitem__)


def restored(runs: Sequence[TextRun], *lines: Drawn) -> OwnLetters:
    own = characters(lines)
    return with_own_letters(PageContent(1, 600, 800, tuple(runs), (), ()), own.text, lambda: own)


def texts(found: OwnLetters) -> list[str]:
    for one in found.page.runs:
        assert one.text.split() == [word.text for word in one.words]
    return [one.text for one in found.page.runs]


def test_a_sign_with_one_meaning_is_replaced_without_places() -> None:
    page = PageContent(1, 600, 800, (run("it's Ann's"),), (), ())

    def never() -> Characters:
        raise AssertionError

    assert texts(with_own_letters(page, "it’s Ann’s", never)) == ["it’s Ann’s"]
    assert texts(with_own_letters(page, "it's Ann's", never)) == ["it's Ann's"]


def test_dashes_and_quotes_are_those_at_their_place() -> None:
    lines = Drawn("well-known — 1997–2007"), Drawn("“yes” and 'no' ’tis", top=120)
    runs = [run("\"yes\" and 'no' 'tis", top=120), run("well-known - 1997-2007")]
    assert texts(restored(runs, *lines)) == ["“yes” and 'no' ’tis", "well-known — 1997–2007"]


def test_a_hyphen_at_the_end_of_a_line_does_not_become_a_dash() -> None:
    lines = Drawn("pages 1–2 of the para\x02"), Drawn("graphs", top=120)
    assert (
        texts(restored([run("pages 1-2 of the para-"), run("graphs", top=120)], *lines))[0] == "pages 1–2 of the para-"
    )


def test_a_word_that_is_divided_differently_gets_its_signs() -> None:
    found = restored([run("a-b"), run("“,", left=65)], Drawn("a–b“, c-d"), Drawn("e", top=300))
    assert texts(found)[0] == "a–b"


def test_a_letter_that_was_left_out_is_inserted_at_its_place() -> None:
    short = Word(75, 100, 90, 110, "⁄16")
    line = run("size 5⁄16 inch")
    words = (line.words[0], short, line.words[2])
    found = restored(
        [TextRun(line.box, "size ⁄16 inch", 10, "", False, False, 0, None, words)], Drawn("size 5⁄16 inch")
    )
    assert texts(found) == ["size 5⁄16 inch"]
    assert not found.misses_digits
    assert found.missing == 0


def test_the_raised_numerator_of_a_fraction_is_joined_to_it() -> None:
    line = run("up to 1⁄4 inch")
    words = (*line.words[:2], Word(84, 100, 95, 110, "⁄4"), line.words[3])
    own = characters([Drawn("up to 1 ⁄4 inch")])
    places = {6: Box(80, 100, 85, 105), 8: Box(84, 100, 88, 110), 9: Box(88, 100, 95, 110)}

    def box(index: int) -> Box | None:
        return places.get(index) or own.box(index - (index > 7))

    raised = Characters(own.text, box)
    page = PageContent(1, 600, 800, (TextRun(line.box, "up to ⁄4 inch", 10, "", False, False, 0, None, words),), (), ())
    found = with_own_letters(page, own.text, lambda: raised)
    assert texts(found) == ["up to 1⁄4 inch"]


def test_a_page_number_that_was_left_out_becomes_a_run() -> None:
    found = restored([run("some text")], Drawn("some text"), Drawn("32", left=290, top=760))
    assert texts(found) == ["some text", "32"]
    assert found.page.runs[1].box == Box(290, 760, 300, 770)
    assert not found.misses_digits


def test_a_page_number_does_not_join_the_divided_word_before_it() -> None:
    text, number = "in a comput\ufffe", "10"
    places = [Box(50 + at * WIDE, 100, 55 + at * WIDE, 110) for at in range(len(text))]
    places += [Box(290 + at * WIDE, 760, 295 + at * WIDE, 770) for at in range(len(number))]
    own = Characters(text + number, places.__getitem__)  # PDFium writes no line end after a hyphen
    found = with_own_letters(PageContent(1, 600, 800, (run("in a comput-"),), (), ()), own.text, lambda: own)
    assert texts(found) == ["in a comput-", "10"]


def test_a_digit_without_a_clear_place_makes_the_page_unsure() -> None:
    found = restored([run("abcdef ghi")], Drawn("abcdef ghi"), Drawn("7", left=60))
    assert texts(found) == ["abcdef ghi"]
    assert found.misses_digits
    assert found.missing == 1


def test_a_second_copy_at_the_same_place_is_not_lost() -> None:
    found = restored([run("total 128")], Drawn("total 128"), Drawn("total 128", left=51, top=101))
    assert texts(found) == ["total 128"]
    assert not found.misses_digits


def test_letters_outside_the_page_are_not_added() -> None:
    assert texts(restored([run("text")], Drawn("text"), Drawn("99", left=-80))) == ["text"]


def test_the_shadow_of_letters_is_removed_and_real_double_letters_stay() -> None:
    text = "gguueesstt coffee"
    lefts = [50 + WIDE * (number // 2) + 0.5 * (number % 2) for number in range(10)]
    lefts += [80 + WIDE * number for number in range(7)]
    boxes = [Box(left, 100, left + WIDE, 110) for left in lefts]
    own = Characters(text, boxes.__getitem__)
    words = Word(50, 100, 76, 110, "gguueesstt"), Word(85, 100, 115, 110, "coffee")
    shadow = TextRun(Box(50, 100, 115, 110), text, 10.0, "", False, False, 0.0, None, words)
    assert texts(with_own_letters(PageContent(1, 600, 800, (shadow,), (), ()), text, lambda: own)) == ["guest coffee"]


def test_many_signs_take_little_time() -> None:
    lines = [Drawn("–-" * 40, top=10.0 * number) for number in range(60)]
    found = restored([run("--" * 40, top=line.top) for line in lines], *lines)
    assert len(found.page.runs) == 60


@pytest.mark.parametrize(
    ("text", "garbled"),
    [
        ("차세대 정보보안 기술의 발전 방향과 미래 유망 보안기술을 도출하고 대응한다", False),
        ("묾푷 차세대 컪비스 훟심 칺몮 대픟 기술 블록체인에컪픦 팢 솒빪 짝 쭖쩣 먾래 헏방지 캏맞지", True),
        ("人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。", False),
        ("すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。", False),
        ("㐀㐁㐂㐃㐄㐅㐆㐇㐈㐉㐊㐋㐌㐍㐎㐏㐐㐑㐒㐓㐔㐕㐖㐗", True),
        ("ab\u0378cd\u0379ef\u0380gh\u0381ij\u0382kl\u038bmn\u038d opq", True),
        ("सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।", False),
        ("กखคอ ᄀกabд हिдกx " * 30, True),
    ],
)
def test_implausible_letters_of_other_scripts_are_garbled(text: str, *, garbled: bool) -> None:
    assert is_garbled(text) is garbled


def test_a_pdf_keeps_its_dashes_and_quotes(tmp_path: Path) -> None:
    lines = ["He said: “It’s a well-known — or ‘known’ — fact.”", "The years 1997–2007 were the first of them all."]
    path = tmp_path / "file"
    path.write_bytes(
        Pdf([[*paragraph(lines, 200), Words("A line of its own, far below the others.", top=500)]]).write()
    )
    assert " ".join(lines) in read_pdf(path).markdown


def test_full_stops_that_a_font_loses_are_put_back() -> None:
    wanted = [f"Barge {number} leaves the quay. It is heavy." for number in range(8)]
    own = [Drawn(text, top=100.0 + 14 * row) for row, text in enumerate(wanted)]
    runs = [run(text, top=100.0 + 14 * row) for row, text in enumerate(wanted)]
    without = [one._replace(text=one.text.replace(".", ""), words=tuple(map(_without_stop, one.words))) for one in runs]
    assert texts(restored(without, *own)) == wanted


def _without_stop(word: Word) -> Word:
    return word._replace(text=word.text.replace(".", ""))


@pytest.mark.parametrize(
    ("drawn", "read"), [("na\u00a8\u0131ve", "naïve"), ("M\u00a8uller", "Müller"), ("caf\u00b4e", "café")]
)
def test_accents_that_are_drawn_before_their_letters_join_them(drawn: str, read: str) -> None:
    assert clean_letters(drawn) == read


def test_a_font_with_more_marks_than_letters_is_garbled() -> None:
    assert is_garbled('!"#$!"%&\'!()$ (($<=)!"#$! 8(9%!:8; ' * 5)
    assert not is_garbled("Total ........................ 12.50\n" * 10)


def test_letters_of_one_glyph_are_put_back_as_other_lost_letters() -> None:
    line = Drawn("Efficient arithmetic")
    own = characters([line])
    shared = Box(line.left + WIDE, line.top, line.left + 2.5 * WIDE, line.top + HIGH)

    def box(index: int) -> Box | None:
        return shared if index in {1, 2, 3} else own.box(index)

    words = (
        Word(line.left + WIDE, line.top, line.left + 9 * WIDE, line.top + HIGH, "ficient"),
        Word(line.left + 10 * WIDE, line.top, line.left + 20 * WIDE, line.top + HIGH, "arithmetic"),
    )
    given = run("ficient arithmetic")._replace(words=words)
    found = with_own_letters(PageContent(1, 600, 800, (given,), (), ()), own.text, lambda: Characters(own.text, box))
    assert texts(found) == ["Efficient arithmetic"]
    assert not found.missing


@pytest.mark.parametrize(
    ("font", "drawn", "text"),
    [
        ("WPTypographicSymbols", "!", "●"),
        ("ABCDEF+Wingdings-Regular", "\xa8 Yes", "☐ Yes"),
        ("Wingdings", "\uf0fe Yes", "☑ Yes"),
        ("Wingdings 2", "T No", "☒ No"),
        ("ZapfDingbats", "4", "✔"),
        ("ZapfDingbats", "✔ 12", "✔ 12"),
        ("ABCDEF+Wingdings", "\x84 They work in parallel", "• They work in parallel"),
        ("SymbolMT", "a \uf02b \uf062", "a + β"),
        ("MaterialIcons-Regular", "! Text", "Text"),
        ("Helvetica", "n 12", "n 12"),
    ],
)
def test_signs_of_symbol_fonts_are_read_as_what_they_show(font: str, drawn: str, text: str) -> None:
    found = with_signs(run(drawn)._replace(font=font))
    assert found is not None
    assert found.text == text
    assert [word.text for word in found.words] == text.split()


def test_icons_alone_are_not_text() -> None:
    assert with_signs(run("Ķ<")._replace(font="ABCDEF+OCHAIconsBounded")) is None


@pytest.mark.parametrize(
    ("own", "found", "unread"),
    [
        ("exposure in \x01g/kg of", "exposure in g/kg of", True),
        ("Con\x1frmed cases", "Confirmed cases", False),
        ("two\x03words", "two words", False),
        ("Allg‰u", "Allg‰u", True),
        ("5 ‰ of them", "5 ‰ of them", False),
        ("(IA) pour", "\ufffdIA\ufffd pour", True),
        ("\x84 They work", "They work", True),
        ("a divi\x02ded word", "a divided word", False),
    ],
)
def test_characters_without_a_meaning_are_noticed(own: str, found: str, *, unread: bool) -> None:
    assert has_unread_letters(own, found, signs=0) is unread


def test_rare_letters_are_garbled() -> None:
    assert is_garbled("ɍɝɥɨɜɚɹ ɲɥɢɮɨɜɚɥɶɧɚɹ ɦɚɲɢɧɚ")
    assert not is_garbled("the word ʃɛp is read as ship, and kæt as cat")


def test_exponents_and_numbers_of_notes_stay_raised(tmp_path: Path) -> None:
    page = [
        Words("The lime weighs 10", 72, 100, 12),
        Words("5", 176, 95.5, 7),
        Words("grams, says the mason", 186, 100, 12),
        Words("The second line has 105 grams in 3", 72, 120, 12),
        Words("n", 258, 115.5, 7),
        Words("parts", 268, 120, 12),
    ]
    path = tmp_path / "powers.pdf"
    path.write_bytes(Pdf([page]).write())
    markdown = read_pdf(path).markdown
    assert "10⁵ grams" in markdown
    assert "105 grams in 3ⁿ parts" in markdown


def test_parts_of_a_word_of_pdfium_are_joined() -> None:
    page = PageContent(1, 600, 800, (run("T he c us to me r pays 04 .03 in to it"),), (), ())
    found = with_own_spaces(page, "The customer pays 04.03 into it and in to")
    assert texts(OwnLetters(found)) == ["The customer pays 04 .03 in to it"]


def test_wide_letters_are_ligatures_that_lost_their_first_letter() -> None:
    line = "a signiicant inal sample in this inluence, which it will still fill in, if of half he had an efort"
    places = [line.index("ica"), line.index("inal"), line.index("luence"), line.index("fort"), line.index("he had")]
    own = characters([Drawn(line)])

    def box(index: int) -> Box | None:
        place = own.box(index)
        wide = 2.0 if index in places else 1.0
        return place._replace(right=place.left + wide * WIDE) if place else None

    page = PageContent(1, 600, 800, (run(line),), (), ())
    found = with_whole_ligatures(page, Characters(line, box), lambda _index: b"Serif")
    assert texts(OwnLetters(found)) == [
        "a significant final sample in this influence, which it will still fill in, if of half The had an effort"
    ]
    assert may_have_halved_ligatures("in this inal sample it is signiicant " * 20)
    assert not may_have_halved_ligatures("in this final sample it is significant " * 20)


def spaced(*parts: str, gap: float) -> TextRun:
    """Words of one line with equal gaps between them."""
    words: list[Word] = []
    left = 50.0
    for part in parts:
        words.append(Word(left, 100.0, left + len(part) * WIDE, 110.0, part))
        left += len(part) * WIDE + gap
    return run(" ".join(parts))._replace(words=tuple(words))


@pytest.mark.parametrize(
    ("parts", "gap", "own", "text"),
    [
        (("Days", "in", "port"), 2.0, "Daysin port in", "Days in port"),
        (("exam", "ple"), 0.5, "example", "example"),
        (("colum", "n"), 0.0, "c olumn1", "column"),
    ],
)
def test_words_are_joined_only_where_the_gap_is_smaller_than_a_space(
    parts: tuple[str, ...], gap: float, own: str, text: str
) -> None:
    content = PageContent(1, 600, 800, (spaced(*parts, gap=gap),), (), ())
    assert [one.text for one in with_own_spaces(content, own).runs] == [text]
