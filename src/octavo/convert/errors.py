"""What can be wrong with a mapping; each line names the file, the field and the reason."""

from __future__ import annotations

from octavo.core.errors import BadInput


class BadMapping(BadInput):
    """The mapping cannot be used."""

    code = "BAD_MAPPING"


class UnknownMapping(BadInput):
    """There is no mapping of this name."""

    code = "UNKNOWN_MAPPING"


class NothingFound(BadInput):
    """None of the required values is in this document. Another mapping may fit it."""

    code = "NOTHING_FOUND"
