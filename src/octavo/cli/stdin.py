"""Standard input as a file: kept on disk for a while, so that a broken transfer can be repeated."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from octavo.cli.paths import LocalFile

PIECE_BYTES = 1 << 20


@contextmanager
def keep_stdin(name: str, most_bytes: int) -> Generator[LocalFile]:
    """Read to its end, or until it is certainly too much."""
    with tempfile.NamedTemporaryFile(prefix="octavo-") as kept:
        size = 0
        while size <= most_bytes and (piece := sys.stdin.buffer.read(PIECE_BYTES)):
            size += kept.write(piece)
        kept.flush()
        yield LocalFile(Path(kept.name), name, name, size)
