"""Whether there is anything on a page at all: recognising takes seconds, and looking for ink a few milliseconds."""

from __future__ import annotations

from PIL import Image, ImageChops, ImageFilter

_SIDE = 500
_MARGIN = 0.03  # where scanners leave the edge of the paper
_GROUND = 8
# Grey levels between a stroke and the paper around it, and how many such points a number at the foot of a page has.
_CONTRAST = 24
_LEAST_POINTS = 12


def has_ink(picture: Image.Image) -> bool:
    """Also faint print counts; the grain and the shadows of an empty sheet do not."""
    small = picture.convert("L")
    small.thumbnail((_SIDE, _SIDE), reducing_gap=2.0)
    width, height = small.size
    across, down = round(width * _MARGIN), round(height * _MARGIN)
    small = small.crop((across, down, width - across, height - down))
    ground = small.filter(ImageFilter.BoxBlur(_GROUND))
    return sum(ImageChops.difference(small, ground).histogram()[_CONTRAST:]) >= _LEAST_POINTS
