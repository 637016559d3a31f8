"""Options that several commands share, and functions that find documents and other records by part of their id."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from getpass import getpass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.output import SHORT_ID, clean
from octavo.core.errors import BadInput, NotFound
from octavo.core.types import Extraction

if TYPE_CHECKING:
    from octavo.client import Client

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Cursor = Annotated[str | None, typer.Option(help="To get the next page, pass the `next_cursor` of the previous page.")]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        "--profile",
        metavar="URL|NAME",
        help="Server to use: a URL, the name of a profile (see `octavo login`), or `local` for this machine. You can "
        "also set OCTAVO_SERVER.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="KEY", help="API key for --server. Setting OCTAVO_KEY is safer, because other users cannot see it."
    ),
]
DOCUMENT_HELP = "Document ids, full or short (as in lists). The first four characters of an id are enough."
Documents = Annotated[list[str], typer.Argument(metavar="ID", help=DOCUMENT_HELP)]
HowToRead = Annotated[
    Extraction,
    typer.Option(
        help="How the text is extracted. plain: without a model; clean: a model cleans up the plain text; pages: a "
        "model reads images of the pages. Models cost money. The plain text is always kept.",
    ),
]


PROMPT_FOR_IT = "-"

Password = Annotated[
    str | None,
    typer.Option(help="Password of an encrypted PDF. Use - to be prompted for it or to read it from standard input."),
]


def read_password(given: str | None, prompt: str = "Password: ") -> str | None:
    """Return the password. If it is `-`, prompt for it, or read it from standard input if that is not a terminal.

    This is safer than a password on the command line, which other users of the machine can see.
    """
    if given != PROMPT_FOR_IT:
        return given
    return getpass(prompt) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")


# Ids that users type --------------------------------------------------------------------------------------------------


LEAST_CHARACTERS = 4
MOST_SHOWN = 3
TITLE_CHARACTERS = 40
_PART = re.compile(r"[0-9a-f-]{4,36}")


async def find_ids(client: Client, typed: Sequence[str], *, trashed: Sequence[bool] = (False,)) -> list[UUID]:
    """Return the ids of the documents that the user named, without duplicates. Older versions can be named, too.

    `trashed` selects where to search: False for the library, True for the trash.
    """
    from octavo.client import Filters

    async def look_up(part: str) -> dict[UUID, str]:
        pages = [await client.list_documents(Filters(id=part, trashed=where)) for where in trashed]
        return {one.id: one.title for page in pages for one in page.items}

    return await find_named(typed, look_up, "document", "octavo ls")


async def find_named(
    typed: Sequence[str], look_up: Callable[[str], Awaitable[Mapping[UUID, str]]], what: str, listed_by: str
) -> list[UUID]:
    """Return the ids that the user named, without duplicates.

    Full ids are returned unchanged. For a partial id, `look_up` returns the matching ids with their titles. It need not
    return all of them: two matches already show that the partial id is ambiguous.
    """
    wanted = [read_part(one, listed_by) for one in typed]
    found = {
        part: match_part(part, await look_up(part), what, listed_by)
        for part in dict.fromkeys(wanted)
        if isinstance(part, str)
    }
    return list(dict.fromkeys(found[one] if isinstance(one, str) else one for one in wanted))


def read_part(typed: str, listed_by: str) -> UUID | str:
    part = typed.strip().lower()
    try:
        return UUID(part)
    except ValueError:
        if _PART.fullmatch(part):
            return part
    raise BadInput(
        f"{typed!r} is not an id. Type at least {LEAST_CHARACTERS} characters of one; `{listed_by}` lists them."
    )


def find_among(typed: str, known: Mapping[UUID, str], what: str, listed_by: str) -> UUID:
    """Return the id that the user named, in full or in part. `known` maps all ids to their titles."""
    part = read_part(typed, listed_by)
    return part if isinstance(part, UUID) else match_part(part, known, what, listed_by)


def match_part(part: str, known: Mapping[UUID, str], what: str, listed_by: str) -> UUID:
    """Return the only id that matches a partial id. Raises an error if none or several match."""
    matches = [one for one in known if is_part(part, str(one))]
    if not matches:
        raise NotFound(f"No {what}'s id begins or ends with {part}. `{listed_by}` lists them.")
    if len(matches) > 1:
        some = ", ".join(f"{one} ({clean(known[one])[:TITLE_CHARACTERS]})" for one in matches[:MOST_SHOWN])
        more = ", …" if len(matches) > MOST_SHOWN else ""
        raise BadInput(f"{part} matches more than one {what}: {some}{more}. Type more characters.")
    return matches[0]


def is_part(part: str, ident: str) -> bool:
    """Whether an id starts or ends with `part`, or its short form (see `short_id`) starts with `part`."""
    return ident.startswith(part) or ident.endswith(part) or ident[-SHORT_ID:].startswith(part)
