"""Named queries from .sql files, so that no SQL is written inside Python."""

from __future__ import annotations

from functools import cache, cached_property
from importlib.resources import files

import aiosql

from octavo.core.errors import Defect


class Queries:
    """The queries of one file as attributes, read with the first; an unknown name is an error that lists what there is.

    aiosql refuses doubled names and turns `:name` into psycopg's form.
    """

    def __init__(self, file: str) -> None:
        self._file = file

    def __getattr__(self, name: str) -> bytes:
        try:
            return self._statements[name]
        except KeyError:
            known = ", ".join(sorted(self._statements))
            raise Defect(f"There is no query {name} in {self._file}; it has {known}.") from None

    @cached_property
    def _statements(self) -> dict[str, bytes]:
        text = files("octavo.database").joinpath("queries", f"{self._file}.sql").read_text()
        loaded = aiosql.from_str(text, "apsycopg")  # pyright: ignore[reportUnknownMemberType]
        return {name: str(getattr(loaded, name).sql).encode() for name in loaded.available_queries}


@cache
def load_queries(file: str) -> Queries:
    """Of `queries/<file>.sql`."""
    return Queries(file)
