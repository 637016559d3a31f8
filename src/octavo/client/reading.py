"""Answers of a server as records that this version knows."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from octavo.client.errors import NotOctavo
from octavo.core.pagination import Page

Record = TypeVar("Record")


def read_record(record: type[Record], answer: object) -> Record:
    """An answer in the form that this version knows."""
    return validate(reader(record), answer)


def read_page(record: type[Record], answer: object) -> Page[Record]:
    return validate(page_reader(record), answer)


def validate(form: TypeAdapter[Record], answer: object) -> Record:
    try:
        return form.validate_python(answer)
    except ValidationError as error:
        wrong = ", ".join(sorted({".".join(map(str, one["loc"])) for one in error.errors()}))
        raise NotOctavo(f"Wrong in it: {wrong or 'its form'}.") from None


@cache
def reader(record: type[Record]) -> TypeAdapter[Record]:
    return TypeAdapter(record)


@cache
def page_reader(record: type[Record]) -> TypeAdapter[Page[Record]]:
    return TypeAdapter(Page[record])  # pyright: ignore[reportInvalidTypeForm] - known only when it runs
