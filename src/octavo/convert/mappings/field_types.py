"""Field types: how their values are found in a text, their standard form, and their XML Schema type.

To add a type, add its finder to `FINDERS` and a line to `_TYPES`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from octavo.facts.typed_values import FINDERS, Find


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type of field, such as date.

    `find` returns all values of this type in a text. `schema` is the XML Schema type. `pattern` is a regular expression
    that matches values in standard form, such as 2024-08-15.
    """

    name: str
    find: Find
    schema: str
    pattern: str | None = None

    def accepts(self, value: str) -> bool:
        """Whether a value is in the standard form of this type. Other values would make the XML invalid."""
        if not value.strip() or (self.pattern and not re.fullmatch(self.pattern, value)):
            return False
        return self.name != "date" or _is_day(value)


def _is_day(value: str) -> bool:
    """Whether the date exists, unlike 2024-02-30. A pattern cannot check this."""
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


_DECIMAL = r"-?[0-9]+(\.[0-9]+)?"
_TYPES = (
    FieldType("amount", FINDERS["amount"], "xs:decimal", _DECIMAL),
    FieldType("number", FINDERS["number"], "xs:decimal", _DECIMAL),
    FieldType("date", FINDERS["date"], "xs:date", r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"),
    FieldType("currency", FINDERS["currency"], "xs:string", "[A-Z]{3}"),
    FieldType("identifier", FINDERS["identifier"], "xs:token"),
    FieldType("text", FINDERS["text"], "xs:string"),
)
FIELD_TYPES = {one.name: one for one in _TYPES}
