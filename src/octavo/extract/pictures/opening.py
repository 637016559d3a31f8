"""Opens pictures of the kinds that are read, and looks at their size before anything is decoded."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from PIL import Image, ImageFile

from octavo.core.errors import BadInput, TooLarge

# Only these: Pillow knows formats that start other programs, or that nobody has looked at for years.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "HEIF", "AVIF", "BMP")
MOST_PIXELS = 200_000_000
PAGED = "TIFF"
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
    return getattr(picture, "n_frames", 1) if picture.format == PAGED else 1


def turn_to(picture: Image.Image, number: int) -> None:
    """To the sheet of this number, which may be of another size than the first."""
    picture.seek(number - 1)
    _check_size(picture)


def _check_size(picture: Image.Image) -> None:
    pixels = picture.width * picture.height
    if pixels > MOST_PIXELS:
        raise TooLarge(f"It has {pixels / 1e6:,.0f} million pixels; at most {MOST_PIXELS / 1e6:,.0f} are decoded.")
