"""The environment of the peers: apart from Octavo's own, so that neither decides the other's versions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
REQUIREMENTS = PROJECT / "requirements" / "bench.txt"
# Inside the project's own environment, so that it is ignored by git and removed by `make clean`.
FOLDER = PROJECT / ".venv" / "bench"
PYTHON = FOLDER / "bin" / "python"
STAMP = FOLDER / ".installed"


def install() -> None:
    """Bring the peers into their environment; a stamp with the pins' digest is written last."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == digest:
        return
    _run_uv("venv", "--clear", "--python", sys.executable, str(FOLDER))
    _run_uv(
        "pip", "install", "--compile-bytecode", "--require-hashes", "--python", str(PYTHON), "-r", str(REQUIREMENTS)
    )
    STAMP.write_text(digest)


def _run_uv(*arguments: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([str(uv), *arguments, "--quiet"], check=True, env={**os.environ, "UV_SYSTEM_CERTS": "1"})
