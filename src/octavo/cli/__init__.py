"""The command-line interface. It starts quickly, and prints expected errors as one line, without a traceback."""

from __future__ import annotations

import gc
import sys

from octavo.cli.app import app, enable_completion
from octavo.core.errors import OctavoError

INTERRUPTED = 130
# Imports create many objects that are never freed; garbage collection among them would take 5 % of the start-up time.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    """Run a command. If an expected error occurs, print it as one line on standard error and exit with code 1."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    enable_completion()
    try:
        app()
    except OctavoError as error:
        print(f"octavo: {error.line}", file=sys.stderr)  # noqa: T201 - the command line talks to a person
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
