"""Adds very many files without the job queue: reads them on one machine or a cluster, and then loads the results.

`plan` lists the files in a manifest. `run` reads them in shards of 500 files, without a database, and writes one
Parquet file for each shard. `load` copies the shards into the database, one transaction for each. Daft runs the shards,
on this machine or on a Ray cluster. `make bulk` installs Daft.
"""

from enum import StrEnum


class Engine(StrEnum):
    """Where Daft runs the shards: on this machine, or on a Ray cluster."""

    LOCAL = "local"
    RAY = "ray"
