"""Log lines are one JSON object each where no person reads them, ours and other libraries' alike."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import psycopg
import pytest
import structlog

from octavo.database import explain
from octavo.ops.logs import Format, configure_logs

SECRET = "the text of a document"


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


def test_log_lines_are_json_with_the_bound_fields(capsys: pytest.CaptureFixture[str]) -> None:
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


def refuse(info: str) -> None:
    """A row that the database refuses, inside two errors of ours."""
    with psycopg.connect(info, autocommit=True) as connection:
        connection.execute(b"CREATE TEMPORARY TABLE notes (body text CHECK (body = ''))")
        try:
            try:
                connection.execute(b"INSERT INTO notes VALUES (%s)", [SECRET])
            except psycopg.Error as error:
                raise RuntimeError("first") from error
        except RuntimeError:
            connection.execute(b"SELECT %s::text::integer", [SECRET])


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize("logger", ["ours", "theirs"])
def test_a_database_error_is_named_without_its_values(
    capsys: pytest.CaptureFixture[str], database_info: str, form: Format, logger: str
) -> None:
    configure_logs("info", form)
    with pytest.raises(psycopg.Error) as raised:
        refuse(database_info)
    together = ExceptionGroup("several", [raised.value, ValueError("another")])
    if logger == "ours":
        structlog.get_logger().error("failed", exc_info=together)
    else:
        logging.getLogger("some.library").error("failed", exc_info=together)
    said = capsys.readouterr().err
    assert SECRET not in said
    assert "DETAIL" not in said
    wanted = ["violates check constraint", "(23514)", "RuntimeError: first", "(22P02)", "ValueError: another"]
    assert [words for words in wanted if words not in said] == []


def test_an_error_is_described_without_values(database_info: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        refuse(database_info)
    cause = raised.value.__context__
    assert cause
    assert cause.__cause__
    refused = 'new row for relation "notes" violates check constraint "notes_body_check" (23514)'
    assert [explain(raised.value), explain(cause), explain(cause.__cause__)] == [
        *("a value cannot be used (22P02)", "first", refused)
    ]
