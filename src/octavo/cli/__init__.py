"""The command line: thin, quick to start, and every known error is one line."""

from __future__ import annotations

import gc
import sys

from octavo.cli.app import app
from octavo.core.errors import OctavoError

INTERRUPTED = 130
# Importing creates many objects that all stay; collecting garbage among them takes 5 % of the start-up time.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    """Run a command. A known error prints one line on standard error and exits with code 1."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        app()
    except OctavoError as error:
        print(f"octavo: {error.line}", file=sys.stderr)  # noqa: T201 - the command line talks to a person
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
