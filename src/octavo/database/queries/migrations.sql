-- name: lock(number)
-- Waits until no other process migrates; released when the transaction ends.
SELECT pg_advisory_xact_lock(:number);

-- name: create_table()!
-- The applied migrations with a digest of their content.
CREATE TABLE IF NOT EXISTS schema_migrations (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    digest     text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Added only if it is missing, because ALTER TABLE waits for every transaction that reads the table.
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'schema_migrations'::regclass AND attname = 'compatible_from') THEN
        ALTER TABLE schema_migrations ADD COLUMN compatible_from integer;
    END IF;
END $$;

-- name: table_exists()
SELECT to_regclass('schema_migrations') IS NOT NULL;

-- name: applied()
-- Version 0.1 had no column `compatible_from`, so it is read in a way that also works without it.
SELECT number, name, digest, (to_jsonb(m) ->> 'compatible_from')::integer AS compatible_from
FROM schema_migrations m ORDER BY number;

-- name: record(number, name, digest, compatible_from)!
INSERT INTO schema_migrations (number, name, digest, compatible_from) VALUES (:number, :name, :digest, :compatible_from);

-- name: vector_version()
-- The installed version of pgvector, or the one that can be installed.
SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector';
