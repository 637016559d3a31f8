"""Tests that run in forked processes are reported as if they had run in one, and a process that dies loses one test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = {
    "test_first.py": """
import os, signal

def test_passes(tmp_path):
    assert tmp_path.exists()

def test_fails():
    print("what it printed")
    assert 1 == 2

def test_ends_its_process():
    os.kill(os.getpid(), signal.SIGKILL)

def test_behind_it():
    pass
""",
    "test_second.py": """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_passes(number):
    assert number < 3

@pytest.mark.skip(reason="not here")
def test_is_skipped():
    pass
""",
}


def run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.parallel", "--processes", "2", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def test_every_test_is_reported_once_and_the_ones_behind_a_death_run(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    output = run(tmp_path)
    assert "2 failed, 5 passed, 1 skipped" in output
    assert "what it printed" in output
    assert "The process that ran this test ended with status -9." in output
    again = run(tmp_path, "--last-failed", "-x")
    assert "1 failed" in again
    assert "passed" not in again
