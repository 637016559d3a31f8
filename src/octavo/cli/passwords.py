"""Passwords of files, given so that other users of the machine need not see them."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Annotated

import typer

ASKED = "-"

Password = Annotated[
    str | None,
    typer.Option(help="Opens a PDF that asks for one; - asks for it or, in a pipe, reads a line of standard input."),
]


def read_password(given: str | None) -> str | None:
    """What is written in a command line can be seen by everybody on the machine."""
    if given != ASKED:
        return given
    return getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
