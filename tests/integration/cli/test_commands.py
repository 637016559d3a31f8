"""The commands as a person and as a program use them."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from octavo import __version__
from tests.support.postgres import as_url
from tests.support.processes import octavo_environment, processes_mentioning, run_octavo, wait_until

COMMANDS = ["up", "status", "stop", "web", "worker", "migrate", "doctor", "settings"]


def test_help_lists_every_command(folder: Path) -> None:
    result = run_octavo(["--help"], octavo_environment(folder / "data"))
    assert result.returncode == 0
    assert all(f" {command} " in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, folder: Path) -> None:
    result = run_octavo([command, "--help"], octavo_environment(folder / "data"))
    assert result.returncode == 0
    assert "Usage" in result.stdout
    assert not (folder / "data").exists()


def test_the_version_is_printed(folder: Path) -> None:
    assert run_octavo(["--version"], octavo_environment(folder / "data")).stdout == f"octavo {__version__}\n"


def test_migrate_works_on_the_built_in_database_and_leaves_no_process(folder: Path) -> None:
    environment = octavo_environment(folder / "data")
    assert run_octavo(["migrate"], environment).stdout.startswith("The schema is up to date")
    assert json.loads(run_octavo(["migrate", "--json"], environment).stdout)["applied"] > 0
    wait_until(lambda: not processes_mentioning(str(folder)), "the database ended after its last user")


def test_migrate_and_doctor_work_on_a_shared_database(database_info: str, folder: Path) -> None:
    environment = octavo_environment(folder / "data", database_url=as_url(database_info))
    assert run_octavo(["migrate"], environment).returncode == 0
    result = run_octavo(["doctor", "--json"], environment)
    assert result.returncode == 0, result
    found = json.loads(result.stdout)
    assert found["healthy"] is True
    assert [check["name"] for check in found["checks"]] == [
        *("data folder", "database", "schema", "jobs", "events", "caps", "schedules"),
        *("documents", "connections", "vectors", "analyses", "ledger", "files", "storage", "sandbox"),
    ]
    assert not (folder / "data/postgres").exists()


def test_doctor_finds_a_schema_that_is_behind_and_says_what_to_do(database_info: str, folder: Path) -> None:
    with psycopg.connect(database_info, autocommit=True) as connection:
        connection.execute(b"TRUNCATE schema_migrations")
    result = run_octavo(["doctor"], octavo_environment(folder / "data", database_url=as_url(database_info)))
    assert result.returncode == 1
    assert "BAD  schema" in result.stdout
    assert "octavo migrate" in result.stdout


def test_doctor_finds_a_storage_that_cannot_be_written(database_info: str, folder: Path) -> None:
    (folder / "objects").write_text("not a folder")
    environment = octavo_environment(
        folder / "data", database_url=as_url(database_info), storage_url=f"file://{folder}/objects"
    )
    result = run_octavo(["doctor"], environment)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr + result.stdout


def test_settings_are_listed_without_secrets(folder: Path) -> None:
    environment = octavo_environment(folder / "data", s3_secret_key="canary")
    for arguments in (["settings"], ["settings", "--json"]):
        result = run_octavo(arguments, environment)
        assert "OCTAVO_S3_SECRET_KEY" in result.stdout
        assert "canary" not in result.stdout


def test_status_for_programs_when_nothing_runs(folder: Path) -> None:
    result = run_octavo(["status", "--json"], octavo_environment(folder / "data"))
    assert (result.returncode, json.loads(result.stdout)) == (3, {"running": False})


def test_schedules_are_listed_and_an_unknown_one_is_reported(database_info: str, folder: Path) -> None:
    environment = octavo_environment(folder / "data", database_url=as_url(database_info))
    listed = run_octavo(["schedules", "ls", "--json"], environment)
    assert (listed.returncode, json.loads(listed.stdout)["items"]) == (0, [])
    for command in ("run", "on", "off"):
        unknown = run_octavo(["schedules", command, "nothing"], environment)
        assert (unknown.returncode, unknown.stderr.count("\n")) == (1, 1)
        assert "Schedule nothing" in unknown.stderr
