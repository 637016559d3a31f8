"""The bundled PostgreSQL, which starts and stops with Octavo and keeps its data in the data folder."""

from octavo.database.embedded.data_folder import DataFolder
from octavo.database.embedded.launcher import EmbeddedPostgres

__all__ = ["DataFolder", "EmbeddedPostgres"]
