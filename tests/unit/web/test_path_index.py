"""A request reaches the route that comparing its path with all routes would find, and few routes are compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi.routing import iter_route_contexts
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import BaseRoute, Match

from octavo.core.settings import Settings
from octavo.web.app import PathIndex, create_app

APP = create_app(Settings(data_dir=Path("/nowhere")))
INDEX = PathIndex(APP.router)
KNOWN = sorted({one.path or "" for one in iter_route_contexts(APP.routes)})
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
SEGMENTS = sorted({segment for path in KNOWN for segment in path.split("/")})


def found(routes: Sequence[BaseRoute], path: str, method: str) -> tuple[Match, BaseRoute | None]:
    """As Starlette chooses: the first that fits whole, or else the first that fits except for its method."""
    scope: dict[str, Any] = {"type": "http", "path": path, "method": method, "root_path": "", "headers": [], "app": APP}
    matches = [(route.matches(dict(scope))[0], route) for route in routes]
    for wanted in (Match.FULL, Match.PARTIAL):
        for match, route in matches:
            if match == wanted:
                return match, route
    return Match.NONE, None


def check(path: str, method: str) -> Match:
    chosen = found(INDEX.router_for(path).routes, path, method)
    assert chosen == found(APP.routes, path, method)
    return chosen[0]


def test_every_route_is_found() -> None:
    for path in KNOWN:
        assert check(re.sub(r"\{[^}]*\}", "0195", path), "GET") != Match.NONE or path == "/static"


@given(st.lists(st.sampled_from(SEGMENTS) | st.text(max_size=3), max_size=6), st.sampled_from(METHODS))
def test_any_path_is_matched_as_without_the_index(segments: list[str], method: str) -> None:
    check("/" + "/".join(segments), method)


def test_few_routers_are_tried_for_a_path() -> None:
    assert max(len(INDEX.router_for(path).routes) for path in KNOWN) <= len(APP.routes) // 5
