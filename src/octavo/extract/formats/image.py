"""A picture to the text on it; what is not text is not described here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageSequence

from octavo.extract.contract import Block, Extracted, Metadata, Page, Quality, SourceType
from octavo.extract.ocr.engine import recognise
from octavo.extract.ocr.markdown import Piece, pieces_of
from octavo.extract.pictures.fitting import fitted
from octavo.extract.pictures.opening import open_picture
from octavo.extract.registry import Hints, Processor
from octavo.extract.structure import outline_of
from octavo.extract.words import count_words

# A fax or a scan of several sheets is one file of this format; moving pictures of others are one picture.
PAGED = "TIFF"
MOST_FRAMES = 200
OCR_PIXELS = 2600
TAKEN, CAMERA = 0x9003, 0x0110
_EXIF_IFD = 0x8769


def extract(path: Path, _hints: Hints) -> Extracted:
    """One page for each sheet; a picture without text is complete all the same, and says so."""
    with open_picture(path) as picture:
        sizes: list[tuple[int, int]] = []
        found: list[list[Piece]] = []
        for frame in _frames(picture):
            shown = fitted(frame, OCR_PIXELS)
            sizes.append(shown.size)
            found.append(pieces_of(recognise(shown)))
        return assemble(found, sizes, _metadata(picture))


def _frames(picture: Image.Image) -> Iterator[Image.Image]:
    if picture.format != PAGED:
        yield picture
        return
    for number, frame in enumerate(ImageSequence.Iterator(picture)):
        if number == MOST_FRAMES:
            return
        yield frame.copy()


def assemble(pages: list[list[Piece]], sizes: list[tuple[int, int]], metadata: Metadata) -> Extracted:
    """Everything in one text, with exact places."""
    markdown, blocks, ranges = "", list[Block](), list[Page]()
    for number, (pieces, (width, height)) in enumerate(zip(pages, sizes, strict=True), 1):
        start = len(markdown)
        for piece in pieces:
            begin = len(markdown)
            markdown += piece.markdown
            blocks.append(Block(piece.kind, begin, len(markdown), piece.text, piece.level, number, piece.box))
            markdown += "\n\n"
        ranges.append(Page(number, str(number), start, len(markdown), float(width), float(height)))
    return Extracted(
        source_type=SourceType.IMAGE,
        markdown=markdown,
        word_count=count_words(markdown),
        quality=Quality.OCR if blocks else Quality.EMPTY,
        pages=tuple(ranges),
        blocks=tuple(blocks),
        outline=outline_of(blocks),
        metadata=metadata,
    )


def _metadata(picture: Image.Image) -> Metadata:
    exif = picture.getexif()
    taken = exif.get_ifd(_EXIF_IFD).get(TAKEN)
    camera = exif.get(CAMERA)
    date = taken[:10].replace(":", "-") if isinstance(taken, str) and taken[:4].isdecimal() else None
    return Metadata(date=date, extra={"camera": camera.strip("\0 ")} if isinstance(camera, str) else {})


PROCESSOR = Processor((SourceType.IMAGE,), extract)
