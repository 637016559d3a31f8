"""Opens image files of known formats, checks their size before decoding, and makes the copies that are shown."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageFile, ImageOps

from octavo.core.errors import BadInput, TooLarge
from octavo.extract.pictures import SHOWN_PIXELS

# Only these: Pillow knows formats that start other programs, or that nobody has looked at for years.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "HEIF", "AVIF", "BMP")
MOST_PIXELS = 200_000_000
_PAGED = "TIFF"
HEIF_FORMATS = frozenset({"HEIF"})
MOST_HEIF_BYTES = 15 << 20


class PictureDamaged(BadInput):
    """This picture cannot be decoded. The file is kept; look whether it opens elsewhere, and add it anew if so."""

    code = "DAMAGED"

    def __init__(self, detail: str = "The picture is damaged: it cannot be decoded.") -> None:
        super().__init__(detail)


@cache
def _prepare_pillow() -> None:
    import pi_heif

    pi_heif.register_heif_opener()  # pyright: ignore[reportUnknownMemberType]
    Image.MAX_IMAGE_PIXELS = None  # counted here, for all formats alike
    ImageFile.LOAD_TRUNCATED_IMAGES = False


@contextmanager
def open_picture(path: Path) -> Generator[Image.Image]:
    """A picture that is not decoded yet; what goes wrong inside means that it is damaged."""
    _prepare_pillow()
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(path, formats=FORMATS) as picture:
            _check_size(picture)
            if picture.format in HEIF_FORMATS and path.stat().st_size > MOST_HEIF_BYTES:
                raise TooLarge(f"Pictures of this format are decoded up to {MOST_HEIF_BYTES >> 20} MB.")
            yield picture
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, RuntimeError):
        # Decoders of a dozen formats fail in as many ways; the file is to blame for all of them.
        raise PictureDamaged from None


def count_sheets(picture: Image.Image) -> int:
    """Of a fax, or of a scan of several sheets; moving pictures of other formats are one picture."""
    return getattr(picture, "n_frames", 1) if picture.format == _PAGED else 1


def turn_to(picture: Image.Image, number: int) -> None:
    """To the sheet of this number, which may be of another size than the first."""
    picture.seek(number - 1)
    _check_size(picture)


def _check_size(picture: Image.Image) -> None:
    pixels = picture.width * picture.height
    if pixels > MOST_PIXELS:
        raise TooLarge(f"It has {pixels / 1e6:,.0f} million pixels; at most {MOST_PIXELS / 1e6:,.0f} are decoded.")


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
