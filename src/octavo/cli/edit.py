"""`octavo edit`: changes the title, author, date, tags and collection of documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Documents, Key, Server
from octavo.cli.output import clean, print_items
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client, Document

app = typer.Typer()
NOTHING = "Nothing to change. Use --title, --author, --date, --tag, --remove-tag, --collection or --clear."


class Field(StrEnum):
    TITLE = "title"
    AUTHOR = "author"
    DATE = "date"
    TAGS = "tags"
    COLLECTION = "collection"


# Names of the fields in the API, where they differ.
NAMES = {Field.DATE: "document_date"}


@dataclass(frozen=True, slots=True)
class TagChange:
    """Tags to add and to remove. If `replaces` is true, all other tags are removed."""

    added: Sequence[str]
    removed: Sequence[str]
    replaces: bool

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.replaces)

    def apply(self, current: Sequence[str]) -> list[str]:
        """Apply the change to a document's tags and return the new tags.

        Tags that differ only in case are treated as the same.
        """
        kept = [] if self.replaces else list(current)
        gone = {one.strip().casefold() for one in self.removed}
        known = {one.casefold(): one for one in reversed([*kept, *(one.strip() for one in self.added)])}
        return [one for name, one in reversed(known.items()) if name not in gone]


@app.command()
def edit(  # noqa: PLR0917 - each is an option of the command
    documents: Documents,
    title: Annotated[str | None, typer.Option(help="New title.")] = None,
    author: Annotated[str | None, typer.Option(help="New author.")] = None,
    date: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="New date of the document.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Add this tag. Can be repeated.")] = None,
    remove_tag: Annotated[list[str] | None, typer.Option(help="Remove this tag. Can be repeated.")] = None,
    collection: Annotated[str | None, typer.Option(help="Move to this collection; created if it is new.")] = None,
    clear: Annotated[
        list[Field] | None,
        typer.Option(help="Clear this field. Can be repeated. To replace all tags, use --clear tags with --tag."),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Edit the title, author, date, tags or collection of documents. Edited fields are never overwritten."""
    day = date.date().isoformat() if date else None
    given = {Field.TITLE: title, Field.AUTHOR: author, Field.DATE: day, Field.COLLECTION: collection}
    fields = {field: value for field, value in given.items() if value is not None}
    cleared, tags = set(clear or ()), TagChange(tag or (), remove_tag or (), Field.TAGS in (clear or ()))
    check_edit(fields, cleared, tags)
    changes: dict[str, object] = {NAMES.get(one, one.value): None for one in cleared - {Field.TAGS}}
    changes |= {NAMES.get(field, field.value): value for field, value in fields.items()}

    async def run(client: Client) -> list[Document]:
        return [await edit_one(client, one, changes, tags) for one in await find_ids(client, documents)]

    edited = call(Target(server, key), run)
    if as_json:
        return print_items(edited)
    names = f": {clean(edited[0].title)}" if len(edited) == 1 else ""
    return typer.echo(f"Edited {count_of(len(edited), 'document')}{names}.")


def check_edit(fields: Mapping[Field, str], cleared: Collection[Field], tags: TagChange) -> None:
    if not fields and not cleared and not tags:
        raise BadInput(NOTHING)
    if both := sorted(fields.keys() & cleared):
        raise BadInput(f"--clear {both[0]} and --{both[0]} cannot be used together.")


async def edit_one(client: Client, document: UUID, changes: Mapping[str, object], tags: TagChange) -> Document:
    wanted = dict(changes)
    if tags:
        wanted["tags"] = tags.apply((await client.show_document(document)).tags)
    return await client.edit_document(document, wanted)
