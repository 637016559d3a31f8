"""PostgreSQL, the only coordinator: connections, migrations, named queries, and a server that comes along."""

from octavo.database.migrator import MigrationState, migrate, read_state, require_current
from octavo.database.pool import Connection, Database, connect
from octavo.database.queries import Queries, load_queries

__all__ = [
    "Connection",
    "Database",
    "MigrationState",
    "Queries",
    "connect",
    "load_queries",
    "migrate",
    "read_state",
    "require_current",
]
