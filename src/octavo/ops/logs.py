"""Structured logs: readable on a terminal, one JSON object a line elsewhere; other libraries' lines look the same."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog
from structlog.typing import Processor

Format = Literal["auto", "console", "json"]


def configure_logs(level: str, form: Format, **bound: object) -> None:
    """Set up the logs of this process; `bound` stands on every line."""
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
    # The pool repeats every failed attempt, and the server tells of every start and stop; we say both once.
    logging.getLogger("psycopg.pool").setLevel(max(number, logging.ERROR))
    logging.getLogger("uvicorn").setLevel(number if number < logging.INFO else max(number, logging.WARNING))


def _rendering(form: Format) -> list[Processor]:
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if form == "console" or (form == "auto" and sys.stderr.isatty()):
        return [remove, structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    return [remove, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
