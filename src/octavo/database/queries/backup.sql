-- name: begin_backup()
-- False while another backup is running.
SELECT pg_try_advisory_xact_lock(209321987, 1);

-- name: hold_deletions()
-- From now on, until the transaction ends, all objects are kept that rows refer to. Waits for transactions that are deleting some.
SELECT pg_advisory_xact_lock(209321987, 0);

-- name: begin_snapshot()!
-- All tables are read as of this moment.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: use_plain_forms()!
-- Values are written and read in the same form, regardless of the settings of the server.
SET LOCAL client_encoding = 'UTF8';
SET LOCAL bytea_output = 'hex';
SET LOCAL datestyle = 'ISO';
SET LOCAL intervalstyle = 'postgres';
SET LOCAL extra_float_digits = 1;

-- name: tables()
-- All tables with their columns; not the record of migrations, which is made with the schema, and no columns that are computed.
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND c.relname <> 'schema_migrations' AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.relname ORDER BY c.relname;

-- name: copy_out()
COPY (SELECT {columns} FROM {table}) TO STDOUT;

-- name: copy_in()
COPY {table} ({columns}) FROM STDIN;

-- name: sequences()
-- The last values of the sequences that were used.
SELECT sequencename AS name, last_value FROM pg_sequences
WHERE schemaname = current_schema() AND last_value IS NOT NULL ORDER BY sequencename;

-- name: set_sequence(name, value)
SELECT setval(:name::text::regclass, :value);

-- name: has_content()
-- Whether somebody has used this instance.
SELECT EXISTS (SELECT FROM documents) OR EXISTS (SELECT FROM uploads) OR EXISTS (SELECT FROM users)
    OR EXISTS (SELECT FROM conversions) OR EXISTS (SELECT FROM subscribers WHERE NOT everybodys);

-- name: foreign_keys()
SELECT conrelid::regclass::text AS "table", quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition
FROM pg_constraint
WHERE contype = 'f' AND connamespace = current_schema()::regnamespace AND conparentid = 0 ORDER BY 1, 2;

-- name: drop_foreign_key()
ALTER TABLE {table} DROP CONSTRAINT {name};

-- name: add_foreign_key()
ALTER TABLE {table} ADD CONSTRAINT {name} {definition};

-- name: tables_and_partitions()
SELECT quote_ident(relname) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname <> 'schema_migrations' ORDER BY relname;

-- name: disable_triggers()
ALTER TABLE {table} DISABLE TRIGGER USER;

-- name: enable_triggers()
ALTER TABLE {table} ENABLE TRIGGER USER;

-- name: empty()
TRUNCATE {tables};

-- name: begin_epoch()
-- New events come after all events of the backup, and after those that were written since.
SELECT begin_epoch(true);

-- name: hand_back()
-- Returns the jobs to the queue that were running at the moment of the backup.
SELECT hand_back_jobs(array_agg(id), array_agg(lease_token), 'restored') FROM jobs WHERE status = 'processing' HAVING count(*) > 0;

-- name: forget_workers()!
DELETE FROM workers;

-- name: analyse()
ANALYZE;
