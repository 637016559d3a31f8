"""A cursor of a search says how many hits were shown, and nothing else is one."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from octavo.core.errors import BadInput
from octavo.search.chunk_search import MOST_SHOWN, make_shown, read_shown


def test_a_cursor_is_read_as_it_was_made() -> None:
    assert [read_shown(make_shown(shown)) for shown in (1, 30, 999)] == [1, 30, 999]


@pytest.mark.parametrize(
    "said", ["", "shown", "shown 0", "shown -1", "shown ²", f"shown {MOST_SHOWN}", "other 3", "shown 1e9"]
)
def test_what_no_search_answered_is_refused(said: str) -> None:
    with pytest.raises(BadInput):
        read_shown(urlsafe_b64encode(said.encode()).decode().rstrip("="))
    with pytest.raises(BadInput):
        read_shown(said + "é")
