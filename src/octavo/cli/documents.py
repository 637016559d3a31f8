"""`octavo ls`, `show`, `facts`, `rm`, `restore`, `retry`, `cancel`, `reembed`: commands for documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.costs import DryRun, PlannedDocument, plan_documents, print_plan
from octavo.cli.edit import delete_matching, read_filter
from octavo.cli.options import (
    DOCUMENT_HELP,
    AsJson,
    Cursor,
    Documents,
    HowToRead,
    Key,
    Password,
    Server,
    find_ids,
    read_password,
)
from octavo.cli.output import (
    local_time,
    make_facts,
    make_table,
    open_console,
    print_items,
    print_json,
    print_on,
    short_id,
    short_time,
)
from octavo.cli.remote import Target, call, is_folder, run_restore
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of, format_bytes
from octavo.core.types import Extraction

if TYPE_CHECKING:
    from octavo.client import Client, Document, Filters, Job, Retried
    from octavo.client.documents import BulkAction
    from octavo.core.http import Page
    from octavo.records.documents import FactView

MOST_LISTED = 500
# Types of documents that can contain other files.
WITH_PARTS = frozenset({"archive", "eml", "msg"})

FACT_LABELS = {"iban": "IBAN", "vat_id": "VAT id", "doi": "DOI", "isbn": "ISBN"}

app = typer.Typer()


class Status(StrEnum):
    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"


# Reading -----------------------------------------------------------------------------------------------------------


@app.command()
def ls(  # noqa: PLR0917 - each is an option of the command
    status: Annotated[Status | None, typer.Option(help="Only documents with this status.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only documents with this tag.")] = None,
    collection: Annotated[str | None, typer.Option(help="Only documents in this collection.")] = None,
    q: Annotated[
        str | None, typer.Option("--q", "-q", help="Only documents with this text in the title, file name or author.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only documents of this kind, such as invoice.")] = None,
    sender: Annotated[
        str | None, typer.Option(help="Only documents from this sender. Part of the name is enough.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only documents dated on or after this day, month or year.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only documents dated before this day, month or year.")
    ] = None,
    amount_min: Annotated[float | None, typer.Option(help="Only documents with at least this amount.")] = None,
    amount_max: Annotated[float | None, typer.Option(help="Only documents with at most this amount.")] = None,
    language: Annotated[str | None, typer.Option(help="Only documents in this language, such as en.")] = None,
    field: Annotated[
        str | None,
        typer.Option(metavar="NAME[:VALUE]", help="Only documents with this custom field, such as Project:Coast."),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            help="Sort order: newest, oldest, title, kind, sender, date, amount, size, language, collection or state. "
            "Some orders can be reversed with a minus sign, such as -date."
        ),
    ] = None,
    trashed: Annotated[bool, typer.Option("--trashed", help="List the trash.")] = False,
    versions: Annotated[bool, typer.Option("--versions", help="Include older versions.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED, help="Maximum number of documents.")] = 50,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List documents, newest first or in the order of --sort."""
    from octavo.client import Filters

    chosen = status.value if status else None
    filters = Filters(
        q=q,
        status=chosen,
        tag=tag,
        collection=collection,
        trashed=trashed,
        versions=versions,
        kind=kind,
        sender=sender,
        before=before,
        after=after,
        amount_min=amount_min,
        amount_max=amount_max,
        language=language,
        field=field,
        sort=sort,
    )

    async def run(client: Client) -> Page[Document]:
        return await client.list_documents(filters, cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    return print_page(page, filters)


@app.command()
def show(
    document: Annotated[str, typer.Argument(metavar="ID", help="Document id, or part of it.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show one document: its fields, the files it contains, and the progress of its processing."""

    async def run(client: Client) -> tuple[Document, Job | None, list[Document], list[FactView]]:
        (wanted,) = await find_ids(client, [document])
        found = await client.show_document(wanted)
        job = await client.show_job(found.process_id) if found.status == "pending" else None
        parts = await client.list_children(wanted) if found.source_type in WITH_PARTS else None
        return found, job, parts.items if parts else [], await client.list_facts(wanted)

    found, job, parts, facts = call(Target(server, key), run)
    if as_json:
        return print_json({**asdict(found), "facts": facts})
    listed = "\n".join(f"{part.id} {part.part_name or part.filename}" for part in parts)
    shown = facts_of(found, job)
    more = {name: lines for name, lines in fact_lines(facts).items() if name not in shown}
    own = {f"{name} (custom field)" if name in shown | more else name: value for name, value in found.fields.items()}
    return print_on(open_console(), make_facts(shown | more | own | {"Parts": listed}))


def fact_lines(facts: Sequence[FactView]) -> dict[str, str | None]:
    """Return the facts to print: the text for each label, with one line per fact.

    A document can have several facts with the same label, such as identifiers.
    """
    found: dict[str, str | None] = {}
    for one in facts:
        label = FACT_LABELS.get(one.name) or one.name.replace("_", " ").capitalize()
        found[label] = f"{found[label]}\n{fact_line(one)}" if label in found else fact_line(one)
    return found


def fact_line(fact: FactView) -> str:
    """Format a fact as `717.97 (page 1, checked)`.

    If the fact suggests a value for custom fields, the names of these fields are added.
    """
    place = f"page {fact.page}, " if fact.page else ""
    suggested = f", suggested for {', '.join(fact.suggests)}" if fact.suggests else ""
    return f"{fact.value} ({place}{'from the file' if fact.source == 'metadata' else fact.status}{suggested})"


@app.command()
def facts(
    document: Annotated[str, typer.Argument(metavar="ID", help="Document id, or part of it.")],
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Correct a fact, such as the sender. Leave the value empty if there is none. Can be repeated.",
        ),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show or correct the facts of a document: kind, sender, number, date, amount.

    Octavo never overwrites corrections.
    """
    corrected = dict(map(read_fact, values or ()))

    async def run(client: Client) -> list[FactView]:
        (wanted,) = await find_ids(client, [document])
        return await (client.correct_facts(wanted, corrected) if corrected else client.list_facts(wanted))

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    return print_on(open_console(), make_facts(fact_lines(found)))


def read_fact(text: str) -> tuple[str, str | None]:
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise BadInput(f"--set {text}: use NAME=VALUE, for example --set sender=Coolblue.")
    return name.strip(), value.strip() or None


# Changing ----------------------------------------------------------------------------------------------------------


@app.command()
def rm(
    documents: Annotated[list[str] | None, typer.Argument(metavar="ID", help=DOCUMENT_HELP)] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Move all documents that match this filter, such as tag=draft, to the trash. Can be repeated. The "
            "filters are those of `octavo ls`.",
        ),
    ] = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete the documents permanently, even if they are not in the trash.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Move documents to the trash or, with --purge, delete them permanently."""
    if bool(documents) == bool(where):
        raise BadInput("Specify documents, or select them with --where.")
    if where and purge:
        raise BadInput("--purge cannot be combined with --where. Move the documents to the trash first.")
    if where or not documents:
        return delete_matching(Target(server, key), dict(map(read_filter, where or ())), as_json=as_json)
    if purge and not yes:
        confirm_purge(len(documents), as_json)
    if purge:
        changed = change(Target(server, key), "purge", documents, trashed=(False, True))
        return report_changed(changed, "Deleted permanently", as_json)
    changed = change(Target(server, key), "delete", documents)
    return report_changed(changed, "Moved to the trash (undo with `octavo restore`)", as_json)


@app.command()
def restore(
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="ID... | PATH", help="Document ids (at least four characters of each), or a backup folder."
        ),
    ],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Restore documents from the trash, or restore a backup.

    To restore a backup, pass the folder that `octavo backup` wrote. The installation must be empty and stopped.
    """
    if len(documents) == 1 and is_folder(documents[0]):
        return run_restore(Path(documents[0]).expanduser(), as_json=as_json)
    return report_changed(change(Target(server, key), "restore", documents, trashed=(True,)), "Restored", as_json)


@app.command()
def reembed(
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Embedding model, such as `openai:text-embedding-3-small` or `local`. Default: the server's model.",
        ),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Create missing embeddings, for example after the model was changed. Files are not read again."""

    async def run(client: Client) -> int:
        return await client.reembed(model)

    documents = call(Target(server, key), run)
    if as_json:
        return print_json({"queued": documents})
    return typer.echo(f"Queued {count_of(documents, 'document')}.")


@app.command()
def retry(
    documents: Documents,
    from_stage: Annotated[
        str | None,
        typer.Option(
            metavar="STAGE",
            help="Repeat this stage and all later ones. `classified` generates a new title, summary and tags.",
        ),
    ] = None,
    extraction: HowToRead = Extraction.PLAIN,
    password: Password = None,
    dry_run: DryRun = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Retry failed documents, or process complete ones again."""
    if dry_run:
        return show_plan(Target(server, key), documents, extraction, as_json=as_json)
    secret = read_password(password)

    async def run(client: Client) -> list[Retried]:
        ids = await find_ids(client, documents)
        return [await client.retry_document(one, from_stage, password=secret, extraction=extraction) for one in ids]

    retried = call(Target(server, key), run)
    if as_json:
        return print_items(retried)
    again = sum(one.state == "pending" for one in retried)
    skipped = len(retried) - again
    nothing = f" Skipped {skipped}: a retry would change nothing." if skipped else ""
    return typer.echo(f"Queued again: {again}.{nothing}")


def show_plan(target: Target, documents: list[str], extraction: Extraction, *, as_json: bool) -> None:
    async def run(client: Client) -> list[PlannedDocument]:
        return await plan_documents(client, await find_ids(client, documents))

    print_plan(call(target, run), extraction, as_json=as_json)


@app.command()
def cancel(documents: Documents, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Cancel the processing of documents. `octavo retry` resumes it."""

    async def run(client: Client) -> list[Job]:
        found = [await client.show_document(one) for one in await find_ids(client, documents)]
        return [await client.cancel_job(one.process_id) for one in found]

    cancelled = call(Target(server, key), run)
    if as_json:
        return print_items(cancelled)
    return typer.echo(f"Cancelled: {len(cancelled)}.")


def change(target: Target, action: BulkAction, documents: list[str], trashed: tuple[bool, ...] = (False,)) -> int:
    async def run(client: Client) -> int:
        return await client.change_documents(action, await find_ids(client, documents, trashed=trashed))

    return call(target, run)


def confirm_purge(count: int, as_json: bool) -> None:
    """Ask the user to confirm the permanent deletion. If the output is not a terminal, --yes is required instead."""
    if as_json or not open_console().is_terminal:
        raise BadInput("Confirm the permanent deletion with --yes.")
    if not typer.confirm(f"Delete {count_of(count, 'document')} permanently? This cannot be undone."):
        typer.echo("Nothing was deleted.")
        raise typer.Exit(1)


def report_changed(changed: int, what: str, as_json: bool) -> None:
    if as_json:
        return print_json({"changed": changed})
    return typer.echo(f"{what}: {changed}.")


# Output ------------------------------------------------------------------------------------------------------------


def print_page(page: Page[Document], filters: Filters) -> None:
    if not page.items:
        return typer.echo(explain_empty(filters))
    console = open_console()
    now = datetime.now(UTC)
    head = ["ID", "TITLE", "STATUS", "QUALITY", "LENGTH", "ADDED"]
    rows = [row_of(one, now, whole_id=not console.is_terminal) for one in page.items]
    print_on(console, make_table(console, head, rows))
    if page.next_cursor:
        typer.echo(
            f"There are more documents. Use --limit (up to {MOST_LISTED}), or --cursor with the next_cursor of --json."
        )
    return None


def explain_empty(filters: Filters) -> str:
    """Return the message to print if no documents are listed."""
    from octavo.client import Filters

    if filters == Filters():
        return "No documents yet. Add some with `octavo add PATH`."
    if filters == Filters(trashed=True):
        return "The trash is empty."
    return f"No documents match. To list all, use `octavo ls{' --trashed' if filters.trashed else ''}`."


def row_of(document: Document, now: datetime, *, whole_id: bool) -> list[str]:
    return [
        str(document.id) if whole_id else short_id(document.id),
        f"{document.title} (version {document.version})" if document.version > 1 else document.title,
        document.status,
        (document.quality or "").replace("_", " "),
        length_of(document),
        short_time(document.created_at, now),
    ]


def length_of(document: Document) -> str:
    """Return the number of pages of a document or, if it has no pages, the number of words."""
    if document.page_count:
        return count_of(document.page_count, "page")
    return count_of(document.word_count, "word") if document.word_count else ""


def facts_of(document: Document, job: Job | None) -> dict[str, str | None]:
    return {
        "Title": document.title,
        "Id": str(document.id),
        "Status": f"{document.status}{', needs classification' if needs_classification(document) else ''}",
        "Missing": ", ".join(part.replace("_", " ") for part in document.missing),
        "Reason": f"{document.error.message} ({document.error.code})" if document.error else None,
        "Stage": describe_stage(job, document.source_type) if job else None,
        "Quality": (document.quality or "").replace("_", " "),
        "Quality reason": document.quality_reason,
        "Length": length_of(document),
        "Author": document.author,
        "Date": str(document.document_date or ""),
        "Language": document.language,
        "Summary": document.summary,
        "Tags": ", ".join(document.tags),
        "Described by": document.described_by,
        "Text by": text_by(document),
        "Collection": document.collection,
        "File": f"{document.filename}, {format_bytes(document.bytes)}, {document.source_type}",
        "From": document.source_url or str(document.metadata.get("source") or ""),
        "Version": f"{document.version}{'; a newer version exists' if document.superseded else ''}",
        "Revision": str(document.revision or ""),
        "Copy of": str(document.duplicate_of or ""),
        "Also added as": ", ".join(document.also_named),
        "Part of": f"{document.parent_id} ({document.part_name})" if document.parent_id else None,
        "Files left out": str(document.metadata.get("parts_left_out") or ""),
        "SHA-256": document.sha256,
        "Cost": f"{document.cost_usd:.4f} USD" if document.cost_usd else None,
        "Added": local_time(document.created_at),
        "Deleted": local_time(document.deleted_at) if document.deleted_at else None,
    }


def needs_classification(document: Document) -> bool:
    return document.needs_classification and (not document.missing or "description" in document.missing)


def text_by(document: Document) -> str | None:
    """Name the model that wrote the text, and list the pages or sections that were extracted without a model.

    Returns None if no model was used.
    """
    kept = document.metadata.get("kept_plain")
    writer = document.metadata.get("text_by")
    return f"{writer}; as read from the file: {kept}" if kept else writer


def describe_stage(job: Job, source_type: str) -> str:
    from octavo.cli.watch import activity_of, explain, progress_of

    parts = [activity_of(job, source_type), progress_of(job), explain(job)]
    return ", ".join(part for part in parts if part)
