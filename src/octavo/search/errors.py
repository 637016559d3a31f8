"""Why something cannot be searched for."""

from __future__ import annotations

from octavo.core.errors import BadInput


class NothingAsked(BadInput):
    """There is nothing to search for. Give a word, a phrase in quotation marks, or a question."""

    code = "NOTHING_ASKED"


class QueryTooLong(BadInput):
    """This is too long to search for."""

    code = "QUERY_TOO_LONG"
