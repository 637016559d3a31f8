"""Opens image files of known formats, checks their size before decoding, and makes smaller copies for display.

An image file can contain several sheets, such as the pages of a fax. Each sheet becomes a page of the document. Runs in
the sandbox.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageFile, ImageOps

from octavo.core.errors import BadInput, TooLarge
from octavo.core.texts import ANY_LANGUAGE
from octavo.extract.extracted import Metadata
from octavo.extract.ocr.grey_sheets import reading_scale
from octavo.extract.pdf.letters import one_line
from octavo.extract.pdf.page_batches import PageText, PdfFacts
from octavo.extract.pictures import SHOWN_PIXELS

# Only these formats: for others, Pillow runs external programs or is unmaintained.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "HEIF", "AVIF", "BMP")
MOST_PIXELS = 200_000_000
_PAGED = "TIFF"
HEIF_FORMATS = frozenset({"HEIF"})
MOST_HEIF_BYTES = 15 << 20


class PictureDamaged(BadInput):
    """This picture cannot be read; the file is kept. Save it as PNG with another program, and add the new file."""

    code = "DAMAGED"

    def __init__(self, detail: str = "The picture is damaged: it cannot be decoded.") -> None:
        super().__init__(detail)


@cache
def _prepare_pillow() -> None:
    import pi_heif

    pi_heif.register_heif_opener()  # pyright: ignore[reportUnknownMemberType]
    Image.MAX_IMAGE_PIXELS = None  # the size is checked in `open_picture` instead, for all formats
    ImageFile.LOAD_TRUNCATED_IMAGES = False


@contextmanager
def open_picture(file: Path | BytesIO) -> Generator[Image.Image]:
    """Open an image without decoding it. Decoding errors in the `with` block are raised as `PictureDamaged`."""
    _prepare_pillow()
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(file, formats=FORMATS) as picture:
            _check_size(picture)
            if picture.format in HEIF_FORMATS and _size_of(file) > MOST_HEIF_BYTES:
                raise TooLarge(f"Images of this format are supported up to {MOST_HEIF_BYTES >> 20} MB.")
            yield picture
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, RuntimeError):
        # The decoders fail in many ways. In each case the file is damaged.
        raise PictureDamaged from None


def _size_of(file: Path | BytesIO) -> int:
    return file.stat().st_size if isinstance(file, Path) else file.getbuffer().nbytes


def count_sheets(picture: Image.Image) -> int:
    """Return the number of sheets (pages) in a fax or multi-page scan. An animated image has one sheet."""
    return getattr(picture, "n_frames", 1) if picture.format == _PAGED else 1


def seek_sheet(picture: Image.Image, number: int) -> None:
    """Select a sheet (page) of an image file by its number. Its size can differ from the size of the first sheet."""
    picture.seek(number - 1)
    _check_size(picture)


def _check_size(picture: Image.Image) -> None:
    pixels = picture.width * picture.height
    if pixels > MOST_PIXELS:
        raise TooLarge(
            f"The image has {pixels / 1e6:,.0f} million pixels. The limit is {MOST_PIXELS / 1e6:,.0f} million."
        )


JPEG_QUALITY = 80
# Pixel modes that cannot be interpolated, and the modes they are converted to, so that scaling does not lose strokes.
_MIXABLE = {"1": "L", "P": "RGBA", "PA": "RGBA", "I;16": "I", "I;16B": "I", "I;16L": "I", "I;16N": "I"}


def fit_image(picture: Image.Image, side: int = SHOWN_PIXELS) -> Image.Image:
    """Rotate an image as its EXIF data requires, convert it to RGB on a white background, and scale it down.

    No side of the result is longer than `side` pixels. The given image is modified in place, because memory may be too
    small for two images.
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
    if picture.mode.startswith(("I", "F")):  # more than 8 bits per channel
        return _eight_bits(picture).convert("RGB")
    return picture.convert("RGB")


def _eight_bits(picture: Image.Image) -> Image.Image:
    low, high = picture.convert("F").getextrema()
    if not isinstance(low, float) or not isinstance(high, float) or high <= low:
        return picture.convert("L")
    scale = 255.0 / (high - low)
    return picture.convert("F").point(lambda value: value * scale - low * scale).convert("L")


def to_jpeg(picture: Image.Image, quality: int = JPEG_QUALITY) -> bytes:
    """Encode an image as JPEG without metadata, so that the place and time of a photo are not disclosed."""
    body = BytesIO()
    picture.save(body, "JPEG", quality=quality, optimize=True)
    return body.getvalue()


def make_jpeg(path: Path, side: int = SHOWN_PIXELS) -> bytes:
    with open_picture(path) as picture:
        return to_jpeg(fit_image(picture, side))


def shrink_jpeg(path: Path, side: int) -> bytes:
    """Scale down a stored image for a model with a smaller limit. An image that is already small enough is
    not changed.
    """
    with open_picture(path) as picture:
        return path.read_bytes() if max(picture.size) <= side else to_jpeg(fit_image(picture, side))


MOST_SHEETS = 2000
_TAKEN, _CAMERA = 0x9003, 0x0110
_DETAILS = 0x8769
_MOST_NAME = 100
_DATE = re.compile(r"(\d{4}):(\d\d):(\d\d)")


def open_sheets(path: Path) -> PdfFacts:
    """Count the sheets (pages) of an image file and read its metadata.

    Raises `BadInput` if the file is damaged, and `TooLarge` if it has too many sheets.
    """
    with open_picture(path) as picture:
        sheets = count_sheets(picture)
        if sheets > MOST_SHEETS:
            raise TooLarge(f"The file has {sheets:,} pages. The limit is {MOST_SHEETS:,}.")
        return PdfFacts(sheets, metadata=_metadata(picture))


def read_sheet(path: Path, number: int, language: str = ANY_LANGUAGE) -> PageText:
    """Run OCR on one sheet (page) of an image file. Positions are in pixels of the upright image."""
    # Imported late: loading the engine takes a second, and opening the file does not need it.
    from octavo.extract.ocr.page_recognition import recognise_page

    with open_picture(path) as picture:
        seek_sheet(picture, number)
        longest = max(picture.size)
        shown = fit_image(picture, round(longest * min(1.0, reading_scale(*picture.size))))
    scale = max(shown.size) / longest
    return recognise_page(shown, number, str(number), scale=scale, language=language)


def _metadata(picture: Image.Image) -> Metadata:
    exif = picture.getexif()
    taken, camera = exif.get_ifd(_DETAILS).get(_TAKEN), exif.get(_CAMERA)
    date = _DATE.match(taken) if isinstance(taken, str) else None
    extra = {"camera": one_line(camera)[:_MOST_NAME]} if isinstance(camera, str) else {}
    return Metadata(date="-".join(date.groups()) if date else None, extra=extra)
