"""A page is read in its own script, in any orientation, and what is not text is never called text."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFilter

from octavo.core.texts import FEW_CHARACTERS, ONE_CHARACTER, SCRIPTS
from octavo.extract.extracted import Box
from octavo.extract.ocr import scripts
from octavo.extract.ocr.grey_sheets import grain_of
from octavo.extract.ocr.order import Line
from octavo.extract.ocr.page_recognition import MAY_BE_WRONG, NO_TEXT, doubt_about, readable_lines, recognise_page
from octavo.extract.ocr.scripts import certainty
from octavo.extract.ocr.tesseract import DATA, ORIENTATION, Reader
from octavo.extract.pdf.page_batches import PageText

# Made from articles of the Universal Declaration of Human Rights with Noto fonts.
PAGES = Path(__file__).with_name("pages")
# One of each kind: letters with case, right to left, joined signs, and characters without spaces. The long form reads a
# whole page in every script; several of their models take seconds to load.
SHORT = {"arabic", "cyrillic", "devanagari", "japanese", "latin"}
# Each character of these scripts counts as a word.
SINGLE = re.compile(f"[{ONE_CHARACTER}{FEW_CHARACTERS}]|[^\\s{ONE_CHARACTER}{FEW_CHARACTERS}]+")


def read(picture: Image.Image, language: str = "auto") -> PageText:
    return recognise_page(picture, 1, "1", language=language)


def text_of(page: PageText) -> str:
    return "\n".join(block.text for block in page.blocks)


def recall(found: str, truth: str) -> float:
    words, expected = (Counter(SINGLE.findall(text)) for text in (found, truth))
    return (words & expected).total() / expected.total()


def picture(script: str) -> Image.Image:
    return Image.open(PAGES / f"{script}.png").convert("L")


@pytest.mark.usefixtures("models_stay_open")
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, marks=[] if script in SHORT else [pytest.mark.long])
        for script in sorted(path.stem for path in PAGES.glob("*.png"))
    ],
)
def test_the_script_of_a_page_is_found_and_its_words_are_read(script: str) -> None:
    page = read(picture(script))
    # Joined letters of Gujarati are missed more often than those of other scripts.
    least = 0.8 if script == "gujarati" else 0.9
    assert recall(text_of(page), (PAGES / f"{script}.txt").read_text()) >= least
    # Some are read as signs in an impossible order, which is reported.
    assert page.unsure == (MAY_BE_WRONG if script == "gujarati" else None)


@pytest.mark.parametrize(("turns", "script"), [(1, "latin"), (2, "arabic"), (3, "cyrillic")])
def test_a_turned_page_is_read_as_if_it_were_upright(turns: int, script: str) -> None:
    page = read(picture(script).rotate(90 * turns, expand=True))
    assert recall(text_of(page), (PAGES / f"{script}.txt").read_text()) >= 0.9


def test_a_model_that_only_tries_a_few_lines_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[str] = []
    free = Reader.close

    def close(reader: Reader) -> None:
        freed.append(reader.script)
        free(reader)

    monkeypatch.setattr(Reader, "close", close)
    monkeypatch.setattr(scripts, "SCRIPTS", ("Greek", "Latin"))
    reading = scripts.read_script(picture("latin"), ("Greek",))
    assert reading.script == "Latin"
    assert freed == ["Greek", "Latin"]


@pytest.mark.usefixtures("models_stay_open")
@pytest.mark.parametrize(
    ("script", "language", "other", "words"),
    [("latin", "de", "ru", "Whereas the peoples of"), ("cyrillic", "ru", "de", "принимая во внимание")],
)
def test_the_language_of_the_settings_decides_the_script(script: str, language: str, other: str, words: str) -> None:
    """A page in another script is not read, instead of being read in a script that nobody chose."""
    beginning = picture(script).crop((0, 0, 700, 100))
    assert words in text_of(read(beginning, language))
    page = read(beginning, other)
    assert (page.blocks, page.unsure) == ((), NO_TEXT)


@pytest.mark.usefixtures("models_stay_open")
@pytest.mark.parametrize(("page", "script"), [("vietnamese", "Vietnamese"), ("latin", "Latin")])
def test_vietnamese_is_not_read_as_latin_with_other_accents(
    monkeypatch: pytest.MonkeyPatch, page: str, script: str
) -> None:
    """Large print is read as Latin with high confidence; here the limit is lower, because the page has small print."""
    monkeypatch.setattr(scripts, "CERTAIN", 0.5)
    assert scripts.read_script(picture(page).crop((0, 0, 700, 100)), ("Latin",)).script == script


def test_latin_letters_are_no_sign_of_another_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most models also know Latin letters, and read a short word with higher confidence than the model of Latin."""
    scores = {"Latin": ("tiéng", 0.58), "Vietnamese": ("tiếng", 0.66), "Armenian": ("tiéng", 0.93)}
    monkeypatch.setattr(scripts, "SCRIPTS", tuple(scores))

    def fit(script: str, _samples: list[Image.Image]) -> scripts.Reading:
        return scripts.Reading(script, [line(*scores[script])])

    monkeypatch.setattr(scripts, "fit", fit)
    assert scripts.best_script(Image.new("L", (9, 9)), [], "Latin") == "Vietnamese"
    scores["Armenian"] = ("\u0562\u0561\u057c", 0.93)
    assert scripts.best_script(Image.new("L", (9, 9)), [], "Latin") == "Armenian"


def test_the_recorded_hashes_are_those_of_the_models() -> None:
    names = sorted(f"{script}.traineddata.xz" for script in (*SCRIPTS, ORIENTATION))
    sums = [f"{hashlib.sha256((DATA / name).read_bytes()).hexdigest()}  {name}" for name in names]
    assert sorted((DATA / "SHA256SUMS").read_text().splitlines()) == sorted(sums)
    assert sorted(path.name for path in DATA.glob("*.xz")) == names


@pytest.mark.usefixtures("models_stay_open")
@pytest.mark.parametrize("size", [(160, 120), pytest.param((500, 400), marks=pytest.mark.long)], ids=str)
def test_noise_is_not_text(size: tuple[int, int]) -> None:
    """The long form is a larger picture, in which more of the noise could look like letters."""
    noise = Image.frombytes("L", size, random.Random(5).randbytes(size[0] * size[1]))
    page = read(noise)
    assert (page.blocks, page.pictures, page.unsure) == ((), True, NO_TEXT)


def test_scribbles_are_not_called_sure_text() -> None:
    sheet = Image.new("L", (900, 500), 255)
    pen, chance = ImageDraw.Draw(sheet), random.Random(2)
    for row in range(80, 460, 60):
        points = [(x, row + chance.randint(-18, 18)) for x in range(60, 840, 14)]
        pen.line(points, fill=40, width=4, joint="curve")
    assert read(sheet).unsure in {NO_TEXT, MAY_BE_WRONG}


def test_grain_does_not_hide_the_text() -> None:
    page = picture("latin")
    grainy = Image.blend(page.filter(ImageFilter.GaussianBlur(0.8)), Image.effect_noise(page.size, 120), 0.3)
    assert grain_of(page) == 0
    assert grain_of(grainy) > 10
    assert recall(text_of(read(grainy)), (PAGES / "latin.txt").read_text()) >= 0.9


def line(text: str, score: float) -> Line:
    return Line(text, Box(0, 0, 100, 20), score)


def test_scattered_letters_are_not_read_with_confidence() -> None:
    assert certainty([line("The gauge was read twice a day.", 0.9)]) == pytest.approx(0.9)
    assert certainty([line("a b c d e f g h i k l m n o", 0.9)]) == pytest.approx(0.45)


def test_lines_of_low_confidence_are_left_out_and_make_the_page_unsure() -> None:
    good, bad = line("The gauge was read twice.", 0.93), line("~ }{ ii|", 0.2)
    assert readable_lines([good, bad]) == [good]
    assert doubt_about([good, bad], [good]) is None
    assert doubt_about([good, bad, bad, bad], [good]) == MAY_BE_WRONG
    shaky = line("Handwritten perhaps", 0.55)
    assert doubt_about([shaky], readable_lines([shaky])) == MAY_BE_WRONG
    assert readable_lines([bad]) == []
    assert doubt_about([bad], []) == NO_TEXT
