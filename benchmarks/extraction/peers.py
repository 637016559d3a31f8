"""The programs that are measured beside Octavo, each in an environment of its own: never dependencies of Octavo."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
OURS = "octavo"
REQUIREMENTS = {
    "pypdf": "pypdf==7.0.1",
    "pdfplumber": "pdfplumber==0.11.10",
    "markitdown": "markitdown[all]==0.1.8",
    "kreuzberg": "kreuzberg==4.10.4",
    "pymupdf4llm": "pymupdf==2.0",  # of which it is a part by now
    "trafilatura": "trafilatura==2.3.1",
    "docling": "docling-slim[standard]==2.143.0",
}
NAMES = (OURS, *REQUIREMENTS)
# docling takes 6 GB, downloads its models when it reads the first PDF, and wrote the truth for the other formats.
USUAL = tuple(name for name in NAMES if name != "docling")
# Endings that a contestant reads; the others read all of them.
ENDINGS = {"pypdf": (".pdf",), "pdfplumber": (".pdf",), "pymupdf4llm": (".pdf",), "trafilatura": (".html",)}
# Inside the project's own environment, so that it is ignored by git and removed by `make clean`.
FOLDER = PROJECT / ".venv" / "bench-extraction"


def install(name: str) -> Path:
    """The Python that runs a contestant; a stamp is written last."""
    if name == OURS:
        return Path(sys.executable)
    folder, requirement = FOLDER / name, REQUIREMENTS[name]
    python, stamp = folder / "bin" / "python", folder / ".installed"
    if not stamp.exists() or stamp.read_text() != requirement:
        _run_uv("venv", "--clear", "--python", sys.executable, str(folder))
        _run_uv("pip", "install", "--compile-bytecode", "--python", str(python), requirement)
        stamp.write_text(requirement)
    return python


def _run_uv(*arguments: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([str(uv), *arguments, "--quiet"], check=True, env={**os.environ, "UV_SYSTEM_CERTS": "1"})
