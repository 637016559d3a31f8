"""PgBouncer in transaction mode in front of a test's database. It is a system package, so it may be missing."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.support.instance import free_port
from tests.support.processes import wait_until

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
# Fewer than the processes of any test, so that they share them.
SERVER_CONNECTIONS = 6
CONFIGURATION = """
[databases]
{name} = host={host} user={user} password='{password}' connect_query='SET idle_in_transaction_session_timeout = 15000'

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {most}
max_client_conn = 1000
logfile = {folder}/pgbouncer.log
"""


@dataclass(frozen=True, slots=True)
class Pooler:
    port: int
    name: str

    @property
    def info(self) -> str:
        return f"host=127.0.0.1 port={self.port} dbname={self.name} user=octavo password=any"

    @property
    def url(self) -> str:
        return f"postgresql://octavo:any@127.0.0.1:{self.port}/{quote(self.name)}"


def find_pgbouncer() -> str | None:
    return shutil.which("pgbouncer", path=PATH)


@contextmanager
def pooler_for(connection_info: str, folder: Path, most: int = SERVER_CONNECTIONS) -> Generator[Pooler]:
    """Run PgBouncer as the account that owns the socket of the server; it refuses to run as root."""
    parts = {name: str(value) for name, value in conninfo_to_dict(connection_info).items()}
    account = Path(parts["host"]).stat().st_uid
    port, home = free_port(), folder / "pooler"
    home.mkdir()
    os.chown(home, account, -1)
    file = home / "pgbouncer.ini"
    chosen = {"name": parts["dbname"], "host": parts["host"], "user": parts["user"], "password": parts["password"]}
    file.write_text(CONFIGURATION.format(**chosen, port=port, most=most, folder=home))
    file.chmod(0o600)
    os.chown(file, account, -1)
    pgbouncer = find_pgbouncer()
    assert pgbouncer
    user, group = (account, pwd.getpwuid(account).pw_gid) if os.getuid() == 0 else (None, None)
    process = subprocess.Popen([pgbouncer, "-q", str(file)], stderr=subprocess.DEVNULL, user=user, group=group)
    try:
        pooler = Pooler(port, parts["dbname"])
        wait_until(lambda: _answers(pooler, process), "the pooler answers")
        yield pooler
    finally:
        process.kill()
        process.wait()


def _answers(pooler: Pooler, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "PgBouncer ended"
    try:
        psycopg.connect(pooler.info).close()
    except psycopg.OperationalError:
        return False
    return True
