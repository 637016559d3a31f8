"""Structured logs, including those of other libraries: readable on a terminal, otherwise one JSON object per line.

Tracebacks of database errors do not show the values of rows.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from typing import Literal, TextIO, cast

import psycopg
import structlog
from structlog.typing import ExcInfo, Processor

from octavo.database import explain

BECAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
MEANWHILE = "\nDuring handling of the above exception, another exception occurred:\n\n"

Format = Literal["auto", "console", "json"]


def configure_logs(level: str, form: Format, **bound: object) -> None:
    """Configure the logs of this process. The fields in `bound` are added to every line."""
    number = logging.getLevelNamesMapping()[level.upper()]
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**bound)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=_rendering(form)))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    # The pool logs every failed attempt, servers every start and stop, and the client every request.
    # Octavo logs the important ones itself.
    logging.getLogger("psycopg.pool").setLevel(max(number, logging.ERROR))
    for name in ("uvicorn", "httpx", "mcp"):
        logging.getLogger(name).setLevel(number if number < logging.INFO else max(number, logging.WARNING))


def _rendering(form: Format) -> list[Processor]:
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if form == "console" or (form == "auto" and sys.stderr.isatty()):
        return [remove, structlog.dev.ConsoleRenderer(exception_formatter=_print_exception)]
    return [remove, structlog.processors.ExceptionRenderer(_as_text), structlog.processors.JSONRenderer()]


def _print_exception(sio: TextIO, exc_info: ExcInfo) -> None:
    sio.write("\n" + _as_text(exc_info))


def _as_text(exc_info: ExcInfo) -> str:
    return format_exception(exc_info[1])


def format_exception(error: BaseException) -> str:
    """Format a traceback as Python does, but without row values in database errors."""
    return "".join(_lines(error, set())).rstrip()


def _lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    before, words = error.__cause__, BECAUSE
    if before is None and not error.__suppress_context__:
        before, words = error.__context__, MEANWHILE
    if before is not None and id(before) not in seen:
        yield from _lines(before, seen)
        yield words
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield from _words(error)
    if isinstance(error, BaseExceptionGroup):
        for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from (f"  | {line}" for line in "".join(_lines(one, seen)).splitlines(keepends=True))


def _words(error: BaseException) -> list[str]:
    if isinstance(error, psycopg.Error):
        return [f"{type(error).__module__}.{type(error).__qualname__}: {explain(error)}\n"]
    return traceback.format_exception_only(error)
