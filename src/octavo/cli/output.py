"""Data for programs: records as JSON, in the form in which the API answers them."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from octavo.core.pagination import Page


def print_json(value: object) -> None:
    from pydantic_core import to_json

    typer.echo(to_json(value, indent=2).decode())


def print_items(records: Sequence[object], next_cursor: str | None = None) -> None:
    """A list, also an empty one."""
    print_json(Page(list(records), next_cursor))
