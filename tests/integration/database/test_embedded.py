"""The built-in PostgreSQL: one server for all processes, whatever was killed before."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from octavo.core.errors import DatabaseUnavailable, NotPossibleHere, WrongDatabase
from octavo.database import connect
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.database.embedded.cluster import Account
from tests.support.mounts import run_apart
from tests.support.postgres import open_folder
from tests.support.processes import octavo_environment, processes_mentioning, running, wait_until

USER = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_DFL) # a shell starts what it puts in the background with this ignored
from octavo.database import connect
from octavo.database.embedded import DataFolder, EmbeddedPostgres
server = EmbeddedPostgres(DataFolder(Path(sys.argv[1])))
server.start()
print(server.pid(), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def data(folder: Path) -> Iterator[Path]:
    yield folder / "data"
    EmbeddedPostgres(DataFolder(folder / "data")).stop()


@pytest.fixture(scope="module")
def prepared() -> Iterator[dict[int, Path]]:
    """One stopped data folder of each major version, to be copied: making one takes a second."""
    with open_folder() as root:
        folders = {major: root / str(major) for major in (16, 18)}
        for major, path in folders.items():
            server = EmbeddedPostgres(DataFolder(path), major=major)
            server.start()
            server.stop()
        yield folders


@pytest.fixture(params=[16, 18], ids=lambda major: f"postgresql{major}")
def server(request: pytest.FixtureRequest, data: Path, prepared: dict[int, Path]) -> EmbeddedPostgres:
    subprocess.run(["cp", "-a", prepared[request.param], data], check=True)
    return EmbeddedPostgres(DataFolder(data))


@pytest.fixture
def stopped(data: Path, prepared: dict[int, Path]) -> EmbeddedPostgres:
    """A server that ran before."""
    subprocess.run(["cp", "-a", prepared[18], data], check=True)
    return EmbeddedPostgres(DataFolder(data))


def query(info: str, statement: str) -> object:
    return asyncio.run(execute(info, statement))


async def execute(info: str, statement: str) -> object:
    async with await connect(info) as connection:
        cursor = await connection.execute(statement.encode())
        return await cursor.fetchone() if cursor.description else None


def user_of(data: Path) -> list[str]:
    return [sys.executable, "-c", USER, str(data)]


def server_pids(data: Path) -> list[int]:
    """All processes of the server, its keeper included."""
    return [process.pid for process in processes_mentioning(str(data))]


def test_it_starts_and_asks_for_a_password(server: EmbeddedPostgres) -> None:
    info = server.start()
    assert query(info, "SELECT 1") == (1,)
    with pytest.raises(DatabaseUnavailable, match="password"):
        query(make_conninfo(info, password="guessed"), "SELECT 1")
    parts = conninfo_to_dict(info)
    with pytest.raises(DatabaseUnavailable, match="no password"):
        query(make_conninfo(host=parts["host"], user=parts["user"], dbname=parts["dbname"]), "SELECT 1")


def test_it_does_not_listen_on_the_network(server: EmbeddedPostgres) -> None:
    assert query(server.start(), "SHOW listen_addresses") == ("",)


def test_its_files_are_closed_to_others(server: EmbeddedPostgres, data: Path) -> None:
    server.start()
    for name in ("postgres", "socket", "secrets", "run", "logs"):
        assert (data / name).stat().st_mode & 0o077 == 0, name
    assert (data / "secrets/postgres-password").stat().st_mode & 0o177 == 0


def test_text_is_utf8_and_sorted_alike_everywhere(server: EmbeddedPostgres) -> None:
    info = server.start()
    assert query(info, "SHOW server_encoding") == ("UTF8",)
    assert query(info, "SELECT 'Z' < 'a', lower('A')") == (True, "a")


def test_four_parallel_processes_share_one_server(data: Path) -> None:
    with ThreadPoolExecutor(4) as pool:

        def start(_: int) -> str:
            with running(user_of(data)) as process:
                assert process.stdout
                assert process.stdin
                pid = process.stdout.readline().strip()
                started.append(pid)
                wait_until(lambda: len(started) == 4, "four processes started the server")
                return pid

        started: list[str] = []
        pids = set(pool.map(start, range(4)))
    assert len(pids) == 1, pids


def test_the_server_ends_after_its_last_user_was_killed(data: Path) -> None:
    with running(user_of(data)) as first, running(user_of(data)) as second:
        assert first.stdout
        assert second.stdout
        pid = int(first.stdout.readline())
        assert int(second.stdout.readline()) == pid
        first.kill()
        first.wait()
        assert psutil.pid_exists(pid)
        second.kill()
        second.wait()
        wait_until(lambda: not server_pids(data), "the server and its keeper are gone")


@pytest.mark.parametrize("victim", ["postmaster", "keeper", "everything", "backends"])
def test_committed_rows_are_there_after_kill_9(server: EmbeddedPostgres, data: Path, victim: str) -> None:
    info = server.start()
    query(info, "CREATE TABLE kept (n int)")
    for round_number in range(3):
        query(info, f"INSERT INTO kept VALUES ({round_number})")
        postmaster = server.pid()
        assert postmaster
        kill(victim, postmaster, data)
        assert server.start() == info
        assert query(info, "SELECT count(*) FROM kept") == (round_number + 1,)


def kill(victim: str, postmaster: int, data: Path) -> None:
    process = psutil.Process(postmaster)
    victims = {
        "postmaster": [process],
        "keeper": [process.parent()],
        "everything": [process.parent(), process, *process.children()],
        "backends": process.children(),
    }[victim]
    for one in victims:
        assert one
        with contextlib.suppress(psutil.NoSuchProcess):  # the death of one takes others along
            one.kill()
    if victim != "backends":
        wait_until(lambda: not EmbeddedPostgres(DataFolder(data)).is_running(), "it is no longer taken for alive")


@pytest.mark.parametrize(
    "content",
    [
        "999999999\n",  # no such process
        "ours\n",  # another program has got the number
        "garbage",  # a damaged file
        "",  # an empty one
    ],
)
def test_a_stale_pid_file_does_not_stop_a_start(stopped: EmbeddedPostgres, data: Path, content: str) -> None:
    (data / "postgres/postmaster.pid").write_text(content.replace("ours", str(os.getpid())))
    assert query(stopped.start(), "SELECT 1") == (1,)


def test_a_zombie_is_not_taken_for_a_server(stopped: EmbeddedPostgres, data: Path) -> None:
    with running([sys.executable, "-c", "pass"]) as zombie:
        wait_until(lambda: psutil.Process(zombie.pid).status() == psutil.STATUS_ZOMBIE, "a zombie")
        (data / "postgres/postmaster.pid").write_text(f"{zombie.pid}\n")
        assert query(stopped.start(), "SELECT 1") == (1,)


def test_a_kill_while_the_data_directory_is_made_leaves_nothing_half_made(data: Path) -> None:
    with running(user_of(data)) as process:
        wait_until((data / "postgres.new").exists, "it began")
        process.kill()
        process.wait()
    assert not (data / "postgres").exists()
    server = EmbeddedPostgres(DataFolder(data))
    assert query(server.start(), "SELECT 1") == (1,)
    assert not list(data.glob("postgres.new*"))


def test_the_data_folder_keeps_its_major_version(data: Path) -> None:
    server = EmbeddedPostgres(DataFolder(data), major=16)
    server.start()
    server.stop()
    again = EmbeddedPostgres(DataFolder(data), major=18)
    assert query(again.start(), "SELECT current_setting('server_version_num')::int / 10000") == (16,)


def test_a_data_folder_of_an_unknown_major_is_refused_untouched(stopped: EmbeddedPostgres, data: Path) -> None:
    (data / "postgres/PG_VERSION").write_text("17\n")
    with pytest.raises(
        WrongDatabase, match="created by PostgreSQL 17, but this version of Octavo includes 16 and 18"
    ) as refused:
        stopped.start()
    assert "octavo backup PATH" in refused.value.line
    assert stopped.pid() is None


def test_a_long_path_gets_its_socket_elsewhere(folder: Path) -> None:
    data = folder / ("long" * 30)
    server = EmbeddedPostgres(DataFolder(data))
    try:
        assert query(server.start(), "SELECT 1") == (1,)
        socket_folder = server.socket_folder()
        assert not socket_folder.is_relative_to(data)
        assert socket_folder.stat().st_mode & 0o077 == 0
    finally:
        server.stop()


@pytest.mark.parametrize("times", [3, pytest.param(10, marks=pytest.mark.long)])
def test_a_process_that_ends_while_another_starts_does_not_stop_the_server(data: Path, times: int) -> None:
    """The keeper stops the server exactly when a new user arrives; the new one must get a server all the same."""
    for _ in range(times):
        with running(user_of(data)) as leaving:
            assert leaving.stdout
            leaving.stdout.readline()
            leaving.kill()
            newcomer = EmbeddedPostgres(DataFolder(data))
            assert query(newcomer.start(), "SELECT 1") == (1,)
            newcomer.release()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root borrows another account")
def test_root_gets_an_error_about_a_folder_that_the_database_cannot_enter(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(0o700)
    with pytest.raises(NotPossibleHere, match="cannot access") as refused:
        EmbeddedPostgres(DataFolder(closed / "data")).start()
    assert "OCTAVO_DATA_DIR" in refused.value.line
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root borrows another account")
def test_programs_are_copied_when_the_account_cannot_reach_the_installation(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_file: Path, _account: Account) -> bool:
        return False

    monkeypatch.setattr("octavo.database.embedded.cluster.can_run", closed)
    server = EmbeddedPostgres(DataFolder(data))
    assert query(server.start(), "SELECT extname FROM pg_extension") == ("plpgsql",)
    pid = server.pid()
    assert pid
    assert Path(psutil.Process(pid).cmdline()[0]).is_relative_to(data)
    assert query(server.connection_info(), "CREATE EXTENSION vector") is None


def test_a_full_disk_is_one_clear_line_and_leaves_nothing_half_made(folder: Path) -> None:
    """On a file system of 8 MB."""
    migrate = f"mount -t tmpfs -o size=8m,mode=755 tmpfs {folder} && {sys.executable} -m octavo migrate"
    result = run_apart(f"{migrate}; code=$?; ls -A {folder}/data; exit $code", octavo_environment(folder / "data"))
    assert result.returncode == 1, result
    assert "The disk is full" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert "postgres" not in result.stdout.split()


def test_stopping_tells_the_server_to_finish_in_good_order(stopped: EmbeddedPostgres, data: Path) -> None:
    stopped.start()
    stopped.stop()
    assert "database system is shut down" in (data / "logs/postgres.log").read_text()
    assert not server_pids(data)


def test_a_signal_from_the_terminal_does_not_reach_the_server(data: Path) -> None:
    with running(user_of(data)) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        assert os.getpgid(pid) != os.getpgid(process.pid)
        assert os.getsid(pid) != os.getsid(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait()
        wait_until(lambda: not server_pids(data), "the last user is gone, so the server is")
