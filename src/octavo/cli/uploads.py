"""`octavo uploads`: lists uploads, for example the refused ones with the reasons."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.options import AsJson, Cursor, Key, Server
from octavo.cli.output import local_time, make_table, open_console, print_items, print_on
from octavo.cli.remote import Target, call

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.pagination import Page
    from octavo.records.documents import UploadView

app = typer.Typer(help="List uploads, for example refused ones.", no_args_is_help=True)


class State(StrEnum):
    PENDING = "pending"
    UPLOADED = "uploaded"
    DEDUPLICATED = "deduplicated"
    REJECTED = "rejected"
    FAILED = "failed"
    DELETED = "deleted"


@app.command("ls")
def list_all(
    state: Annotated[State, typer.Option(help="State of the uploads.")] = State.REJECTED,
    cursor: Cursor = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of uploads.")] = 50,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List refused uploads with their reason, or uploads in another state, newest first."""

    async def run(client: Client) -> Page[UploadView]:
        return await client.list_uploads(state.value, cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    if not page.items:
        return typer.echo(f"No {state.value} uploads.")
    console = open_console()
    print_on(console, make_table(console, ["AT", "FILE", "REASON"], [row_of(one) for one in page.items], (1, 2)))
    return typer.echo(f"More: --cursor {page.next_cursor}") if page.next_cursor else None


def row_of(upload: UploadView) -> list[str]:
    reason = f"{upload.error.message} ({upload.error.code})" if upload.error else str(upload.document_id or "")
    return [local_time(upload.created_at), upload.filename, reason]
