"""All types by their names. What a type is called in XML Schema stands beside what its values look like."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from octavo.convert.types.amounts import find_amounts
from octavo.convert.types.currencies import find_currencies
from octavo.convert.types.dates import find_dates
from octavo.convert.types.found import Found, Habits
from octavo.convert.types.texts import find_identifiers, find_texts

Find = Callable[[str, Habits], list[Found]]


@dataclass(frozen=True, slots=True)
class FieldType:
    """`find` gives all values of this type in a text; `schema` is the type in the XML, `pattern` the one form."""

    name: str
    find: Find
    schema: str
    pattern: str | None = None

    def accepts(self, value: str) -> bool:
        """Whether a value has the one form of this type, so that the XML stays valid."""
        if not value.strip() or (self.pattern and not re.fullmatch(self.pattern, value)):
            return False
        return self.name != "date" or _is_day(value)


def _is_day(value: str) -> bool:
    """No pattern knows how long February is."""
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


_DECIMAL = r"-?[0-9]+(\.[0-9]+)?"
_TYPES = (
    FieldType("amount", find_amounts, "xs:decimal", _DECIMAL),
    FieldType("number", find_amounts, "xs:decimal", _DECIMAL),
    FieldType("date", find_dates, "xs:date", r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"),
    FieldType("currency", find_currencies, "xs:string", "[A-Z]{3}"),
    FieldType("identifier", find_identifiers, "xs:token"),
    FieldType("text", find_texts, "xs:string"),
)
FIELD_TYPES = {one.name: one for one in _TYPES}
