-- name: lock(number)
-- Waits until no other process migrates; released when the connection ends.
SELECT pg_advisory_lock(:number);

-- name: unlock(number)
SELECT pg_advisory_unlock(:number);

-- name: create_table()!
-- The applied migrations with a digest of their content.
CREATE TABLE IF NOT EXISTS schema_migrations (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    digest     text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- name: table_exists()
SELECT to_regclass('schema_migrations') IS NOT NULL;

-- name: applied()
SELECT number, name, digest FROM schema_migrations ORDER BY number;

-- name: record(number, name, digest)!
INSERT INTO schema_migrations (number, name, digest) VALUES (:number, :name, :digest);

-- name: vector_version()
-- The installed version of pgvector, or the one that can be installed.
SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector';
