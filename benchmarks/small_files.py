"""How much processor time a small note takes, from its upload until it can be found and is compared with the others.

`python -m benchmarks.small_files [NOTES] [--alone] [--statements]`; 300 notes unless told otherwise. Eight clients add
notes of a few lines through the API, and the run ends when no job is left. With `--alone`, each note is added when the
one before is done. Printed is the processor time by kind of process,
including the time of child processes that have ended, and the time on the clock. Goals: 120 ms of processor time for a
note, and 90 s for 1,000 notes on two idle cores. With `--statements`, the database logs the statements for one more
note, and the run prints how often each was executed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import psutil
import psycopg

from benchmarks.uploads import Client, sign_in
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder

NOTES, CLIENTS, WARM = 300, 8, 20
GOAL_MS, GOAL_NOTES, GOAL_SECONDS = 120, 1000, 90
PAUSE_SECONDS, PATIENCE_SECONDS = 0.25, 900
TICKS = os.sysconf("SC_CLK_TCK")
# The places of utime, stime, cutime and cstime in /proc/<pid>/stat, behind the name of the program.
TIMES = slice(11, 15)
UNFINISHED = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')"
SEARCHABLE = """
    SELECT count(*) FROM documents d
    WHERE embeddings_ready AND EXISTS (SELECT FROM jobs j
        WHERE j.document_id = d.id AND j.kind = 'detect_connections' AND j.status = 'complete')"""
LOGGED = re.compile(
    r"^\S+ \S+ UTC \[(?P<server>\d+)\] LOG:  (?:statement|execute [^:]+): (?P<statement>.*(?:\n\t.*)*)", re.MULTILINE
)
DOCS = Path(__file__).parents[1] / "docs"
MARKUP = re.compile(r"\[([^\]]*)\]\([^)]*\)|[`*]")
LEAST_WORDS, MOST_WORDS = 20, 60


@cache
def paragraphs() -> list[str]:
    """Paragraphs of the documentation: real prose, of which no two say quite the same."""
    files = sorted([*DOCS.glob("how-to/*.md"), *DOCS.glob("decisions/0*.md")])
    found = [MARKUP.sub(r"\1", one) for file in files for one in re.split(r"\n\s*\n", file.read_text())]
    prose = [one for one in found if one[:1].isupper() and "|" not in one]
    return [one for one in prose if LEAST_WORDS <= len(one.split()) <= MOST_WORDS]


def make_note(number: int) -> bytes:
    """A heading and two paragraphs, some lines in all. The same number always gives the same note."""
    chosen = random.Random(number).sample(paragraphs(), 2)
    return "\n\n".join([f"# Note {number}", *chosen]).encode()


def add_note(client: Client, number: int) -> None:
    client.call("POST", "/api/v1/documents", [make_note(number)], x_upload_filename=f"note-{number:05}.md")


def add_notes(instance: Instance, session: str, numbers: range) -> None:
    def send(first: int) -> None:
        client = Client(instance, session)
        for number in numbers[first::CLIENTS]:
            add_note(client, number)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(send, range(CLIENTS)))


def wait_until_done(connection: psycopg.Connection, searchable: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while count(connection, UNFINISHED) or count(connection, SEARCHABLE) < searchable:
        if time.monotonic() > deadline:
            raise RuntimeError("it never ended")
        time.sleep(PAUSE_SECONDS)


def count(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    return row[0] if row else 0


def processor_seconds(instance: Instance) -> Counter[str]:
    """The seconds by kind of process, including those of ended child processes."""
    ids, spent = instance.process_ids(), Counter[str]()
    kinds = {pid: "database" if name == "database" else name.rstrip("0123456789- ") for name, pid in ids.items()}
    server = ids["database"]
    backends = psutil.Process(server).children() if server else []
    for process in {*instance.everything(), *backends}:
        try:
            words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            spent[kind_of(process, kinds)] += sum(map(int, words[TIMES]))
        except (OSError, psutil.NoSuchProcess):  # it ended; its parent has its time
            continue
    return Counter({kind: ticks / TICKS for kind, ticks in spent.items()})


def kind_of(process: psutil.Process, kinds: dict[int | None, str]) -> str:
    if process.pid in kinds:
        return kinds[process.pid]
    above = next((kinds[one.pid] for one in process.parents() if one.pid in kinds), "other")
    return "sandbox" if above in {"worker", "web"} else above


def report(spent: Counter[str], notes: int, seconds: float) -> None:
    print(f"{notes} notes in {seconds:.1f} s; processor time for a note:")
    for kind, value in sorted(spent.items(), key=lambda one: -one[1]):
        print(f"  {kind:<10} {value * 1000 / notes:8.1f} ms")
    whole = spent.total() * 1000 / notes
    print(f"  {'all':<10} {whole:8.1f} ms   {'reached' if whole <= GOAL_MS else 'NOT REACHED'} (goal: {GOAL_MS} ms)")
    print(f"  {GOAL_NOTES:,} notes would take {seconds * GOAL_NOTES / notes:.0f} s (goal: {GOAL_SECONDS} s, idle)")


def statements_of_one(instance: Instance, session: str, connection: psycopg.Connection, number: int) -> None:
    """Print the statements that the database executed for one note, and how often."""
    log = instance.data / "logs" / "postgres.log"
    done = count(connection, SEARCHABLE)
    connection.execute("ALTER SYSTEM SET log_statement = 'all'")
    connection.execute("SELECT pg_reload_conf()")
    time.sleep(1)
    begin = log.stat().st_size
    add_note(Client(instance, session), number)
    wait_until_done(connection, done + 1)
    connection.execute("ALTER SYSTEM RESET ALL")
    connection.execute("SELECT pg_reload_conf()")
    with log.open("rb") as file:
        file.seek(begin)
        text = file.read().decode()
    entries = [(found["server"], found["statement"]) for found in LOGGED.finditer(text)]
    own = str(connection.info.backend_pid)
    found = Counter(" ".join(statement.split())[:150] for server, statement in entries if server != own)
    print(f"\n{found.total()} statements for one note:")
    for statement, times in found.most_common():
        print(f"{times:5} {statement}")


def measure(instance: Instance, notes: int, *, alone: bool, statements: bool) -> None:
    session = sign_in(instance)
    with psycopg.connect(EmbeddedPostgres(DataFolder(instance.data)).connection_info(), autocommit=True) as connection:
        first = count(connection, SEARCHABLE)
        add_notes(instance, session, range(-WARM, 0))
        wait_until_done(connection, first + WARM)
        before, started = processor_seconds(instance), time.monotonic()
        if alone:
            client = Client(instance, session)
            for number in range(notes):
                add_note(client, number)
                wait_until_done(connection, first + WARM + number + 1)
        else:
            add_notes(instance, session, range(notes))
            wait_until_done(connection, first + WARM + notes)
        took = time.monotonic() - started
        report(processor_seconds(instance) - before, notes, took)
        if statements:
            statements_of_one(instance, session, connection, notes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("notes", nargs="?", type=int, default=NOTES)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--statements", action="store_true")
    given = parser.parse_args()
    with open_folder() as root, instance_in(root, requests_per_minute=1_000_000) as instance:
        instance.start()
        try:
            measure(instance, given.notes, alone=given.alone, statements=given.statements)
        except BaseException:
            print(instance.log.read_text()[-3000:], file=sys.stderr)  # it goes with the folder
            raise


if __name__ == "__main__":
    main()
