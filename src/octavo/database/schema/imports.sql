-- Imports: documents that were added together, with one notification for all of them.

-- The documents of an import are processed in the bulk lane and have one notification.
CREATE TABLE imports (
    id            uuid PRIMARY KEY,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    key           uuid,
    created_at    timestamptz NOT NULL DEFAULT engine_now(),
    last_added_at timestamptz NOT NULL DEFAULT engine_now(),
    settled_at    timestamptz
);

COMMENT ON COLUMN imports.key IS 'Chosen by the client; NULL if the server noticed that many files were added.';
COMMENT ON COLUMN imports.last_added_at IS 'When the last document was added. It is stored every two seconds at most.';
COMMENT ON COLUMN imports.settled_at IS 'When all its documents were processed and no more were added for a while.';

CREATE UNIQUE INDEX imports_key ON imports (owner_id, key) WHERE key IS NOT NULL;
CREATE INDEX imports_noticed ON imports (owner_id, last_added_at) WHERE key IS NULL;
CREATE INDEX imports_open ON imports (last_added_at) WHERE settled_at IS NULL;

-- squawk-ignore adding-foreign-key-constraint
ALTER TABLE documents ADD COLUMN import_id uuid REFERENCES imports ON DELETE SET NULL;

CREATE INDEX documents_import ON documents (import_id) WHERE import_id IS NOT NULL;
CREATE INDEX documents_importing ON documents (import_id) WHERE import_id IS NOT NULL AND status = 'pending';

-- The import that a new document belongs to; NULL for a document that somebody adds by hand. `given.import` is the key of an
-- import, chosen by the client, or `auto` for programs that choose none. Such a file belongs to an import if some of its owner's
-- documents wait already, or if another file was noticed in this way seconds ago. In a browser, this needs more waiting documents.
CREATE FUNCTION import_of(u uploads) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    by_program boolean := coalesce(u.given ->> 'import' = 'auto', false);
    chosen uuid := CASE WHEN NOT by_program THEN (u.given ->> 'import')::uuid END;
    enough integer := CASE WHEN by_program AND u.source_type = 'file' THEN 5 ELSE 20 END;
    found imports;
    waiting integer;
BEGIN
    IF chosen IS NOT NULL THEN
        SELECT * INTO found FROM imports WHERE owner_id = u.owner_id AND key = chosen;
    ELSE
        SELECT * INTO found FROM imports
        WHERE owner_id = u.owner_id AND key IS NULL AND last_added_at > at - interval '10 seconds'
        ORDER BY last_added_at DESC LIMIT 1;
        IF found.id IS NULL OR NOT by_program OR u.source_type <> 'file' THEN
            SELECT count(*) INTO waiting FROM (
                SELECT FROM jobs WHERE owner_id = u.owner_id AND status = 'queued' AND priority = 5 LIMIT 20) AS j;
            IF waiting < enough THEN
                RETURN NULL;
            END IF;
        END IF;
    END IF;
    IF found.id IS NULL THEN
        INSERT INTO imports (id, owner_id, key, created_at, last_added_at) VALUES (gen_random_uuid(), u.owner_id, chosen, at, at)
        ON CONFLICT (owner_id, key) WHERE key IS NOT NULL DO UPDATE SET last_added_at = at RETURNING * INTO found;
    ELSIF found.last_added_at < at - interval '2 seconds' OR found.settled_at IS NOT NULL THEN
        UPDATE imports SET last_added_at = at, settled_at = NULL WHERE id = found.id;
    END IF;
    RETURN found.id;
END $$;

-- How far an import is, as one line. `needy` counts documents that failed and were not cancelled, or that the
-- library lists under “Needs you”.
CREATE FUNCTION import_counts(of_import uuid, OUT added integer, OUT ready integer, OUT needy integer) LANGUAGE sql STABLE AS $$
    SELECT count(*), count(*) FILTER (WHERE status = 'completed' AND NOT needs_person),
           count(*) FILTER (WHERE needs_person OR status = 'failed' AND NOT EXISTS (
               SELECT FROM jobs j WHERE j.id = d.process_id AND j.status = 'cancelled'))
    FROM documents d CROSS JOIN LATERAL (
        SELECT (status = 'completed' AND (needs_classification OR quality IN ('partial', 'empty')
            AND NOT (quality = 'empty' AND source_type = 'image' AND (
                NOT metadata ? 'unreadable' OR metadata ->> 'unreadable_code' = 'TOO_LARGE')))) IS TRUE AS needs_person) AS n
    WHERE import_id = of_import AND deleted_at IS NULL
$$;

CREATE FUNCTION import_summary(of_import uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' · ', to_char(added, 'FM999,999,990') || ' added', to_char(ready, 'FM999,999,990') || ' ready',
                     CASE WHEN needy = 1 THEN '1 needs you' WHEN needy > 1 THEN to_char(needy, 'FM999,999,990') || ' need you' END)
    FROM import_counts(of_import)
$$;

-- Imports that are done: all documents are processed, and none was added for a minute.
CREATE FUNCTION finished_imports(at timestamptz) RETURNS SETOF imports LANGUAGE sql STABLE AS $$
    SELECT * FROM imports i
    WHERE settled_at IS NULL AND last_added_at < at - interval '1 minute'
      AND NOT EXISTS (SELECT FROM documents d WHERE d.import_id = i.id AND d.status = 'pending' AND d.deleted_at IS NULL)
$$;

-- Settles imports that are done, with an event.
CREATE FUNCTION settle_imports() RETURNS void LANGUAGE sql AS $$
    WITH done AS (
        SELECT id FROM imports WHERE settled_at IS NULL AND id IN (SELECT id FROM finished_imports(engine_now()))
        ORDER BY id FOR UPDATE SKIP LOCKED
    ), settled AS (
        UPDATE imports SET settled_at = engine_now() FROM done WHERE imports.id = done.id RETURNING imports.id, imports.owner_id
    )
    INSERT INTO events (process_id, kind, owner_id, detail)
    SELECT s.id, 'import.completed', s.owner_id, jsonb_build_object(
        'added', n.added, 'ready', n.ready, 'needs_you', n.needy, 'reason', import_summary(s.id))
    FROM settled s CROSS JOIN LATERAL import_counts(s.id) AS n
    WHERE n.added > 0
$$;
