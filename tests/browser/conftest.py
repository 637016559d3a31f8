"""A running installation and a Chromium for each process of tests; a browser profile and an owner for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Place, Program, Stage, Visitor, Windows
from tests.support.instance import instance_in
from tests.support.postgres import open_folder
from tests.support.processes import PATIENCE_SECONDS

MANY = 1_000_000
OpenBrowser: TypeAlias = Callable[..., Visitor]
expect.set_options(timeout=PATIENCE_SECONDS * 1000)


@pytest.fixture(scope="session")
def place() -> Iterator[Place]:
    names = ("requests_per_minute", "requests_per_minute_anonymous", "visitors_per_minute", "sign_ups_per_hour")
    limits = dict.fromkeys(names, MANY)
    with open_folder() as folder, instance_in(folder, **limits, upload_bytes=5_000_000) as instance:
        instance.start()
        place = Place(instance)
        place.admin()  # while the link is valid
        first = Program(place, place.sign_up())
        first.upload("first.txt", "Workers import what they need with the first document, while the browser starts.")
        first.api.close()
        yield place
        place.end()


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.end()


@pytest.fixture
def windows(stage: Stage) -> Iterator[Windows]:
    with stage.shown() as windows:
        yield windows


@pytest.fixture
def open_browser(place: Place, windows: Windows) -> Iterator[OpenBrowser]:
    """A browser with a session of the test's choice, or none; `size`, `scheme`, `scripts` as the test needs them."""
    with ExitStack() as stack:

        def open_one(session: str | None = None, **options: Any) -> Visitor:  # noqa: ANN401 - as for a context
            opened = Visitor(place, windows, session, **options)
            stack.callback(opened.end)
            return opened

        yield open_one


@pytest.fixture
def visitor(open_browser: OpenBrowser) -> Visitor:
    """Somebody without an account who was never here."""
    return open_browser()


@pytest.fixture
def member(place: Place, open_browser: OpenBrowser) -> Visitor:
    """Somebody with an account and nothing in it."""
    return open_browser(place.sign_up())


@pytest.fixture
def admin(place: Place, open_browser: OpenBrowser) -> Visitor:
    """Who owns this machine; shared by all tests of this process."""
    return open_browser(place.admin())


@pytest.fixture
def page(member: Visitor) -> Page:
    return member.page
