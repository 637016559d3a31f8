"""The views of limited members: every table is either shown by one or has no rows about documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

import psycopg
import pytest
from psycopg import sql

from octavo.database import load_queries

# Tables without rows about documents, or that only code reads which checks the caller itself.
OPEN = {
    # The installation, its workers and its limits.
    *("allowances", "caps", "embedding_models", "engine_clock", "event_epochs", "job_kinds", "job_transitions"),
    *("analysis_transitions", "metric_totals", "model_settings", "relay", "schedules", "schema_migrations", "slots"),
    *("start_rates", "workers", "ai_gates", "objects", "archives"),
    # People and how they sign in. Who is no owner sees only what is their own.
    *("account_links", "api_keys", "identities", "idempotency_keys", "invitations", "memberships", "owners"),
    *("provider_sign_ins", "recovery_codes", "second_factors", "sessions", "sign_in_links", "users"),
    # Settings of the account, and its costs, which limited members are refused.
    *("ai_calls", "ai_reuses", "ai_spending", "budgets", "connection_weights", "paused_imports"),
    "provider_files",
    # Selected by the secrets of a browser, for administrators.
    "source_consents",
    # Selected by the ids of jobs that were read before.
    "job_waiting",
}
# Changes and repairs, which are made with all tables visible.
WHOLE = {
    *("doctor.sql: broken_jobs", "documents.sql: reclaim_uploads", "documents.sql: settle_contents"),
    *("repairs.sql: claim_contents", "repairs.sql: count_usage", "restoring.sql: insert_document"),
    "uploads.sql: lock_usage",
}
NOT_FOR_READING = re.compile(r"ON CONSTRAINT|\bxmax\b|CREATE TEMPORARY|^COPY|^BEGIN|^SET ", re.MULTILINE)
WORD = re.compile(r"%\((\w+)\)s")


@pytest.fixture
def connection(database_info: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_info, autocommit=True) as connection:
        yield connection


def columns(connection: psycopg.Connection, schema: str) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for relation, name, kind in connection.execute(
        """SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
        ORDER BY c.relname, a.attnum""",
        [schema],
    ):
        found.setdefault(relation, []).append((name, kind))
    return found


def test_every_table_has_a_view_for_limited_members_or_a_reason_why_not(connection: psycopg.Connection) -> None:
    tables, views = columns(connection, "public"), columns(connection, "limited")
    assert tables.keys() - OPEN == views.keys()
    assert not OPEN - tables.keys()
    assert {name: tables[name] for name in views} == views


def test_without_a_limited_member_the_views_are_empty(connection: psycopg.Connection) -> None:
    connection.execute("INSERT INTO owners (id, kind) VALUES (gen_random_uuid(), 'local')")
    connection.execute("INSERT INTO collections (id, owner_id, name) SELECT gen_random_uuid(), id, 'A' FROM owners")
    for name in columns(connection, "limited").keys() - {"prompts", "prompt_versions"}:
        rows = connection.execute(sql.SQL("SELECT FROM limited.{}").format(sql.Identifier(name))).fetchall()
        assert not rows, name


def test_every_query_can_be_planned_for_a_limited_member(connection: psycopg.Connection) -> None:
    """A view has no primary key, for example, so a query must group by all columns that it selects."""
    folder = files("octavo.database").joinpath("queries")
    broken: dict[str, str] = {}
    for file in folder.iterdir():
        queries = load_queries(file.name.removesuffix(".sql"))
        for name, statement in queries.statements.items():
            text = statement.decode()
            if NOT_FOR_READING.search(text) or problem(connection, text, limited=False):
                continue
            if error := problem(connection, text, limited=True):
                broken[f"{file.name}: {name.removesuffix('_cursor')}"] = error.splitlines()[0]
    assert broken.keys() == WHOLE, broken


def problem(connection: psycopg.Connection, text: str, *, limited: bool) -> str | None:
    names = list(dict.fromkeys(WORD.findall(text)))
    statement = WORD.sub(lambda found: f"${names.index(found[1]) + 1}", text).replace("%%", "%")
    try:
        with connection.transaction(force_rollback=True):
            if limited:
                connection.execute("SELECT limit_to(gen_random_uuid(), gen_random_uuid())")
            connection.execute(f"PREPARE tried AS {statement.strip().rstrip(';')}".encode())
            connection.execute("DEALLOCATE tried")
    except psycopg.Error as error:
        return str(error)
    return None
