"""Importing this loads the models: for a warm parent whose children recognise text and do nothing else."""

from __future__ import annotations

import os

# The warm parent forks, so no library may start threads in it.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from octavo.extract.ocr.engine import load_engine

load_engine()
