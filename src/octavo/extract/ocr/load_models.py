"""When this module is imported, it loads the OCR models that every page needs.

The parent process of the OCR sandbox imports it, so that the child processes inherit the models. The model for any
other script is loaded by the child process that needs it, which takes less than a fifth of a second.
"""

from __future__ import annotations

from octavo.extract.ocr.tesseract import ORIENTATION, load_reader

COMMON_MODELS = (ORIENTATION, "Latin")


def _load() -> None:
    for name in COMMON_MODELS:
        load_reader(name)


_load()
