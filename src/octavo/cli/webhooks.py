"""`octavo webhooks`: recipients of events, their secrets, and the events that were sent to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Cursor, Key, Server, find_among, find_named
from octavo.cli.output import local_time, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.http import Page
    from octavo.records.deliveries import DeliveryAttempt, EventType, NewSubscriber, Subscriber

app = typer.Typer(
    help="Send events to webhooks, email addresses and chats, and send past events again.", no_args_is_help=True
)

Webhook = Annotated[str, typer.Argument(metavar="ID", help="Id of the recipient, or part of it.")]


@app.command("ls")
def list_all(server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """List recipients, oldest first."""

    async def run(client: Client) -> list[Subscriber]:
        return await client.list_webhooks()

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No recipients yet. Add one with `octavo webhooks add URL`.")
    console = open_console()
    rows = [row_of(one, whole_id=not console.is_terminal) for one in found]
    return print_on(console, make_table(console, ["ID", "ADDRESS", "CHANNEL", "STATE", "EVENTS"], rows, (1, 4)))


@app.command()
def add(
    address: Annotated[str, typer.Argument(metavar="URL", help="URL or, for the mail channel, an email address.")],
    event: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="Send only this type of event, such as document.completed. Can be repeated."),
    ] = None,
    channel: Annotated[
        str, typer.Option(help="How the events are sent: webhook, mail, slack, or the channel of an extension.")
    ] = "webhook",
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Add a recipient. The secret of a webhook is shown only once."""

    async def run(client: Client) -> NewSubscriber:
        events = cast("list[EventType]", event) if event else None  # the server refuses other types
        return await client.add_webhook(address, events, channel=channel)

    return print_secret(call(Target(server, key), run), as_json=as_json)


@app.command()
def rm(
    webhooks: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of recipients, or parts of them.")],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Delete recipients and their pending deliveries."""

    async def run(client: Client) -> int:
        wanted = {await find_webhook(client, one) for one in webhooks}
        for one in wanted:
            await client.delete_webhook(one)
        return len(wanted)

    deleted = call(Target(server, key), run)
    return print_json({"changed": deleted}) if as_json else typer.echo(f"Deleted: {deleted}.")


@app.command()
def rotate(webhook: Webhook, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Replace the secret of a webhook. For a day, events are signed with both secrets."""

    async def run(client: Client) -> NewSubscriber:
        return await client.rotate_webhook(await find_webhook(client, webhook))

    return print_secret(call(Target(server, key), run), as_json=as_json)


@app.command("test")
def send_test(webhook: Webhook, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Send a test event to a recipient."""

    async def run(client: Client) -> UUID:
        return await client.test_webhook(await find_webhook(client, webhook))

    return print_job(call(Target(server, key), run), as_json=as_json)


@app.command()
def deliveries(
    webhook: Webhook,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of attempts.")] = 20,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List the attempts to send events to a recipient, newest first."""

    async def run(client: Client) -> Page[DeliveryAttempt]:
        return await client.list_deliveries(await find_webhook(client, webhook), cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    if not page.items:
        return typer.echo("Nothing has been sent yet. Send a test event with `octavo webhooks test`.")
    console = open_console()
    rows = [delivery_row(one, whole_id=not console.is_terminal) for one in page.items]
    return print_on(console, make_table(console, ["ID", "EVENT", "STATUS", "RESPONSE", "AT"], rows))


@app.command()
def replay(
    webhook: Webhook,
    delivery: Annotated[
        str, typer.Argument(metavar="DELIVERY", help="Id from `octavo webhooks deliveries`, or part of it.")
    ],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Send an event to a recipient again."""

    async def run(client: Client) -> UUID:
        recipient = await find_webhook(client, webhook)

        async def look_up(_: str) -> dict[UUID, str]:
            return {one.id: one.type for one in (await client.list_deliveries(recipient)).items}

        (found,) = await find_named([delivery], look_up, "delivery", "octavo webhooks deliveries")
        return await client.replay_delivery(recipient, found)

    return print_job(call(Target(server, key), run), as_json=as_json)


async def find_webhook(client: Client, typed: str) -> UUID:
    known = {one.id: one.address for one in await client.list_webhooks()}
    return find_among(typed, known, "recipient", "octavo webhooks ls")


# Output -------------------------------------------------------------------------------------------------------------


def print_secret(made: NewSubscriber, *, as_json: bool) -> None:
    if as_json:
        return print_json(made)
    if made.secret is None:
        return typer.echo(f"Events are sent to {made.address}.")
    typer.echo(made.secret)
    return typer.echo(
        f"This is the secret of {made.address} ({short_id(made.id)}). Save it now: it will not be shown again.",
        err=True,
    )


def print_job(job: UUID, *, as_json: bool) -> None:
    if as_json:
        return print_json({"job_id": job})
    return typer.echo(f"Queued. `octavo jobs show {job}` shows the result.")


def row_of(webhook: Subscriber, *, whole_id: bool) -> list[str]:
    state = "active" if webhook.active else "paused"
    return [
        str(webhook.id) if whole_id else short_id(webhook.id),
        webhook.address,
        webhook.channel,
        f"{state}, failing" if webhook.failing_since else state,
        ", ".join(webhook.events),
    ]


def delivery_row(attempt: DeliveryAttempt, *, whole_id: bool) -> list[str]:
    return [
        str(attempt.id) if whole_id else short_id(attempt.id),
        attempt.type,
        attempt.status,
        str(attempt.answer or attempt.error_code or ""),
        local_time(attempt.at),
    ]
