"""Loads the OCR models that every page needs, when it is imported.

It is imported by the parent process of the sandbox that runs OCR, so that the child processes inherit the models. A
child process that needs the model of another script loads it, which takes less than a fifth of a second.
"""

from __future__ import annotations

from octavo.extract.ocr.tesseract import ORIENTATION, load_reader

COMMON_MODELS = (ORIENTATION, "Latin")


def _load() -> None:
    for name in COMMON_MODELS:
        load_reader(name)


_load()
