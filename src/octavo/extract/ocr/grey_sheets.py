"""Prepares pictures for OCR: in grey, without grain, and of a suitable size."""

from __future__ import annotations

from typing import NamedTuple

from PIL import Image, ImageChops, ImageFilter

# More pixels take more time and memory and do not improve the result for print of normal size; small pictures are
# enlarged.
MOST_PIXELS = 9_000_000
SMALL_SIDE = 1000
MOST_ENLARGED = 3.0
# The grain of a picture: the median difference from its blurred copy, in grey levels. Clean scans have 0 or 1. The
# radius at which grain is smoothed out, and the grain from which a larger one is needed.
GRAIN, GRAIN_RADIUS = 3, 1.0
HEAVY_GRAIN, HEAVY_RADIUS = 20, 1.8


class GreySheet(NamedTuple):
    """A picture for OCR, and the number of its pixels per pixel of the original.

    `sharp` is the picture before grain was smoothed out. It shows the shapes of letters better, unless the grain is
    heavy.
    """

    picture: Image.Image
    scale: float
    sharp: Image.Image


def grey_sheet(picture: Image.Image) -> GreySheet:
    """Prepare a picture. Tesseract takes grain for thousands of dots, and then misses the text or takes minutes."""
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
    """The grain of a picture. Letters cover the smaller part of a page, so they do not count."""
    counts = ImageChops.difference(grey, grey.filter(ImageFilter.GaussianBlur(1))).histogram()
    half, level = sum(counts) / 2, 0
    while (half := half - counts[level]) > 0:
        level += 1
    return level


def reading_scale(width: int, height: int) -> float:
    """The factor by which a picture is scaled before OCR."""
    if width * height > MOST_PIXELS:
        return (MOST_PIXELS / (width * height)) ** 0.5
    return min(MOST_ENLARGED, max(1.0, SMALL_SIDE / max(width, height)))


_SIDE = 500
_MARGIN = 0.03  # scanners often show the edge of the paper
_GROUND = 8
# The contrast between a stroke and the paper in grey levels, and the number of such points in a page number.
_CONTRAST = 24
_LEAST_POINTS = 12


def has_ink(picture: Image.Image) -> bool:
    """Whether the page is not blank. This check is much faster than OCR.

    Faint print counts as ink; the paper grain and shadows of an empty sheet do not.
    """
    small = picture.convert("L")
    small.thumbnail((_SIDE, _SIDE), reducing_gap=2.0)
    width, height = small.size
    across, down = round(width * _MARGIN), round(height * _MARGIN)
    small = small.crop((across, down, width - across, height - down))
    ground = small.filter(ImageFilter.BoxBlur(_GROUND))
    return sum(ImageChops.difference(small, ground).histogram()[_CONTRAST:]) >= _LEAST_POINTS
