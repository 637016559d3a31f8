"""Tests of clusters make their own: each has its own system identifier, and a kill may meet it half made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.clusters import new_clusters


@pytest.fixture(scope="module", autouse=True)
def own_clusters() -> Iterator[None]:
    with new_clusters():
        yield
