"""Writes the manual page from the definitions of the commands: `python tools/make_man_page.py octavo.1`.

`man -l octavo.1` shows it. The wheel installs it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from enum import Enum, EnumType
from pathlib import Path
from typing import Any, cast

import typer

from octavo.cli.app import app
from octavo.core.settings import Settings, variable_name

HEAD = """.\\" Made by tools/make_man_page.py. Do not edit.
.TH OCTAVO 1 "" "Octavo" "User Commands"
.SH NAME
octavo \\- self-hosted document platform
.SH SYNOPSIS
.B octavo
.I command
.RI [ options ]
.SH DESCRIPTION
"""
FILES = """.SH FILES
.TP
.I ~/.config/octavo/profiles.json
Profiles that \\fBoctavo login\\fR saves: servers and their API keys. Only their owner can read the file.
.TP
.I octavo.toml
Settings, in the working folder or where OCTAVO_CONFIG points.
"""
STATUS = """.SH EXIT STATUS
.TP
.B 0
Success.
.TP
.B 1
An error, which is printed as one line on standard error; or a check or a document failed.
.TP
.B 2
Unknown command or option.
.TP
.B 3
Octavo is not running (\\fBoctavo status\\fR).
.TP
.B 130
Interrupted.
"""
VALUES = {int: "NUMBER", float: "NUMBER", Path: "PATH"}
CLIENT_VARIABLES = ("server", "key", "data_dir")
_CODE = re.compile(r"`([^`]+)`")


def escape(text: str) -> str:
    """Escape a text for roff. Code becomes bold, and a line never begins with a control character."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    lines = _CODE.sub(r"\\fB\1\\fR", plain).splitlines()
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def paragraphs(text: str) -> str:
    """Join the lines of each paragraph of a docstring."""
    return "\n.PP\n".join(escape(" ".join(one.split())) for one in text.strip().split("\n\n"))


def commands(group: Any, path: str = "octavo") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - the library's own kinds
    for name, one in sorted(group.commands.items()):
        if hasattr(one, "commands"):
            yield from commands(one, f"{path} {name}")
        elif not one.hidden:
            yield f"{path} {name}", one


def describe_option(option: Any) -> str:  # noqa: ANN401 - the library's own kind
    names = ", ".join(f"\\fB{escape(one)}\\fR" for one in option.opts)
    value = "" if option.is_flag else f" \\fI{escape(option.metavar or value_of(option))}\\fR"
    default = f" Default: {option.default}." if has_default(option) else ""
    return f".TP\n{names}{value}\n{escape(' '.join((option.help or '').split()) + default)}\n"


def value_of(option: Any) -> str:  # noqa: ANN401 - the library's own kind
    kind: Any = option.type_descriptor.annotation
    if isinstance(kind, EnumType):
        return "|".join(str(one.value) for one in cast("type[Enum]", kind))
    return VALUES.get(kind, "TEXT")


def has_default(option: Any) -> bool:  # noqa: ANN401 - the library's own kind
    return not option.is_flag and isinstance(option.default, int | float | str) and option.default != ""


def describe_command(path: str, command: Any) -> str:  # noqa: ANN401 - the library's own kind
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden and one.help]
    used = " ".join(f"\\fI{escape(one.metavar or one.name.upper())}\\fR" for one in arguments)
    parts = [f".SS {escape(path)}\n.B {escape(path)}\n{used}\n.RI [ options ]\n.PP\n{paragraphs(command.help or '')}\n"]
    parts += [
        f".TP\n.I {escape(one.metavar or one.name.upper())}\n{escape(one.help)}\n"
        for one in arguments
        if getattr(one, "help", None)
    ]
    return "".join([*parts, *map(describe_option, options)]).replace("\n\n", "\n")


def environment() -> str:
    rows = [
        f".TP\n.B {variable_name(name)}\n{escape(Settings.model_fields[name].description or '')}\n"
        for name in CLIENT_VARIABLES
    ]
    colours = ".TP\n.B NO_COLOR\nIf it is set and not empty, output has no colours.\n"
    more = ".PP\nAll settings are variables: \\fBoctavo settings\\fR lists them.\n"
    return ".SH ENVIRONMENT\n" + "".join(rows) + colours + more


def man_page() -> str:
    root = typer.main.get_command(app)
    described = "".join(describe_command(path, one) for path, one in commands(root))
    about = paragraphs(root.help or "")
    return f"{HEAD}{about}\n.SH COMMANDS\n{described}{environment()}{FILES}{STATUS}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(man_page())
