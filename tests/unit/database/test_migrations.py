"""Which migrations are missing, and which databases are refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from octavo.core.errors import WrongDatabase
from octavo.database.migrator import AppliedMigration, Migration, known_migrations, missing_migrations, why_unfit
from tests.support.tree import ROOT

ONE = Migration(1, "one", "SELECT 1")
TWO = Migration(2, "two", "SELECT 2")


def applied(*migrations: Migration) -> dict[int, AppliedMigration]:
    return {one.number: AppliedMigration(one.number, one.name, one.digest, one.compatible_from) for one in migrations}


def test_missing_migrations_are_listed_in_order() -> None:
    assert missing_migrations([ONE, TWO], {}) == [ONE, TWO]
    assert missing_migrations([ONE, TWO], applied(ONE)) == [TWO]
    assert missing_migrations([ONE, TWO], applied(ONE, TWO)) == []


def test_a_database_of_a_newer_version_is_refused() -> None:
    with pytest.raises(WrongDatabase, match="newer version of Octavo"):
        missing_migrations([ONE], applied(ONE, TWO))


def test_a_newer_database_is_accepted_if_all_newer_migrations_are_compatible() -> None:
    expand = Migration(2, "expand", "-- Adds a column.\n-- compatible-from: 1\nSELECT 2")
    contract = Migration(3, "contract", "-- compatible-from: 2 (contract)\nSELECT 3")
    assert missing_migrations([ONE], applied(ONE, expand)) == []
    assert missing_migrations([ONE, expand], applied(ONE, expand, contract)) == []
    with pytest.raises(WrongDatabase, match="migration 3; this version has 1"):
        missing_migrations([ONE], applied(ONE, expand, contract))


BREAKING = re.compile(
    r"\b(DROP\s+(TABLE|COLUMN|FUNCTION|VIEW|TYPE|TRIGGER)|RENAME|SET\s+NOT\s+NULL|ALTER\s+COLUMN\s+\w+\s+(SET\s+DATA\s+)?TYPE)\b"
    r"|\bADD\s+COLUMN\b(?![^,;]*\bDEFAULT\b)[^,;]*\bNOT\s+NULL\b",
    re.IGNORECASE,
)


def breaks_older_code(one: Migration) -> bool:
    """Whether a migration takes something away that older code may use, although it says that it is compatible.

    A migration that is marked with `(contract)` says that the older code no longer uses it.
    """
    is_marked = one.compatible_from is not None and "(contract)" not in one.statements
    return is_marked and bool(BREAKING.search(re.sub("--.*", "", one.statements)))


@pytest.mark.parametrize(
    ("statement", "breaks"),
    [
        ("ALTER TABLE a ADD COLUMN b text;", False),
        ("ALTER TABLE a ADD COLUMN b text NOT NULL DEFAULT '';", False),
        ("CREATE TABLE a (b text NOT NULL);", False),
        ("ALTER TABLE a ADD COLUMN b text NOT NULL;", True),
        ("ALTER TABLE a DROP COLUMN b;", True),
        ("ALTER TABLE a RENAME COLUMN b TO c;", True),
        ("ALTER TABLE a ALTER COLUMN b SET NOT NULL;", True),
        ("ALTER TABLE a ALTER COLUMN b TYPE bigint;", True),
        ("DROP FUNCTION a(integer);", True),
    ],
)
def test_a_compatible_migration_removes_nothing_in_use(statement: str, breaks: bool) -> None:
    assert breaks_older_code(Migration(2, "two", f"-- compatible-from: 1\n{statement}")) is breaks
    assert not breaks_older_code(Migration(2, "two", statement))
    assert not any(breaks_older_code(one) for one in known_migrations())


def test_a_migration_that_was_changed_after_it_was_applied_is_refused() -> None:
    with pytest.raises(WrongDatabase, match="different content"):
        missing_migrations([replace(ONE, statements="SELECT 9")], applied(ONE))


def test_a_database_from_before_the_first_release_is_refused() -> None:
    """The numbers began again at the first release, so a number alone says nothing."""
    with pytest.raises(WrongDatabase, match="before the first release"):
        missing_migrations([ONE], applied(replace(ONE, name="owners", statements="SELECT 0"), TWO))


def test_the_files_of_this_version_are_numbered_without_gaps() -> None:
    assert [one.number for one in known_migrations()] == list(range(1, len(known_migrations()) + 1))


def test_released_migrations_never_change() -> None:
    """Databases that applied them would be refused. Change the schema with a new migration."""
    released = (line.split() for line in (ROOT / "tests/data/migrations.sha256").read_text().splitlines())
    known = {f"{one.number:04}_{one.name}.sql": one.digest for one in known_migrations()}
    changed = [name for digest, name in released if known.get(name) != digest]
    assert changed == []


@pytest.mark.parametrize(
    ("major", "vector", "said"),
    [
        (15, "0.8.5", "PostgreSQL 15; Octavo needs 16"),
        (18, None, "no pgvector"),
        (18, "0.7.4", "pgvector 0.7.4; Octavo needs 0.8"),
        (16, "0.8.0", None),
        (18, "0.8.5", None),
        (19, "1.0", None),
    ],
)
def test_a_server_that_is_too_old_is_refused_with_what_to_do(major: int, vector: str | None, said: str | None) -> None:
    reason = why_unfit(major, vector)
    assert (said is None and reason is None) or (said is not None and reason is not None and said in reason)
