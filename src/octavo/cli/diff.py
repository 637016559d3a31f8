"""`octavo diff`: shows the changes between two versions or two revisions of a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Key, Server, find_ids
from octavo.cli.output import clean, open_console, print_json
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from octavo.client import Client
    from octavo.records.documents import Comparison, Side, TextChange

# Characters of unchanged text shown around a change.
AROUND = 80
MARKS = {"removed": ("[-", "-]", "red strike"), "added": ("{+", "+}", "green"), "same": ("", "", "")}
HELP = "Document id, or part of it. For a specific revision, append @ and its number."

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class RevisionRef:
    document: UUID
    revision: int | None


@app.command()
def diff(
    first: Annotated[str, typer.Argument(metavar="A", help=HELP)],
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="B", help="The newer document or revision. Default: compare A with its previous version."
        ),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the changes from A to B in fields and text. In a pipe, changes are marked as [-removed-] and {+added+}."""

    async def run(client: Client) -> Comparison:
        new = await find_revision(client, second or first)
        if not second:
            return await client.compare(new.document, revision=new.revision)
        old = await find_revision(client, first)
        return await client.compare(
            new.document, since=old.document, since_revision=old.revision, revision=new.revision
        )

    found = call(Target(server, key), run)
    if as_json:
        return print_json(found)
    return print_comparison(open_console(), found)


async def find_revision(client: Client, typed: str) -> RevisionRef:
    part, at, number = typed.partition("@")
    if at and not (number.isascii() and number.isdecimal() and 0 < int(number) < 1 << 31):
        raise BadInput(f"{number!r} is not a revision number such as 1, 2 or 3.")
    (document,) = await find_ids(client, [part])
    return RevisionRef(document, int(number) if at else None)


# Output ------------------------------------------------------------------------------------------------------------


def print_comparison(console: Console, found: Comparison) -> None:
    from rich.text import Text

    console.print(Text(f"--- {describe_side(found.old)}", style="bold"), soft_wrap=True)
    console.print(Text(f"+++ {describe_side(found.new)}", style="bold"), soft_wrap=True)
    for one in found.fields:
        line = Text(f"{one.field}: ")
        add_part(console, line, "removed", describe_value(one.old))
        line.append(" ")
        add_part(console, line, "added", describe_value(one.new))
        console.print(line, soft_wrap=True)
    print_connections(console, found)
    if found.text is None:
        return typer.echo("One of the two versions has no text.")
    for change in found.text:
        console.print(Text(describe_place(change), style="cyan"))
        console.print(describe_change(console, change), soft_wrap=True)
    more = f", the first {len(found.text):,} are shown" if found.changes > len(found.text) else ""
    return typer.echo(f"{count_of(found.changes, 'change')} in the text{more}.")


def print_connections(console: Console, found: Comparison) -> None:
    from rich.text import Text

    for kind, connections in (("removed", found.vanished), ("added", found.appeared)):
        for one in connections:
            line = Text(f"{one.engine.replace('_', ' ')}: ")
            add_part(console, line, kind, f"{one.title}: {' '.join(one.quote.split())}")
            console.print(line, soft_wrap=True)


def describe_side(side: Side) -> str:
    return f"{clean(side.title)}, version {side.version}, revision {side.revision}"


def describe_value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return "" if value is None else str(value)


def describe_place(change: TextChange) -> str:
    pages = [f"{sign}{span.page}" for sign, span in (("-", change.old), ("+", change.new)) if span.page]
    return f"@@ page {' '.join(pages)} @@" if pages else f"@@ -{change.old.start} +{change.new.start} @@"


def describe_change(console: Console, change: TextChange) -> Text:
    from rich.text import Text

    from octavo.library.differences import shorten

    line = Text()
    for kind, text in shorten([(part.kind, part.text) for part in change.parts], AROUND):
        add_part(console, line, kind, text)
    return line


def add_part(console: Console, line: Text, kind: str, text: str) -> None:
    """Append text to a line.

    Changes are shown in colour on a terminal, otherwise as [-removed-] or {+added+}. All control characters except line
    breaks are removed.
    """
    before, after, style = MARKS[kind]
    shown = "\n".join(map(clean_inside, text.split("\n")))
    if console.is_terminal:
        line.append(shown, style=style)
    elif shown:
        line.append(f"{before}{shown}{after}")


def clean_inside(text: str) -> str:
    """Replace line breaks and control characters with spaces, like `clean`.

    White space at the start or end becomes one space instead of being removed.
    """
    inner = clean(text)
    if not inner:
        return " " * bool(text)
    return f"{' ' * text[:1].isspace()}{inner}{' ' * text[-1:].isspace()}"
