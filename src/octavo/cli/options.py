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
    typer.Option(
        metavar="KEY", help="API key for --server. The variable OCTAVO_KEY is safer, because other users cannot see it."
    ),
]
DOCUMENT_HELP = (
    "Document ids, or at least four characters of each: the beginning of the id, or of the one that is shown."
)
Documents = Annotated[list[str], typer.Argument(metavar="ID", help=DOCUMENT_HELP)]
HowToRead = Annotated[
    Extraction,
    typer.Option(
        help="How the text is extracted. plain: without a model; clean: a model cleans up the plain text; pages: a "
        "model reads images of the pages. Models cost money. The plain text is always kept.",
    ),
]


PROMPT_FOR_IT = "-"

Password = Annotated[
    str | None,
    typer.Option(
        help="Password of an encrypted PDF. With -, you are prompted for it, or it is read from standard input."
    ),
]


def read_password(given: str | None, prompt: str = "Password: ") -> str | None:
    """Return the password. For `-`, prompt for it, because other users of the machine can see command lines."""
    if given != PROMPT_FOR_IT:
        return given
    return getpass(prompt) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
