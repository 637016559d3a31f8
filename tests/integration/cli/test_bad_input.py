"""What a person gets wrong: one clear line that says what to do, an exit code that is not 0, nothing half-made."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest

from octavo.database.embedded import DataFolder, EmbeddedPostgres
from tests.support.instance import free_port
from tests.support.mounts import run_apart
from tests.support.postgres import as_url
from tests.support.processes import octavo_environment, processes_mentioning, run_octavo

ROOT = os.geteuid() == 0


def refused(arguments: list[str], environment: Mapping[str, str], folder: Path) -> str:
    """The one line that a command which cannot work prints."""
    result = run_octavo(arguments, environment)
    assert result.returncode not in {0, None}
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("octavo: ")
    assert not processes_mentioning(str(folder))
    return lines[0]


COMMANDS = ["up", "migrate", "doctor", "status", "stop", "web"]
WRONG = [
    ("prot", "1", "Did you mean OCTAVO_PORT?"),
    ("port", "high", "OCTAVO_PORT"),
    ("storage_url", "ftp://x", "OCTAVO_STORAGE_URL"),
    ("database_url", "oracle://x", "OCTAVO_DATABASE_URL"),
]
# Every command once and every setting once, in the short form.
SOME = [(command, *WRONG[number % len(WRONG)]) for number, command in enumerate(COMMANDS)]


@pytest.mark.parametrize(("command", "setting", "value", "said"), SOME)
def test_a_wrong_setting(command: str, setting: str, value: str, said: str, folder: Path) -> None:
    refuse_setting(command, setting, value, said, folder)


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("setting", "value", "said"), WRONG)
def test_a_wrong_setting_of_every_command(command: str, setting: str, value: str, said: str, folder: Path) -> None:
    refuse_setting(command, setting, value, said, folder)


def refuse_setting(command: str, setting: str, value: str, said: str, folder: Path) -> None:
    environment = octavo_environment(folder / "data", **{setting: value})
    assert said in refused([command], environment, folder)
    assert not (folder / "data").exists()


@pytest.mark.parametrize("command", ["up", "migrate", "doctor"])
def test_a_database_that_is_not_there(command: str, folder: Path) -> None:
    url = "postgresql://nobody:canary@127.0.0.1:1/none"
    line = refused([command], octavo_environment(folder / "data", database_url=url, port=free_port()), folder)
    assert "127.0.0.1:1" in line
    assert "canary" not in line


def test_a_port_that_is_taken(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = refused(["up"], octavo_environment(folder / "data", port=port), folder)
        assert f"Port {port}" in line
        assert "OCTAVO_PORT" in line
        assert f"Port {port}" in refused(["web"], octavo_environment(folder / "data", port=port), folder)
    assert not (folder / "data/postgres").exists()


def test_an_address_that_this_machine_does_not_have(folder: Path) -> None:
    line = refused(["up"], octavo_environment(folder / "data", host="192.0.2.1", port=free_port()), folder)
    assert "OCTAVO_HOST" in line


def test_a_data_folder_that_is_a_file(folder: Path) -> None:
    (folder / "data").write_text("mine")
    assert "OCTAVO_DATA_DIR" in refused(["up"], octavo_environment(folder / "data"), folder)
    assert (folder / "data").read_text() == "mine"


@pytest.mark.skipif(ROOT, reason="root may write everywhere; the read-only case is root's")
def test_a_data_folder_without_permission(folder: Path) -> None:
    folder.chmod(0o500)
    try:
        assert "No permission" in refused(["up"], octavo_environment(folder / "data"), folder)
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize(
    "command", ["up", *(pytest.param(one, marks=pytest.mark.long) for one in ("migrate", "doctor"))]
)
def test_a_data_folder_on_a_read_only_file_system(command: str, folder: Path) -> None:
    mount = f"mount -t tmpfs -o ro tmpfs {folder} && exec {sys.executable} -m octavo {command}"
    result = run_apart(mount, octavo_environment(folder / "data", port=free_port()))
    assert result.returncode == 1
    assert result.stderr.strip().count("\n") == 0, result.stderr
    assert "No permission to write" in result.stderr


def test_a_storage_server_that_is_not_there(folder: Path) -> None:
    settings = {"storage_url": "s3://bucket/x", "s3_endpoint": f"http://127.0.0.1:{free_port()}", "port": free_port()}
    environment = octavo_environment(folder / "data", **settings, s3_access_key="key", s3_secret_key="canary")
    line = refused(["up"], environment, folder)
    assert "canary" not in line
    assert not (folder / "data/postgres").exists()


def test_a_database_of_a_newer_version(database_info: str, folder: Path) -> None:
    with psycopg.connect(database_info, autocommit=True) as connection:
        connection.execute(b"INSERT INTO schema_migrations (number, name, digest) VALUES (999, 'later', '0')")
    environment = octavo_environment(folder / "data", database_url=as_url(database_info), port=free_port())
    for command in ("up", "migrate"):
        assert "newer version of Octavo" in refused([command], environment, folder)


def test_a_data_folder_of_another_major_version(folder: Path) -> None:
    server = EmbeddedPostgres(DataFolder(folder / "data"))
    server.start()
    server.stop()
    (folder / "data/postgres/PG_VERSION").write_text("17\n")
    environment = octavo_environment(folder / "data", port=free_port())
    for command in ("up", "migrate", "doctor"):
        assert "created by PostgreSQL 17" in refused([command], environment, folder)


def test_an_unknown_command_shows_the_way_to_help(folder: Path) -> None:
    result = run_octavo(["upp"], octavo_environment(folder / "data"))
    assert result.returncode == 2
    assert "No such command" in result.stderr
    assert "Traceback" not in result.stderr
