"""Access to PostgreSQL, which coordinates all processes: connections, migrations, queries, and the bundled server."""

from octavo.database.migrator import MigrationState, migrate, newest_known, read_state, require_current
from octavo.database.pool import (
    Actor,
    Connection,
    Database,
    ThreadConnection,
    Viewer,
    act_as,
    allow_changes,
    connect,
    current_viewer,
    explain,
    is_cancelled,
    lasting_transaction,
    retry_until_available,
    see_everything,
)
from octavo.database.queries import Queries, Row, fetch_rows, load_queries, read_clock

__all__ = [
    "Actor",
    "Connection",
    "Database",
    "MigrationState",
    "Queries",
    "Row",
    "ThreadConnection",
    "Viewer",
    "act_as",
    "allow_changes",
    "connect",
    "current_viewer",
    "explain",
    "fetch_rows",
    "is_cancelled",
    "lasting_transaction",
    "load_queries",
    "migrate",
    "newest_known",
    "read_clock",
    "read_state",
    "require_current",
    "retry_until_available",
    "see_everything",
]
