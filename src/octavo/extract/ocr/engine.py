"""The engine that recognises text, offline: its models come with the package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from octavo.extract.contract import Box
from octavo.extract.ocr.lines import Line

if TYPE_CHECKING:
    from PIL.Image import Image

# A longer side costs time and finds nothing more in print of the usual size.
MOST_SIDE = 2600
LEAST_SCORE = 0.5


@cache
def _engine() -> Any:  # noqa: ANN401 - it has no types
    from rapidocr import RapidOCR  # pyright: ignore[reportMissingTypeStubs]

    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.max_side_len": MOST_SIDE,
            "Global.text_score": LEAST_SCORE,
            "Global.use_cls": False,  # pictures are turned as their camera says; the classifier costs a third more
        }
    )


def recognise(picture: Image, scale: float = 1.0) -> list[Line]:
    """Lines as they come, in pixels divided by `scale`."""
    import numpy as np

    answer = _engine()(np.asarray(picture.convert("RGB"))[:, :, ::-1])  # it was taught on blue, green, red
    if answer.boxes is None or answer.txts is None:
        return []
    scores: Sequence[float] = answer.scores or (1.0,) * len(answer.txts)
    return [
        Line(text.strip(), _box(corners, scale), float(score))
        for text, corners, score in zip(answer.txts, answer.boxes, scores, strict=True)
        if text.strip()
    ]


def _box(corners: object, scale: float) -> Box:
    points = cast("Sequence[Sequence[float]]", corners)
    across, down = [float(x) / scale for x, _ in points], [float(y) / scale for _, y in points]
    return Box(min(across), min(down), max(across), max(down))
