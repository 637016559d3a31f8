"""A picture as it is shown and sent on: the right way up, never enlarged, never over the original."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image, ImageOps

from octavo.extract.pictures import SHOWN_PIXELS
from octavo.extract.pictures.opening import open_picture

JPEG_QUALITY = 80
# Kinds of pixels that cannot be mixed, and what they become before a picture is made smaller: strokes would be lost.
_MIXABLE = {"1": "L", "P": "RGBA", "PA": "RGBA", "I;16": "I", "I;16B": "I", "I;16L": "I", "I;16N": "I"}


def fitted(picture: Image.Image, side: int = SHOWN_PIXELS) -> Image.Image:
    """Turned as its camera says, in plain colours on white, with no side longer than this.

    The picture that is given is made smaller itself, because there may be no room for two.
    """
    if picture.mode in _MIXABLE:
        picture = picture.convert(_MIXABLE[picture.mode])
    picture.thumbnail((side, side), reducing_gap=2.0)
    return _plain(ImageOps.exif_transpose(picture))


def _plain(picture: Image.Image) -> Image.Image:
    if picture.mode in {"RGBA", "LA", "PA"} or "transparency" in picture.info:
        with_alpha = picture.convert("RGBA")
        ground = Image.new("RGBA", with_alpha.size, "white")
        return Image.alpha_composite(ground, with_alpha).convert("RGB")
    if picture.mode.startswith(("I", "F")):  # more than 8 bits a channel
        return _eight_bits(picture).convert("RGB")
    return picture.convert("RGB")


def _eight_bits(picture: Image.Image) -> Image.Image:
    low, high = picture.convert("F").getextrema()
    if not isinstance(low, float) or not isinstance(high, float) or high <= low:
        return picture.convert("L")
    scale = 255.0 / (high - low)
    return picture.convert("F").point(lambda value: value * scale - low * scale).convert("L")


def to_jpeg(picture: Image.Image, quality: int = JPEG_QUALITY) -> bytes:
    """Without what the camera wrote into it: place and time are nobody's business who gets the picture."""
    body = BytesIO()
    picture.save(body, "JPEG", quality=quality, optimize=True)
    return body.getvalue()


def make_jpeg(path: Path, side: int = SHOWN_PIXELS) -> bytes:
    with open_picture(path) as picture:
        return to_jpeg(fitted(picture, side))


def shrink_jpeg(path: Path, side: int) -> bytes:
    """A copy that was made before, for somebody who takes only smaller ones; as it is, if it is small enough."""
    with open_picture(path) as picture:
        return path.read_bytes() if max(picture.size) <= side else to_jpeg(fitted(picture, side))
