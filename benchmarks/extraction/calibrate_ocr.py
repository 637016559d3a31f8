"""How the confidence of OCR relates to what is right, on drawn pages whose text is known.

`python -m benchmarks.extraction.calibrate_ocr FONTS TEXTS OUT`: FONTS is a folder with fonts, TEXTS one with a text
for each language (`eng.txt`). Each language is drawn with its fonts in several conditions, and pages without text are
drawn too. OUT gets one JSON line for each page: the share of words found, those that are right, and the confidence of
the page and of each line.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from benchmarks.extraction.ocr import share_of_words, words_of
from octavo.extract.ocr import page_recognition
from octavo.extract.ocr.order import Line
from octavo.extract.ocr.scripts import certainty

FONTS = {
    "eng": ("LiberationSerif-Regular.ttf", "LiberationSans-Regular.ttf"),
    "deu": ("LiberationSans-Regular.ttf", "FreeSerif.ttf"),
    "rus": ("LiberationSerif-Regular.ttf", "NotoSans-Regular.ttf"),
    "ell": ("NotoSerif-Regular.ttf", "LiberationSans-Regular.ttf"),
    "ara": ("NotoNaskhArabic-Regular.ttf", "NotoSansArabic-Regular.ttf"),
    "heb": ("NotoSerifHebrew-Regular.ttf", "NotoSansHebrew-Regular.ttf"),
    "hin": ("NotoSansDevanagari-Regular.ttf", "NotoSerifDevanagari-Regular.ttf"),
    "tha": ("NotoSansThai-Regular.ttf", "NotoSerifThai-Regular.ttf"),
    "cmn": ("wqy-microhei.ttc",),
    "jpn": ("ipam.ttf",),
    "kor": ("NanumMyeongjo.ttf", "NanumGothic.ttf"),
}
HANDWRITING = ("Breip.ttf", "femkeklaver.ttf")
UNKNOWN = ("NotoSansEgyptianHieroglyphs-Regular.ttf", "NotoSansCuneiform-Regular.ttf", "NotoSansOgham-Regular.ttf")
SIZE, FONT_SIZE, LINES = (1400, 480), 34, 6
Condition = Callable[[Image.Image, random.Random], Image.Image]


class DrawnPage(NamedTuple):
    kind: str
    condition: str
    picture: Image.Image
    text: str


def _noise(strength: int) -> Condition:
    def apply(page: Image.Image, _random: random.Random) -> Image.Image:
        grain = Image.effect_noise(page.size, strength)
        return ImageChops.add(page, grain, 1, -128)

    return apply


def _turn(degrees: float) -> Condition:
    return lambda page, _random: page.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=255, expand=True)


def _blur(radius: float) -> Condition:
    return lambda page, _random: page.filter(ImageFilter.GaussianBlur(radius))


def _faint(page: Image.Image, _random: random.Random) -> Image.Image:
    return page.point([190 + level // 5 for level in range(256)])


def _coarse(page: Image.Image, _random: random.Random) -> Image.Image:
    small = page.resize((page.width * 2 // 5, page.height * 2 // 5), Image.Resampling.BOX)
    return small.resize(page.size, Image.Resampling.BICUBIC)


def _compressed(page: Image.Image, _random: random.Random) -> Image.Image:
    memory = io.BytesIO()
    page.save(memory, "JPEG", quality=8)
    return Image.open(memory).convert("L")


CONDITIONS: dict[str, Condition] = {
    "clean": lambda page, _random: page,
    "blur 1.5": _blur(1.5),
    "blur 3": _blur(3),
    "blur 4.5": _blur(4.5),
    "grain 30": _noise(30),
    "grain 80": _noise(80),
    "turned 2": _turn(2),
    "turned 5": _turn(-5),
    "turned 10": _turn(10),
    "turned 20": _turn(-20),
    "faint": _faint,
    "coarse": _coarse,
    "compressed": _compressed,
}


def draw(text: str, font: ImageFont.FreeTypeFont) -> tuple[Image.Image, str]:
    """Draw as many words as fit. Returns the page and the words that are on it."""
    page = Image.new("L", SIZE, 255)
    pen = ImageDraw.Draw(page)
    is_spaced = " " in text
    waiting = text.split() if is_spaced else list("".join(text.split()))
    gap = " " if is_spaced else ""
    written: list[str] = []
    for row in range(LINES):
        line = ""
        while waiting and pen.textlength(f"{line}{gap}{waiting[0]}", font=font) < SIZE[0] - 160:
            line = f"{line}{gap}{waiting.pop(0)}" if line else waiting.pop(0)
        pen.text((80, 60 + row * round(1.7 * FONT_SIZE)), line, fill=0, font=font)
        written.append(line)
    return page, "\n".join(written)


def pages(fonts: Path, texts: Path) -> Iterator[DrawnPage]:
    found = {path.name: path for path in fonts.rglob("*") if path.suffix in {".ttf", ".ttc", ".otf"}}
    dice = random.Random(1)
    for language, names in FONTS.items():
        text = (texts / f"{language}.txt").read_text()
        for number, (condition, apply) in enumerate(CONDITIONS.items()):
            font = ImageFont.truetype(found[names[number % len(names)]], FONT_SIZE)
            page, written = draw(text[200 * number :], font)
            yield DrawnPage(language, condition, apply(page, dice), written)
    text = (texts / "eng.txt").read_text()
    for name in HANDWRITING:
        page, written = draw(text, ImageFont.truetype(found[name], FONT_SIZE + 10))
        yield DrawnPage("handwriting font", name, page, written)
    for name in UNKNOWN:
        if name in found:
            yield DrawnPage("unknown script", name, _glyphs(ImageFont.truetype(found[name], FONT_SIZE), dice), "")
    for number in range(4):
        for kind, make in NEGATIVES.items():
            yield DrawnPage("no text", f"{kind} {number}", make(random.Random(number)), "")


def _glyphs(font: ImageFont.FreeTypeFont, dice: random.Random) -> Image.Image:
    starts = {"Egyptian": 0x13000, "Cuneiform": 0x12000, "Ogham": 0x1681}
    start = next(value for key, value in starts.items() if key.lower() in str(font.getname()).lower())
    letters = [chr(start + dice.randrange(26 if start < 0x2000 else 300)) for _ in range(2000)]
    return draw(" ".join("".join(letters[at : at + 6]) for at in range(0, 2000, 6)), font)[0]


# Pages without text -------------------------------------------------------------------------------------------------


def _scribbles(dice: random.Random) -> Image.Image:
    """Rows of loops, as somebody writes who cannot be read."""
    page = Image.new("L", SIZE, 255)
    pen = ImageDraw.Draw(page)
    for row in range(90, SIZE[1] - 60, 80):
        phase, points = dice.random() * 6, list[tuple[float, float]]()
        for step in range(600):
            angle = step / 5 + phase
            height = 14 + 12 * math.sin(step / 37 + dice.random() / 3)
            points.append((90 + 2 * step + 9 * math.sin(angle), row + height * math.cos(angle) + dice.random() * 3))
            if dice.random() < 0.03:
                pen.line(points, fill=20, width=3)
                points = []
        pen.line(points or [(0, 0), (1, 1)], fill=20, width=3)
    return page


def _shapes(dice: random.Random) -> Image.Image:
    page = Image.new("L", SIZE, 255)
    pen = ImageDraw.Draw(page)
    for _ in range(60):
        left, top = dice.randrange(SIZE[0]), dice.randrange(SIZE[1])
        box = (left, top, left + dice.randrange(10, 200), top + dice.randrange(10, 200))
        draw_one = dice.choice((pen.rectangle, pen.ellipse))
        draw_one(box, outline=dice.randrange(150), width=dice.randrange(1, 6))
    return page


def _photo(dice: random.Random) -> Image.Image:
    small = Image.effect_noise((24, 18), 90 + dice.randrange(60))
    return small.resize(SIZE, Image.Resampling.BICUBIC)


def _random_pixels(dice: random.Random) -> Image.Image:
    return Image.effect_noise(SIZE, 40 + 30 * dice.randrange(4))


def _hatching(dice: random.Random) -> Image.Image:
    page = Image.new("L", SIZE, 255)
    pen = ImageDraw.Draw(page)
    slope, step = dice.uniform(-1, 1), dice.randrange(8, 30)
    for at in range(-1500, 1500, step):
        pen.line([(at, 0), (at + slope * SIZE[1], SIZE[1])], fill=dice.randrange(120), width=2)
    return page


NEGATIVES = {
    "scribbles": _scribbles,
    "shapes": _shapes,
    "photo": _photo,
    "random pixels": _random_pixels,
    "hatching": _hatching,
}


# Judging ------------------------------------------------------------------------------------------------------------


def judge(page: DrawnPage) -> dict[str, object]:
    started = time.process_time()
    read: list[Line] = []
    keep = page_recognition.readable_lines

    def watched(lines: Sequence[Line]) -> list[Line]:
        read[:] = lines
        return keep(lines)

    page_recognition.readable_lines = watched
    try:
        found = page_recognition.recognise_page(page.picture, 1, "1")
    finally:
        page_recognition.readable_lines = keep
    wanted, words = words_of(page.text), words_of("\n".join(block.text for block in found.blocks))
    return {
        "kind": page.kind,
        "condition": page.condition,
        "found": share_of_words(wanted, words),
        "right": share_of_words(words, wanted),
        "words": len(words),
        "certainty": certainty([line for line in read if line.score >= page_recognition.LEAST_LINE]),
        "unsure": found.unsure,
        "seconds": time.process_time() - started,
        "lines": [(line.score, _likeness(line.text, page.text), len(line.text)) for line in read],
    }


def _likeness(line: str, text: str) -> float:
    """How much of a line is in the text: the share of its letters that match in order."""
    letters, best = "".join(words_of(line)), 0.0
    for row in text.split("\n"):
        wanted = "".join(words_of(row))
        matches = SequenceMatcher(None, letters, wanted, autojunk=False).get_matching_blocks()
        best = max(best, sum(one.size for one in matches) / max(len(letters), 1))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("fonts", "texts", "out"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    with given.out.open("w") as out:
        for page in pages(given.fonts, given.texts):
            result = judge(page)
            out.write(json.dumps(result, ensure_ascii=False) + "\n")
            out.flush()
            shown = {name: result[name] for name in ("found", "right", "certainty", "seconds")}
            sys.stderr.write(f"{page.kind:18} {page.condition:18} {shown} {result['unsure'] or ''}\n")


if __name__ == "__main__":
    main()
