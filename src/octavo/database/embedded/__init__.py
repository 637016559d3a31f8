"""The bundled PostgreSQL, which starts and stops with Octavo and keeps its data in the data folder."""

from octavo.database.embedded.launcher import EmbeddedPostgres
from octavo.database.embedded.layout import DataFolder

__all__ = ["DataFolder", "EmbeddedPostgres"]
