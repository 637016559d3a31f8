"""`octavo completion`: prints or installs the script that completes commands and options in a shell."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import PurePath
from typing import Annotated

import typer

from octavo.cli.options import AsJson
from octavo.cli.output import print_json
from octavo.core.errors import BadInput, StorageFailed

app = typer.Typer(help="Complete commands and options with the Tab key.", no_args_is_help=True)

PROGRAM = "octavo"
# The script sets this variable when it requests completions.
VARIABLE = "_OCTAVO_COMPLETE"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


Which = Annotated[
    Shell | None, typer.Argument(metavar="bash|zsh|fish", help="Default: the shell that you use.", show_default=False)
]
# How to load the installed script in a shell that is already open.
LOAD = {Shell.BASH: "source '{path}'", Shell.ZSH: "exec zsh", Shell.FISH: "source '{path}'"}
STARTUP_FILES = {Shell.BASH: "~/.bashrc", Shell.ZSH: "~/.zshrc"}


def enable() -> None:
    """Enable completion for each shell. Does nothing unless a completion script started this process."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage] - no public name

        completion_init()


@app.command()
def show(shell: Which = None, as_json: AsJson = False) -> None:
    """Print the completion script, for example to install it for all users."""
    from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage] - no public name

    wanted = shell or detect_shell()
    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=wanted.value)
    if as_json:
        return print_json({"shell": wanted, "script": script})
    return typer.echo(script)


@app.command()
def install(shell: Which = None, as_json: AsJson = False) -> None:
    """Install the completion script for the current user.

    It is written to your home folder. For bash and zsh, the lines that load it are added to ~/.bashrc or ~/.zshrc.
    """
    from typer.completion import install as install_script  # pyright: ignore[reportPrivateImportUsage] - no public name

    wanted = shell or detect_shell()
    try:
        _, path = install_script(wanted.value, PROGRAM, VARIABLE)
    except OSError as error:
        raise StorageFailed(f"{error.filename} cannot be written: {error.strerror}.") from None
    load = LOAD[wanted].format(path=path)
    if as_json:
        return print_json({"shell": wanted, "path": path, "load": load})
    typer.echo(f"Completion for {wanted} is written to {path}.")
    if wanted in STARTUP_FILES:
        typer.echo(f"{STARTUP_FILES[wanted]} loads it.")
    return typer.echo(f"New terminals have it. In this one, run: {load}")


def detect_shell() -> Shell:
    """Return the shell that started this command or, if that cannot be found, the login shell."""
    from typer.completion import _get_shell_name  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]

    name = _get_shell_name() or PurePath(os.environ.get("SHELL", "")).name
    try:
        return Shell(name)
    except ValueError:
        known = ", ".join(Shell)
        raise BadInput(f"Your shell ({name or 'unknown'}) is not supported. Name one of {known}.") from None
