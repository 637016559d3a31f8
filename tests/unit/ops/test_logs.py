"""Log lines are one JSON object each where no person reads them, ours and other libraries' alike."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from octavo.ops.logs import configure_logs


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Logs are a property of the process; other tests have theirs."""
    root, quiet = logging.getLogger(), [logging.getLogger(name) for name in ("psycopg.pool", "uvicorn")]
    before = root.level, list(root.handlers), [logger.level for logger in quiet]
    yield
    root.level, root.handlers[:] = before[0], before[1]
    for logger, level in zip(quiet, before[2], strict=True):
        logger.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def test_lines_are_json_with_what_was_bound(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", "auto", process="web")
    structlog.get_logger("octavo.test").info("stage finished", job="7")
    logging.getLogger("some.library").warning("careful")
    ours, theirs = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (ours["event"], ours["job"], ours["process"], ours["level"]) == ("stage finished", "7", "web", "info")
    assert (theirs["event"], theirs["logger"], theirs["process"]) == ("careful", "some.library", "web")
    assert ours["timestamp"].endswith("Z")


def test_an_exception_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", "json")
    try:
        int("broken")
    except ValueError:
        structlog.get_logger().exception("failed")
    (line,) = capsys.readouterr().err.splitlines()
    assert "ValueError: invalid literal" in json.loads(line)["exception"]


def test_less_important_lines_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("warning", "json")
    structlog.get_logger().info("chatter")
    logging.getLogger("some.library").info("chatter")
    assert capsys.readouterr().err == ""


def test_a_person_gets_readable_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", "console")
    structlog.get_logger().info("hello", name="reader")
    assert not capsys.readouterr().err.startswith("{")
