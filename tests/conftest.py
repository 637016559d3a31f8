"""Fixtures that every test may use: a real database, a folder that any account may enter."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import httpx._config
import pytest
from hypothesis import HealthCheck, settings

from tests.support import preloaded
from tests.support.built_once import build_once
from tests.support.clusters import copy_clusters, prepared_clusters, prepared_early
from tests.support.postgres import Server, open_folder, run_server
from tests.support.processes import PATIENCE_SECONDS
from tests.support.s3 import S3Server, running_s3_server

pytest_plugins = ["tests.support.parallel"]
PROCESSES_OF_CHECK = 2  # of `make check`, which starts few commands
settings.register_profile("long", deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_configure(config: pytest.Config) -> None:
    """The same examples in every run, so that chance makes no test red; the long forms look for new ones."""
    # A shell ignores Ctrl-C for what it starts in the background, and every process under test would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until the tests are collected
    build_once()
    wait_patiently()
    share_with_all_processes(config)
    copy_clusters()
    preloaded.fork_sandboxes()
    settings.load_profile("long" if config.getoption("markexpr") == "long" else "ci")


def share_with_all_processes(config: pytest.Config) -> None:
    stack = ExitStack()
    config.add_cleanup(stack.close)
    stack.enter_context(prepared_clusters())
    processes = cast("int", config.getoption("processes"))
    if processes > 1:
        stack.enter_context(preloaded.shared_by_all(early=processes > PROCESSES_OF_CHECK))
        stack.enter_context(prepared_early())


def wait_patiently() -> None:
    """A client of httpx gives up after five seconds unless it is told otherwise, which a busy machine reaches."""
    limits = httpx._config.DEFAULT_TIMEOUT_CONFIG  # pyright: ignore[reportPrivateImportUsage]
    limits.connect = limits.read = limits.write = limits.pool = PATIENCE_SECONDS


def pytest_collection_finish() -> None:
    """Collecting garbage takes a tenth of the processor time if it visits the thousands of tests each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A time limit that is reached while a failure is described would end the whole run, not only the test."""
    if call.excinfo:
        item.config.hook.pytest_timeout_cancel_timer(item=item)
    return (yield)


@pytest.fixture(scope="session")
def newest_server() -> Iterator[Server]:
    with run_server(18) as server:
        yield server


@pytest.fixture(scope="session", params=[16, 18], ids=lambda major: f"postgresql{major}")
def any_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """For what depends on the server itself: such tests run on every major version that we bring."""
    if request.param == 18:
        yield request.getfixturevalue("newest_server")
        return
    with run_server(request.param) as server:
        yield server


@pytest.fixture
def database_info(newest_server: Server) -> Iterator[str]:
    with newest_server.database() as info:
        yield info


@pytest.fixture
def any_database_info(any_server: Server) -> Iterator[str]:
    with any_server.database() as info:
        yield info


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as root:
        yield root


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests say what they set; the shell they are started from does not."""
    for name in list(os.environ):
        if name.startswith("OCTAVO_"):
            monkeypatch.delenv(name)
