"""`octavo edit` changes documents, `octavo tags` lists tags, and `octavo collections` manages collections.

The fields that can be edited are title, author, date, kind, tags, collection, expiry date, and custom fields.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.options import DOCUMENT_HELP, AsJson, Key, Server, find_among, find_ids
from octavo.cli.output import clean, make_table, open_console, print_items, print_json, print_on
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client, Document
    from octavo.records.documents import BulkAnswer, Tag
    from octavo.records.documents import Collection as DocumentCollection
    from octavo.records.search import SimilarTag

app = typer.Typer()
NOTHING = (
    "Nothing to change. Use --title, --author, --date, --kind, --tag, --remove-tag, --collection, --expires-on, "
    "--field or --clear."
)


class Field(StrEnum):
    TITLE = "title"
    AUTHOR = "author"
    DATE = "date"
    KIND = "kind"
    TAGS = "tags"
    COLLECTION = "collection"
    EXPIRES_ON = "expires_on"


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

    def as_changes(self) -> dict[str, object]:
        """Return the change as fields of the API request that edits many documents."""
        if self.replaces:
            return {"tags": self.apply([])}
        return {name: list(tags) for name, tags in (("add_tags", self.added), ("remove_tags", self.removed)) if tags}

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
    documents: Annotated[list[str] | None, typer.Argument(metavar="ID", help=DOCUMENT_HELP)] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Edit all documents that match this filter, such as tag=imported or kind=invoice. Can be repeated. "
            "The filters are those of `octavo ls`, such as after and amount_min.",
        ),
    ] = None,
    undo: Annotated[
        str | None,
        typer.Option(metavar="UNDO_ID", help="Undo an edit or a deletion of many documents, up to a week later."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="New title.")] = None,
    author: Annotated[str | None, typer.Option(help="New author.")] = None,
    date: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="New date of the document.")] = None,
    kind: Annotated[str | None, typer.Option(help="New kind, such as invoice.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Add this tag. Can be repeated.")] = None,
    remove_tag: Annotated[list[str] | None, typer.Option(help="Remove this tag. Can be repeated.")] = None,
    collection: Annotated[
        str | None, typer.Option(help="Move to this collection. It is created if it does not exist.")
    ] = None,
    expires_on: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Move the documents to the trash on this day."),
    ] = None,
    custom: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            metavar="NAME=VALUE",
            help="Set a custom field, such as Project=Coast. Without a value, clear it. Can be repeated.",
        ),
    ] = None,
    clear: Annotated[
        list[Field] | None,
        typer.Option(help="Clear this field. Can be repeated. To replace all tags, use --clear tags with --tag."),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Edit the title, author, date, kind, tags, collection, expiry date or custom fields of documents.

    Octavo never overwrites edited facts and tags.
    """
    target = Target(server, key)
    if undo is not None:
        return undo_edit(target, undo, as_json=as_json)
    day = date.date().isoformat() if date else None
    given = {Field.TITLE: title, Field.AUTHOR: author, Field.DATE: day, Field.KIND: kind, Field.COLLECTION: collection}
    given[Field.EXPIRES_ON] = expires_on.date().isoformat() if expires_on else None
    fields = {field: value for field, value in given.items() if value is not None}
    cleared, tags = set(clear or ()), TagChange(tag or (), remove_tag or (), Field.TAGS in (clear or ()))
    own_fields = dict(map(read_field, custom or ()))
    check_edit(fields, cleared, more=bool(tags or own_fields))
    if bool(documents) == bool(where):
        raise BadInput("Specify documents, or select them with --where.")
    changes: dict[str, object] = {NAMES.get(one, one.value): None for one in cleared - {Field.TAGS}}
    changes |= {NAMES.get(field, field.value): value for field, value in fields.items()}
    changes |= {"fields": own_fields} if own_fields else {}
    if where:
        return edit_matching(target, dict(map(read_filter, where)), changes | tags.as_changes(), as_json=as_json)
    return edit_named(target, documents or [], changes, tags, as_json=as_json)


def edit_named(
    target: Target, documents: list[str], changes: Mapping[str, object], tags: TagChange, *, as_json: bool
) -> None:
    async def run(client: Client) -> list[Document]:
        return [await edit_one(client, one, changes, tags) for one in await find_ids(client, documents)]

    edited = call(target, run)
    if as_json:
        return print_items(edited)
    names = f": {clean(edited[0].title)}" if len(edited) == 1 else ""
    return typer.echo(f"Edited {count_of(len(edited), 'document')}{names}.")


def edit_matching(target: Target, filters: Mapping[str, str], changes: Mapping[str, object], *, as_json: bool) -> None:
    async def run(client: Client) -> BulkAnswer:
        return await client.edit_matching(filters, changes)

    return report_matching(call(target, run), "Edited", as_json=as_json)


def delete_matching(target: Target, filters: Mapping[str, str], *, as_json: bool) -> None:
    async def run(client: Client) -> BulkAnswer:
        return await client.delete_matching(filters)

    return report_matching(call(target, run), "Moved to the trash:", as_json=as_json)


def report_matching(answer: BulkAnswer, done: str, *, as_json: bool) -> None:
    if as_json:
        return print_json(answer)
    undo = f" Undo with `octavo edit --undo {answer.undo_id}`." if answer.undo_id else ""
    typer.echo(f"{done} {count_of(answer.changed, 'document')}.{undo}")
    if answer.error:
        raise BadInput(f"The other documents were not changed. {answer.error.message} ({answer.error.code})")
    return None


def undo_edit(target: Target, change: str, *, as_json: bool) -> None:
    try:
        wanted = UUID(change)
    except ValueError:
        raise BadInput("--undo needs the id that was printed by the edit.") from None

    async def run(client: Client) -> int:
        return await client.undo_change(wanted)

    restored = call(target, run)
    return print_json({"changed": restored}) if as_json else typer.echo(f"Restored {count_of(restored, 'document')}.")


def read_filter(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name.strip() or not value.strip():
        raise BadInput(f"--where {text}: use NAME=VALUE, for example --where tag=imported.")
    return name.strip().replace("-", "_"), value.strip()


def read_field(text: str) -> tuple[str, str | None]:
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise BadInput(f"--field {text}: use NAME=VALUE, for example --field Project=Coast.")
    return name.strip(), value.strip() or None


def check_edit(fields: Mapping[Field, str], cleared: Collection[Field], *, more: bool) -> None:
    if not fields and not cleared and not more:
        raise BadInput(NOTHING)
    if both := sorted(fields.keys() & cleared):
        raise BadInput(f"--clear {both[0]} and --{both[0]} cannot be used together.")


async def edit_one(client: Client, document: UUID, changes: Mapping[str, object], tags: TagChange) -> Document:
    wanted = dict(changes)
    if Field.KIND in wanted:
        kind = wanted.pop(Field.KIND)
        await client.correct_facts(document, {"kind": None if kind is None else str(kind)})
    if tags:
        wanted["tags"] = tags.apply((await client.show_document(document)).tags)
    return await client.edit_document(document, wanted)


# Tags and collections -----------------------------------------------------------------------------------------------

lists_app = typer.Typer()
collections_app = typer.Typer(help="List, create, rename and delete collections.", no_args_is_help=True)
CollectionName = Annotated[str, typer.Argument(metavar="COLLECTION", help="Name or id of the collection.")]
MOST_DAYS = 36500


@lists_app.command()
def tags(
    similar: Annotated[
        str | None, typer.Option(metavar="TAG", help="Only tags similar in meaning to this one, most similar first.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List tags, most used first, with the number of documents. `octavo edit --tag` adds them to documents."""

    async def run(client: Client) -> Sequence[Tag | SimilarTag]:
        return await (client.similar_tags(similar) if similar else client.list_tags())

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No similar tags." if similar else "No tags yet.")
    console = open_console()
    return print_on(
        console, make_table(console, ["DOCUMENTS", "TAG"], [[str(one.documents), one.name] for one in found])
    )


@collections_app.command("ls")
def list_collections(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List collections by name, with the number of documents in each."""

    async def run(client: Client) -> list[DocumentCollection]:
        return await client.list_collections()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No collections yet. Create one with `octavo collections add NAME`.")
    console = open_console()
    rows = [[str(one.documents), one.name, f"{one.keep_days} days" if one.keep_days else ""] for one in found]
    return print_on(console, make_table(console, ["DOCUMENTS", "COLLECTION", "KEPT FOR"], rows))


@collections_app.command("add")
def add_collection(
    name: Annotated[str, typer.Argument(help="Name of the new collection.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Create a collection if it does not exist. `octavo edit --collection` moves documents to a collection."""

    async def run(client: Client) -> DocumentCollection:
        return await client.add_collection(name)

    made = call(Target(server, key), run)
    return print_json(made) if as_json else typer.echo(f"The collection {clean(made.name)} is ready.")


@collections_app.command("set")
def set_collection(
    collection: CollectionName,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    keep_days: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_DAYS,
            help="Move documents to the trash this many days after their last change; 0: never.",
        ),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Rename a collection, or set how long its documents are kept."""
    changes: dict[str, object] = {"name": name} if name is not None else {}
    changes |= {"keep_days": keep_days or None} if keep_days is not None else {}
    if not changes:
        raise BadInput("Nothing to change. Use --name or --keep-days.")

    async def run(client: Client) -> DocumentCollection:
        found = await find_collection(client, collection)
        await client.edit_collection(found, changes)
        return next(one for one in await client.list_collections() if one.id == found)

    changed = call(Target(server, key), run)
    return print_json(changed) if as_json else typer.echo(f"Changed the collection {clean(changed.name)}.")


@collections_app.command("rm")
def rm_collection(collection: CollectionName, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Delete a collection. Its documents are kept."""

    async def run(client: Client) -> None:
        await client.delete_collection(await find_collection(client, collection))

    call(Target(server, key), run)
    return print_json({"changed": 1}) if as_json else typer.echo("Deleted the collection. Its documents are kept.")


async def find_collection(client: Client, typed: str) -> UUID:
    """Find a collection by its name, its id or part of its id."""
    known = await client.list_collections()
    named = [one.id for one in known if one.name.casefold() == typed.strip().casefold()]
    names = {one.id: one.name for one in known}
    return named[0] if named else find_among(typed, names, "collection", "octavo collections ls --json")
