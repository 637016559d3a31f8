"""Loads the OCR models when imported.

For the warm parent of a sandbox that only runs OCR: its children inherit the models and do not load them again.
"""

from __future__ import annotations

import os

# The warm parent forks, so libraries must not start threads in it.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from octavo.extract.ocr.engine import load_engine

load_engine()
