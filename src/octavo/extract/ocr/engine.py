"""The OCR engine. It runs offline: its models are part of the package."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from octavo.core.languages import ANY_LANGUAGE, CHINESE, IN_LATIN_LETTERS
from octavo.extract.extracted import Box
from octavo.extract.ocr.lines import Line

if TYPE_CHECKING:
    from PIL.Image import Image

# More pixels need more memory and do not improve the result for print of normal size; small images are enlarged.
MOST_PIXELS = 6_000_000
SMALL_SIDE = 1000
MOST_ENLARGED = 3.0
# Lines are detected in a smaller image than the one they are read from, which saves half of the time. Images longer
# than a page are reduced less.
SEARCH_SIDE = 1280
PAGE_SHAPE = 1.6
SEARCH_PIXELS = 4_000_000
LEAST_SCORE = 0.5


def recognise(picture: Image, language: str = ANY_LANGUAGE) -> list[Line]:
    """Recognise the lines of an image, in the order in which the engine returns them.

    Boxes are in pixels of the image.
    """
    import numpy as np

    engine = load_engine()
    scale = reading_scale(*picture.size)
    if scale != 1.0:
        picture = picture.resize((round(picture.width * scale), round(picture.height * scale)), reducing_gap=2.0)
    engine.text_det.limit_side_len = search_side(*picture.size)
    engine.text_rec.postprocess_op = _decoder(language)
    answer = engine(np.asarray(picture.convert("RGB"))[:, :, ::-1])  # it was trained on blue, green, red
    if answer.boxes is None or answer.txts is None:
        return []
    return [
        Line(text.strip(), _box(corners, scale), float(score))
        for text, corners, score in zip(answer.txts, answer.boxes, answer.scores, strict=True)
        if text.strip()
    ]


@cache
def load_engine() -> Any:  # noqa: ANN401 - it has no types
    """Load the engine with its models. The parent process does this once, and its children inherit the engine.

    The engine uses one thread: several threads would waste CPU time waiting for each other, and pages can be read in
    parallel.
    """
    # If this is not set, the runtime sends telemetry on every start, and keeps a thread for it.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import cv2
    from rapidocr import RapidOCR  # pyright: ignore[reportMissingTypeStubs]

    cv2.setNumThreads(1)
    engine: Any = RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.max_side_len": 1 << 20,  # sizes are chosen here
            "Global.text_score": LEAST_SCORE,
            "Global.use_cls": False,  # detects upside-down lines, but takes a third more time
            "Det.limit_type": "max",
            "Rec.rec_batch_num": 1,  # as fast as larger batches, with less memory
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.enable_cpu_mem_arena": True,  # needs less memory for a single page
        }
    )
    engine._load_det_model()  # noqa: SLF001
    engine._load_rec_model()  # noqa: SLF001
    return engine


def reading_scale(width: int, height: int) -> float:
    """The factor by which an image is scaled before OCR."""
    if width * height > MOST_PIXELS:
        return (MOST_PIXELS / (width * height)) ** 0.5
    return min(MOST_ENLARGED, max(1.0, SMALL_SIDE / max(width, height)))


def search_side(width: int, height: int) -> int:
    """The length of the longer side to which an image is scaled for detecting lines."""
    long, short = max(width, height), min(width, height)
    side = SEARCH_SIDE * max(1.0, long / short / PAGE_SHAPE)
    return round(min(side, (SEARCH_PIXELS * long / short) ** 0.5))


@cache
def _decoder(language: str) -> Callable[..., Any]:
    """The decoder for the output of the model. Letters that the language does not use are ignored."""
    whole = _whole_decoder()
    if language == ANY_LANGUAGE:
        return whole
    # Index 0 is not a letter but the blank between two letters.
    kept = [index for index, letter in enumerate(whole.character) if index == 0 or has_letter(language, letter)]
    part = copy(whole)
    part.character = [whole.character[index] for index in kept]

    def decode(likely: Any, *more: Any, **named: Any) -> Any:  # noqa: ANN401
        return part(likely[:, :, kept], *more, **named)

    return decode


@cache
def _whole_decoder() -> Any:  # noqa: ANN401
    return load_engine().text_rec.postprocess_op


def _box(corners: object, scale: float) -> Box:
    points = cast("Sequence[Sequence[float]]", corners)
    across, down = [float(x) / scale for x, _ in points], [float(y) / scale for _, y in points]
    return Box(min(across), min(down), max(across), max(down))


_EAST_ASIAN = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
_KANA = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff65-\uff9f]")


def has_letter(language: str, letter: str) -> bool:
    """Whether texts in this language can contain the letter. All languages can contain digits and punctuation."""
    if language == ANY_LANGUAGE:
        return True
    if language in IN_LATIN_LETTERS:
        return not _EAST_ASIAN.match(letter)
    return language != CHINESE or not _KANA.match(letter)
