"""When imported, loads the OCR models that every page needs.

The parent process of a sandbox that only runs OCR imports this module, so its child processes inherit the models. The
models of other scripts are loaded by the child processes that need them, which takes less than a fifth of a second.
"""

from __future__ import annotations

from octavo.extract.ocr.tesseract import ORIENTATION, load_reader

COMMON_MODELS = (ORIENTATION, "Latin")


def _load() -> None:
    for name in COMMON_MODELS:
        load_reader(name)


_load()
