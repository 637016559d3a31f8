"""What the database says went wrong, without what it went wrong with.

PostgreSQL shows the row that it refuses, and values that it cannot read. These are texts and names of documents, and
belong neither into logs nor into what is told of a job.
"""

from __future__ import annotations

import psycopg

# Class 22 of the codes: the message itself quotes the value.
DATA_EXCEPTION = "22"


def explain(error: BaseException) -> str:
    """One line for logs and people: what is wrong, and PostgreSQL's code for it."""
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return str(error)
    if error.sqlstate.startswith(DATA_EXCEPTION):
        return f"a value cannot be used ({error.sqlstate})"
    return f"{error.diag.message_primary} ({error.sqlstate})"
