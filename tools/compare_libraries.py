"""Compares two libraries through the API, for example before an export and after its import.

    python -m tools.compare_libraries URL KEY OTHER_URL OTHER_KEY

Prints each difference and exits with 1 if there is one. Ids differ between two libraries, so documents are paired by
their SHA-256 and by when they were added, and other records by their content.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

import httpx

# Ids, and what belongs to the place and not to the document.
_LOCAL = {
    *(
        "id",
        "document_id",
        "chunk_id",
        "process_id",
        "jobs",
        "import_id",
        "parent_id",
        "duplicate_of",
        "download_count",
    ),
    *(
        "first_downloaded_at",
        "cost_usd",
        "user_id",
        "picture",
        "url",
        "thread_id",
        "turn_id",
        "prompt_id",
        "analysis_id",
    ),
    *("updated_at", "progressed_at", "eta_seconds", "deleted_at", "queued_at", "completed_at", "result_expires_at"),
    *("source_expires_at", "segment_id", "stalled", "job_id", "batch_id", "etag", "family_id", "last_heartbeat"),
    "mean_item_seconds",
}
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Library:
    """A library, through its API."""

    http: httpx.Client

    def get(self, path: str, **query: Any) -> Any:  # noqa: ANN401 - any JSON
        answer = self.http.get(f"/api/v1{path}", params=query)
        while answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:  # the machine is busy
            time.sleep(1)
            answer = self.http.get(f"/api/v1{path}", params=query)
        if answer.status_code in {404, 409}:
            return None
        answer.raise_for_status()
        is_json = answer.headers["content-type"].startswith("application/json")
        return answer.json() if is_json else sha256(answer.content).hexdigest()

    def items(self, path: str, **query: Any) -> Iterator[Any]:  # noqa: ANN401 - any JSON
        cursor: str | None = None
        while True:
            page = as_object(self.get(path, **query, **({"cursor": cursor} if cursor else {})))
            yield from page.get("items", ())
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def documents(self) -> dict[tuple[str, str], Any]:
        found = self.items("/documents", versions="true", limit=100)
        return {(one["sha256"], one["created_at"]): one for one in found}

    def describe(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return everything about a document, without ids."""
        path = f"/documents/{document['id']}"
        lists = ("chunks", "pages", "figures", "highlights", "children", "connections")
        return {
            "record": plain(document),
            "markdown": self.get(f"{path}/markdown"),
            "source": self.get(f"{path}/source"),
            "facts": in_order(as_object(self.get(f"{path}/facts")).get("items")),
            "versions": plain(self.get(f"{path}/versions")),
            **{name: in_order(list(self.items(f"{path}/{name}", limit=100))) for name in lists},
        }

    def other_records(self) -> dict[str, Any]:
        threads = [plain(self.get(f"/threads/{one['id']}")) for one in self.items("/threads", limit=100)]
        analyses = [plain(self.get(f"/analyses/{one['id']}")) for one in self.items("/analyses", limit=100)]
        conversions = [self._conversion(one["id"]) for one in self.items("/conversions", limit=100)]
        return {
            "threads": in_order(threads),
            "analyses": in_order(analyses),
            "conversions": in_order(conversions),
            **{name: in_order(list(self.items(f"/{name}"))) for name in SIMPLE},
        }

    def _conversion(self, conversion: str) -> Any:  # noqa: ANN401 - any JSON
        path = f"/conversions/{conversion}"
        return [plain(self.get(path)), self.get(f"{path}/download"), self.get(f"{path}/source")]


# Records that are compared as their lists show them.
SIMPLE = ("collections", "fields", "rules", "views", "prompts", "mappings")


def as_object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def plain(value: object) -> object:
    """Remove ids and times that differ between two libraries. Built-in prompts are as old as their installation."""
    if isinstance(value, list):
        return [plain(one) for one in cast("list[object]", value)]
    fields = as_object(value)
    if fields.get("built_in"):
        return fields["title"]
    return {name: plain(one) for name, one in sorted(fields.items()) if name not in _LOCAL} if fields else value


def in_order(values: list[Any] | None) -> list[object]:
    return sorted(map(both_ways, map(plain, values or [])), key=repr)


def both_ways(one: object) -> object:
    """Sort the two sides of a connection, which has no direction."""
    fields = as_object(one)
    if isinstance(fields.get("source"), dict) and "target" in fields:
        return {**fields, "source": sorted([fields["source"], fields["target"]], key=repr), "target": None}
    return one


def differences(one: object, other: object, path: str = "") -> Iterator[str]:
    both: tuple[object, object] = (one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        mine, theirs = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        for name in sorted({*mine, *theirs}):
            yield from differences(mine.get(name), theirs.get(name), f"{path}.{name}")
    elif isinstance(one, list) and isinstance(other, list):
        these, those = cast("list[object]", one), cast("list[object]", other)
        if len(these) != len(those):
            yield f"{path}: {len(these)} | {len(those)} entries"
            return
        for number, pair in enumerate(zip(these, those, strict=True)):
            yield from differences(*pair, f"{path}[{number}]")
    elif one != other:
        yield f"{path}: {' | '.join(repr(value)[:200] for value in both)}"


def compare(one: Library, other: Library) -> Iterator[str]:
    mine, theirs = one.documents(), other.documents()
    for key in sorted(mine.keys() ^ theirs.keys()):
        yield f"only in one: {(mine.get(key) or theirs[key])['title']}"
    for key in sorted(mine.keys() & theirs.keys()):
        yield from differences(one.describe(mine[key]), other.describe(theirs[key]), mine[key]["title"])
    yield from differences(one.other_records(), other.other_records())


def open_library(address: str, key: str) -> Library:
    limits = httpx.Limits(max_keepalive_connections=0)  # so that nothing has to be closed
    headers = {"authorization": f"Bearer {key}"}
    return Library(httpx.Client(base_url=address, headers=headers, timeout=120, limits=limits))


def main(arguments: list[str]) -> int:
    address, key, other_address, other_key = arguments
    one, other = open_library(address, key), open_library(other_address, other_key)
    found = list(compare(one, other))
    for line in found[:MOST_SHOWN]:
        print(line)
    print(f"{len(one.documents())} documents, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
