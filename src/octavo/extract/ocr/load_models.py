"""Loads the OCR models when imported.

Imported by the preloaded parent of a sandbox that only runs OCR: its children inherit the models.
"""

from __future__ import annotations

import os

# The preloaded parent forks, so libraries must not start threads in it.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from octavo.extract.ocr.engine import load_engine

load_engine()
