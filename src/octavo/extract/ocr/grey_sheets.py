"""Prepares pictures for OCR: converts them to grey, removes grain and scales them to a suitable size."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from PIL import Image, ImageChops, ImageFilter

from octavo.extract.extracted import Box

# More pixels than this take more time and memory, and do not improve the result for print of normal size. Small
# pictures are enlarged.
MOST_PIXELS = 9_000_000
SMALL_SIDE = 1000
MOST_ENLARGED = 3.0
# Tiny pictures are enlarged more, until their shorter side has this many pixels.
TINY_SIDE, MOST_ENLARGED_TINY = 120, 6.0
# The grain of a picture is the median difference from its blurred copy, in grey levels. Clean scans have 0 or 1.
# From the first value on, grain is smoothed with the first radius; from the second value on, with the second radius.
GRAIN, GRAIN_RADIUS = 3, 1.0
HEAVY_GRAIN, HEAVY_RADIUS = 20, 1.8


class GreySheet(NamedTuple):
    """A picture that has been prepared for OCR.

    `scale` is the factor by which the original was enlarged or reduced. In `picture`, the grain is smoothed out.
    `sharp` is the picture before smoothing, and shows the shapes of letters better. If the grain is heavy, `sharp` is
    the smoothed picture, too.
    """

    picture: Image.Image
    scale: float
    sharp: Image.Image


def grey_sheet(picture: Image.Image) -> GreySheet:
    """Prepare a picture for OCR.

    Without this step, Tesseract recognises grain as thousands of dots, and misses the text or takes minutes.
    """
    sharp = _on_white(picture)
    scale = reading_scale(*sharp.size)
    if scale != 1.0:
        size = max(1, round(sharp.width * scale)), max(1, round(sharp.height * scale))
        sharp = sharp.resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0)
    grain = grain_of(sharp)
    if grain < GRAIN:
        return GreySheet(sharp, scale, sharp)
    smooth = sharp.filter(ImageFilter.GaussianBlur(HEAVY_RADIUS if grain >= HEAVY_GRAIN else GRAIN_RADIUS))
    return GreySheet(smooth, scale, smooth if grain >= HEAVY_GRAIN else sharp)


def _on_white(picture: Image.Image) -> Image.Image:
    if not picture.has_transparency_data:
        return picture.convert("L")
    layers = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layers.size, "white"), layers).convert("L")


def grain_of(grey: Image.Image) -> int:
    """Measure how grainy a picture is.

    Returns the median difference from a blurred copy, in grey levels. Letters do not affect the median, because they
    cover less than half the page.
    """
    counts = ImageChops.difference(grey, grey.filter(ImageFilter.GaussianBlur(1))).histogram()
    half, level = sum(counts) / 2, 0
    while (half := half - counts[level]) > 0:
        level += 1
    return level


def reading_scale(width: int, height: int) -> float:
    """Return the factor by which a picture is scaled before OCR."""
    if width * height > MOST_PIXELS:
        return (MOST_PIXELS / (width * height)) ** 0.5
    most = min(MOST_ENLARGED_TINY, max(MOST_ENLARGED, TINY_SIDE / min(width, height)))
    return min(most, max(1.0, SMALL_SIDE / max(width, height)))


_SIDE = 500
_MARGIN = 0.03  # scans often show the edge of the paper
_GROUND = 8
# The contrast between a stroke and the paper, in grey levels, and the number of such points that a page number has.
_CONTRAST = 24
_LEAST_POINTS = 12


def has_ink(picture: Image.Image) -> bool:
    """Whether a page shows anything, such as text or a drawing.

    This check is much faster than OCR. Faint print counts as ink. Paper grain and the shadows on empty paper do not.
    """
    small = picture.convert("L")
    small.thumbnail((_SIDE, _SIDE), reducing_gap=2.0)
    width, height = small.size
    across, down = round(width * _MARGIN), round(height * _MARGIN)
    small = small.crop((across, down, width - across, height - down))
    ground = small.filter(ImageFilter.BoxBlur(_GROUND))
    return sum(ImageChops.difference(small, ground).histogram()[_CONTRAST:]) >= _LEAST_POINTS


# Tilt is measured on a copy with this longest side, first in coarse steps up to this angle, then in fine steps. A page
# counts as tilted only if rotating it makes its rows this much clearer.
_TILT_SIDE = 700
_MOST_TILT, _COARSE_STEP, _FINE_STEP = 24.0, 1.5, 0.25
_LEAST_TILT, _CLEARER = 0.75, 1.25
_LEAST_SIDE = 100  # smaller pictures have too few rows of pixels


def tilt_of(picture: Image.Image) -> float:
    """Return the angle, in degrees, by which to rotate a picture to the left so that its rows of text are level.

    Returns 0 if the rows are already level, or if the angle is unclear. The chosen angle is the one at which the amount
    of ink differs most between neighbouring rows of pixels. If the page is on its side, columns of pixels are compared
    instead.
    """
    if min(picture.size) < _LEAST_SIDE:
        return 0.0
    small = _on_white(picture)
    small.thumbnail((_TILT_SIDE, _TILT_SIDE), Image.Resampling.BOX, reducing_gap=2.0)
    ground = small.filter(ImageFilter.BoxBlur(_GROUND))
    ink = ImageChops.difference(small, ground).point([255 if level >= _CONTRAST else 0 for level in range(256)])
    coarse = int(_MOST_TILT / _COARSE_STEP)
    clear = {step * _COARSE_STEP: _clearness(ink, step * _COARSE_STEP) for step in range(-coarse, coarse + 1)}
    best = max(clear, key=lambda tilt: clear[tilt])
    near = int(_COARSE_STEP / _FINE_STEP)
    clear |= {one: _clearness(ink, one) for step in range(-near, near + 1) if (one := best + step * _FINE_STEP)}
    best = max(clear, key=lambda tilt: clear[tilt])
    return best if abs(best) >= _LEAST_TILT and clear[best] > _CLEARER * clear[0.0] else 0.0


def _clearness(ink: Image.Image, tilt: float) -> float:
    turned = ink.rotate(tilt, Image.Resampling.BILINEAR, expand=True) if tilt else ink
    rows = turned.convert("F").resize((1, turned.height), Image.Resampling.BOX, reducing_gap=None)
    columns = turned.convert("F").resize((turned.width, 1), Image.Resampling.BOX, reducing_gap=None)
    return max(_differences(rows) * turned.width**2, _differences(columns) * turned.height**2)


def _differences(sums: Image.Image) -> float:
    values = array("f", sums.tobytes())
    return sum((after - before) ** 2 for before, after in pairwise(values))


def straightened(picture: Image.Image, tilt: float) -> Image.Image:
    """Rotate a picture to the left by `tilt` degrees. The new corners are white."""
    plain = picture if picture.mode in {"L", "RGB"} else picture.convert("RGB")
    white = 255 if plain.mode == "L" else (255, 255, 255)
    return plain.rotate(tilt, Image.Resampling.BICUBIC, expand=True, fillcolor=white)


def before_straightening(box: Box, tilt: float, size: tuple[int, int], turned: tuple[int, int]) -> Box:
    """Convert a box on a rotated picture to a box on the original.

    `size` is the size of the original, and `turned` the size of the rotated picture.
    """
    angle = math.radians(tilt)
    corners = [(x - turned[0] / 2, y - turned[1] / 2) for x in (box.left, box.right) for y in (box.top, box.bottom)]
    across = [x * math.cos(angle) - y * math.sin(angle) + size[0] / 2 for x, y in corners]
    down = [x * math.sin(angle) + y * math.cos(angle) + size[1] / 2 for x, y in corners]
    left, right = (min(max(side, 0.0), float(size[0])) for side in (min(across), max(across)))
    top, bottom = (min(max(side, 0.0), float(size[1])) for side in (min(down), max(down)))
    return Box(left, top, right, bottom)


_INK_SIDE = 1600
# The background of a point is a median over this many pixels, on a copy with this longest side.
_GROUND_SIDE, _GROUND_POINTS = 240, 15
# How much a stroke must differ from its background, and a coloured background from white, in levels of a channel.
_STROKE, _COLOURED = 64, 96
_RUN = re.compile(b"\xff+")
# More runs of pixels or more blobs than this come from hatching or a halftone. The rest is ignored.
_MOST_RUNS, _MOST_BLOBS = 150_000, 1500
# Limits for the height of a letter in pixels, its width in heights, and the share of its box that is ink.
_LEAST_HEIGHT, _HIGHEST = 6, 0.25
_WIDEST, _NARROWEST = 2.5, 0.12
_LEAST_FILLED, _MOST_FILLED = 0.15, 0.85
# Limits for neighbouring letters: their distance, the difference of their baselines, and the ratio of their heights.
_LETTER_GAP, _LETTER_BASE, _LETTER_RATIO = 0.8, 0.15, 1.9
_LETTERS_OF_ROW = 4


class InkSheet(NamedTuple):
    """A copy of a picture in which text of any colour is dark on white.

    `scale` has the same meaning as in `GreySheet`. `coloured` is the share of the picture that has a dark or coloured
    background.
    """

    picture: Image.Image
    scale: float
    coloured: float = 0.0


class Blob(NamedTuple):
    """A group of connected pixels, with its bounding box and its number of pixels."""

    left: int
    top: int
    right: int
    bottom: int
    points: int

    @property
    def height(self) -> int:
        return self.bottom - self.top


def ink_sheet(picture: Image.Image) -> InkSheet:
    """Draw text of any colour as dark letters on white.

    Each pixel shows how much the original differs from its background, in the colour channel with the largest
    difference. So light letters on a dark or coloured background look like dark letters on paper. A median filter
    computes the background, because it keeps the edges of coloured areas sharp. Blurred edges would look like letters.
    """
    colours = picture.convert("RGB")
    scale = min(1.0, _INK_SIDE / max(colours.size))
    colours.thumbnail((_INK_SIDE, _INK_SIDE), reducing_gap=2.0)
    ground = colours.copy()
    ground.thumbnail((_GROUND_SIDE, _GROUND_SIDE), Image.Resampling.BOX)
    ground = ground.filter(ImageFilter.MedianFilter(_GROUND_POINTS))
    coloured = sum(_most_of_channels(ImageChops.invert(ground)).histogram()[_COLOURED:]) / (
        ground.width * ground.height
    )
    strokes = _most_of_channels(ImageChops.difference(colours, ground.resize(colours.size, Image.Resampling.BILINEAR)))
    return InkSheet(ImageChops.invert(strokes), scale, coloured)


def _most_of_channels(picture: Image.Image) -> Image.Image:
    red, green, blue = picture.split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue)


def unread_letters(ink: InkSheet, read: Iterable[Box]) -> int:
    """Count the shapes that look like letters and form rows, but are outside the boxes of recognised text."""
    mask = ink.picture.point([255 if level < 255 - _STROKE else 0 for level in range(256)])
    for box in read:
        left, top, right, bottom = (round(side * ink.scale) for side in box)
        mask.paste(0, (left - 2, top - 2, right + 2, bottom + 2))
    most = _HIGHEST * min(mask.size)
    letters = [blob for blob in find_blobs(mask) if _is_letter(blob, most)]
    return sum(len(row) for row in _rows_of(letters[:_MOST_BLOBS]) if len(row) >= _LETTERS_OF_ROW)


def _is_letter(blob: Blob, most: float) -> bool:
    width, height = blob.right - blob.left, blob.height
    filled = blob.points / (width * height)
    shaped = _NARROWEST * height <= width <= _WIDEST * height
    return _LEAST_HEIGHT <= height <= most and shaped and _LEAST_FILLED <= filled <= _MOST_FILLED


def find_blobs(mask: Image.Image) -> list[Blob]:
    """Find the groups of connected white pixels in a mask, from top to bottom."""
    data, width = mask.tobytes(), mask.width
    blobs: dict[int, Blob] = {}
    above: list[tuple[int, int, int]] = []
    parents: list[int] = []
    for row in range(mask.height):
        current: list[tuple[int, int, int]] = []
        first = 0
        for run in _RUN.finditer(data, row * width, (row + 1) * width):
            left, right = run.start() - row * width, run.end() - row * width
            while first < len(above) and above[first][1] < left:
                first += 1
            number = len(parents)
            parents.append(number)
            blobs[number] = Blob(left, row, right, row + 1, right - left)
            index = first
            while index < len(above) and above[index][0] <= right:
                number = _joined(blobs, parents, number, above[index][2])
                index += 1
            current.append((left, right, number))
        above = current
        if len(parents) > _MOST_RUNS:
            break
    return list(blobs.values())


def _joined(blobs: dict[int, Blob], parents: list[int], one: int, other: int) -> int:
    one, other = sorted((_root(parents, one), _root(parents, other)))
    if one != other:
        parents[other] = one
        a, b = blobs[one], blobs.pop(other)
        blobs[one] = Blob(
            min(a.left, b.left), min(a.top, b.top), max(a.right, b.right), max(a.bottom, b.bottom), a.points + b.points
        )
    return one


def _root(parents: list[int], number: int) -> int:
    while parents[number] != number:
        parents[number] = parents[parents[number]]
        number = parents[number]
    return number


def _rows_of(letters: Sequence[Blob]) -> list[list[Blob]]:
    """Group neighbouring letters into rows, each from left to right."""
    rows: list[list[Blob]] = []
    for letter in sorted(letters):
        row = next((row for row in reversed(rows) if _follows(row[-1], letter)), None)
        if row:
            row.append(letter)
        else:
            rows.append([letter])
    return rows


def _follows(before: Blob, letter: Blob) -> bool:
    small, large = sorted((before.height, letter.height))
    near = 0 <= letter.left - before.right + 1 <= _LETTER_GAP * large
    aligned = abs(letter.bottom - before.bottom) <= max(1, _LETTER_BASE * large)
    return near and aligned and large <= _LETTER_RATIO * small
