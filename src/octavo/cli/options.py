"""Options that several commands share."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Annotated

import typer

from octavo.core.types import Extraction

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Cursor = Annotated[str | None, typer.Option(help="To get the next page, pass the `next_cursor` of the previous page.")]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Server to use instead of this machine. You can also set OCTAVO_SERVER.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="API key for --server. OCTAVO_KEY is safer, because other users cannot see it."),
]
Documents = Annotated[
    list[str],
    typer.Argument(metavar="ID", help="Document ids, or at least four characters of their beginning or end."),
]
HowToRead = Annotated[
    Extraction,
    typer.Option(
        help="How the text is extracted. plain: as it is in the file; clean: a model cleans it up; pages: a model "
        "reads the pages. The last two cost money, and the plain text is kept.",
    ),
]


PROMPT_FOR_IT = "-"

Password = Annotated[
    str | None,
    typer.Option(
        help="Password of an encrypted PDF; - prompts for it or, in a pipe, reads a line from standard input."
    ),
]


def read_password(given: str | None) -> str | None:
    """Return the password. For `-`, prompt for it, because other users of the machine can see command lines."""
    if given != PROMPT_FOR_IT:
        return given
    return getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
