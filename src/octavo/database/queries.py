"""Named queries from .sql files, so that no SQL is written inside Python."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import aiosql

from octavo.model.errors import Defect


class Queries:
    """The queries of one file as attributes; an unknown name is an error that lists the known ones."""

    def __init__(self, file: str, statements: dict[str, bytes]) -> None:
        self._file = file
        self._statements = statements

    def __getattr__(self, name: str) -> bytes:
        try:
            return self._statements[name]
        except KeyError:
            known = ", ".join(sorted(self._statements))
            raise Defect(f"There is no query {name} in {self._file}; it has {known}.") from None


@cache
def load_queries(file: str) -> Queries:
    """Read `queries/<file>.sql`; aiosql refuses doubled names and turns `:name` into psycopg's form."""
    text = files("octavo.database").joinpath("queries", f"{file}.sql").read_text()
    loaded = aiosql.from_str(text, "apsycopg")  # pyright: ignore[reportUnknownMemberType]
    statements = {name: str(getattr(loaded, name).sql).encode() for name in loaded.available_queries}
    return Queries(file, statements)
