"""The command line: thin, starts fast, and turns every known error into one line."""

from __future__ import annotations

import gc
import sys

from octavo.cli.app import app
from octavo.core.errors import OctavoError

INTERRUPTED = 130
# A start makes many objects that all stay: looking for garbage among them takes a twentieth of its time.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    """Run a command; a known error is one line on standard error and exit code 1."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        app()
    except OctavoError as error:
        print(f"octavo: {error.line}", file=sys.stderr)  # noqa: T201 - the command line talks to a person
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
