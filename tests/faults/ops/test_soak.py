"""The soak in a short form: whatever is killed while people work, nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.__main__ import soak


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2])
def test_random_kills_lose_and_double_nothing(folder: Path, seed: int) -> None:
    result = soak(folder, 1, seed)
    assert result.problems == [], result.line
