"""Files of others are parsed in the sandbox only: the processes around it do not even load what parses them."""

from __future__ import annotations

import subprocess
import sys

PARSERS = ("PIL", "liteparse", "onnxruntime", "pi_heif", "pypdfium2", "trafilatura")
LOADED = f"import sys, octavo.web.app, octavo.ops.work; print(*sorted(set({PARSERS!r}) & set(sys.modules)))"


def test_neither_a_web_process_nor_a_worker_loads_a_parser() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
