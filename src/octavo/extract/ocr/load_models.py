"""Loads the OCR models that every page needs as soon as this module is imported.

The parent process of the OCR sandbox imports this module, so that its child processes inherit the models. If a page is
in another script, the child process loads the model for it, which takes less than a fifth of a second.
"""

from __future__ import annotations

from octavo.extract.ocr.tesseract import ORIENTATION, load_reader

COMMON_MODELS = (ORIENTATION, "Latin")


def _load() -> None:
    for name in COMMON_MODELS:
        load_reader(name)


_load()
