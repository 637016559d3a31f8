"""A PostgreSQL that came with the installation, started and ended with Octavo, kept in the data folder."""

from octavo.database.embedded.launcher import EmbeddedPostgres
from octavo.database.embedded.layout import DataFolder

__all__ = ["DataFolder", "EmbeddedPostgres"]
