"""`octavo diff`: what changed between two versions of a document, or between two revisions of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import print_json
from octavo.cli.remote import Target, call
from octavo.cli.tables import clean, open_console
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from octavo.client import Client
    from octavo.records.documents import Comparison, Side, TextChange

# What is the same is shown as far as it is needed to see where one is.
AROUND = 80
MARKS = {"removed": ("[-", "-]", "red strike"), "added": ("{+", "+}", "green"), "same": ("", "", "")}
HELP = "A document by some of its id; with @ and a number, one of its revisions."

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class Named:
    document: UUID
    revision: int | None


@app.command()
def diff(
    first: Annotated[str, typer.Argument(metavar="A", help=HELP)],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="The other one. Without it, A is compared with the one before it.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show what changed from A to B: fields and words. Without a terminal they are marked [-removed-] and {+added+}."""

    async def run(client: Client) -> Comparison:
        new = await find_named(client, second or first)
        if not second:
            return await client.compare(new.document, revision=new.revision)
        old = await find_named(client, first)
        return await client.compare(
            new.document, since=old.document, since_revision=old.revision, revision=new.revision
        )

    found = call(Target(server, key), run)
    if as_json:
        return print_json(found)
    return print_comparison(open_console(), found)


async def find_named(client: Client, typed: str) -> Named:
    part, at, number = typed.partition("@")
    if at and not (number.isascii() and number.isdecimal() and 0 < int(number) < 1 << 31):
        raise BadInput(f"{number!r} is no revision; write 1, 2, 3, …")
    (document,) = await find_ids(client, [part])
    return Named(document, int(number) if at else None)


# Output ------------------------------------------------------------------------------------------------------------


def print_comparison(console: Console, found: Comparison) -> None:
    from rich.text import Text

    console.print(Text(f"--- {say_side(found.old)}", style="bold"), soft_wrap=True)
    console.print(Text(f"+++ {say_side(found.new)}", style="bold"), soft_wrap=True)
    for one in found.fields:
        line = Text(f"{one.field}: ")
        add_part(console, line, "removed", say_value(one.old))
        line.append(" ")
        add_part(console, line, "added", say_value(one.new))
        console.print(line, soft_wrap=True)
    print_connections(console, found)
    if found.text is None:
        return typer.echo("One of them has no text to compare.")
    for change in found.text:
        console.print(Text(say_place(change), style="cyan"))
        console.print(say_change(console, change), soft_wrap=True)
    more = f", the first {len(found.text):,} are shown" if found.changes > len(found.text) else ""
    return typer.echo(f"{count_of(found.changes, 'change')} in the text{more}.")


def print_connections(console: Console, found: Comparison) -> None:
    from rich.text import Text

    for kind, connections in (("removed", found.vanished), ("added", found.appeared)):
        for one in connections:
            line = Text(f"{one.engine.replace('_', ' ')}: ")
            add_part(console, line, kind, f"{one.title}: {' '.join(one.quote.split())}")
            console.print(line, soft_wrap=True)


def say_side(side: Side) -> str:
    return f"{clean(side.title)}, version {side.version}, revision {side.revision}"


def say_value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return "" if value is None else str(value)


def say_place(change: TextChange) -> str:
    pages = [f"{sign}{span.page}" for sign, span in (("-", change.old), ("+", change.new)) if span.page]
    return f"@@ page {' '.join(pages)} @@" if pages else f"@@ -{change.old.start} +{change.new.start} @@"


def say_change(console: Console, change: TextChange) -> Text:
    from rich.text import Text

    from octavo.library.differences import shorten

    line = Text()
    for kind, text in shorten([(part.kind, part.text) for part in change.parts], AROUND):
        add_part(console, line, kind, text)
    return line


def add_part(console: Console, line: Text, kind: str, text: str) -> None:
    """With a colour where there is one, else between marks; lines stay, and nothing else that a terminal obeys."""
    before, after, style = MARKS[kind]
    shown = "\n".join(map(clean_inside, text.split("\n")))
    if console.is_terminal:
        line.append(shown, style=style)
    elif shown:
        line.append(f"{before}{shown}{after}")


def clean_inside(text: str) -> str:
    """As `clean`, but blanks at the ends are the document's."""
    inner = clean(text)
    if not inner:
        return " " * bool(text)
    return f"{' ' * text[:1].isspace()}{inner}{' ' * text[-1:].isspace()}"
