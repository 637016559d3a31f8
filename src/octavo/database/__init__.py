"""PostgreSQL, the only coordinator: connections, migrations, named queries, and a server that comes along."""

from octavo.database.errors import explain
from octavo.database.migrator import MigrationState, migrate, read_state, require_current
from octavo.database.patience import is_cancelled, patiently
from octavo.database.pool import Connection, Database, connect
from octavo.database.queries import Queries, load_queries
from octavo.database.rows import Row, fetch_rows

__all__ = [
    "Connection",
    "Database",
    "MigrationState",
    "Queries",
    "Row",
    "connect",
    "explain",
    "fetch_rows",
    "is_cancelled",
    "load_queries",
    "migrate",
    "patiently",
    "read_state",
    "require_current",
]
