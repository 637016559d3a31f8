"""Finds documents and keys by id, or by the beginning or end of an id."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from octavo.core.errors import BadInput, NotFound

if TYPE_CHECKING:
    from octavo.client import Client

LEAST_CHARACTERS = 4
MOST_SHOWN = 3
_PART = re.compile(r"[0-9a-f-]{4,36}")


async def find_ids(client: Client, typed: Sequence[str], *, trashed: Sequence[bool] = (False,)) -> list[UUID]:
    """Return the ids of the documents that the user named, without duplicates.

    Full ids are returned unchanged. Partial ids are looked up. `trashed` selects where to search: False for the
    library, True for the trash.
    """
    wanted = [read_part(one) for one in typed]
    parts = [one for one in wanted if isinstance(one, str)]
    known = [one for part in set(parts) for one in await list_ids(client, part, trashed)]
    found = match_parts(parts, known, "document")
    return list(dict.fromkeys(found[one] if isinstance(one, str) else one for one in wanted))


def read_part(typed: str, listed_by: str = "octavo ls") -> UUID | str:
    part = typed.strip().lower()
    try:
        return UUID(part)
    except ValueError:
        if _PART.fullmatch(part):
            return part
    raise BadInput(
        f"{typed!r} is not an id. Type at least {LEAST_CHARACTERS} characters of one; `{listed_by}` lists them."
    )


async def list_ids(client: Client, part: str, trashed: Iterable[bool]) -> list[UUID]:
    """Return the document ids that begin or end with `part`, up to one page of results.

    One page is enough: two matches already show that the part is ambiguous.
    """
    from octavo.client import Filters

    pages = [await client.list_documents(Filters(id=part, trashed=where)) for where in trashed]
    return [one.id for page in pages for one in page.items]


def match_parts(parts: Sequence[str], known: Iterable[UUID], what: str) -> dict[str, UUID]:
    """Map each partial id to the full id. Raises an error unless exactly one id begins or ends with the partial id."""
    matches: dict[str, list[UUID]] = defaultdict(list)
    for one in dict.fromkeys(known):
        text = str(one)
        for part in set(parts):
            if text.startswith(part) or text.endswith(part):
                matches[part].append(one)
    return {part: choose(part, matches[part], what) for part in parts}


def choose(part: str, matches: Sequence[UUID], what: str) -> UUID:
    if not matches:
        raise NotFound(f"No {what}'s id begins or ends with {part}.")
    if len(matches) > 1:
        some = ", ".join(map(str, matches[:MOST_SHOWN])) + (", …" if len(matches) > MOST_SHOWN else "")
        raise BadInput(f"{part} matches {len(matches)} {what}s: {some}. Type more characters.")
    return matches[0]
