"""Loads the OCR models when imported.

The parent process of a sandbox that only runs OCR imports this module, so its children inherit the models.
"""

from __future__ import annotations

import os

# The preloaded parent forks, so libraries must not start threads in it.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from octavo.extract.ocr.engine import load_engine

load_engine()
