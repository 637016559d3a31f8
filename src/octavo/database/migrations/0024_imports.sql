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

-- squawk-ignore adding-foreign-key-constraint
ALTER TABLE notifications ADD COLUMN import_id uuid REFERENCES imports ON DELETE CASCADE;
COMMENT ON COLUMN notifications.import_id IS 'Of an import: it has one notification, which is updated.';
CREATE UNIQUE INDEX notifications_import ON notifications (import_id) WHERE import_id IS NOT NULL;
COMMENT ON COLUMN uploads.given IS 'What the client sent with it: title, author, source, extraction, import.';

-- Finalizes an upload in one call: the document, its job and their events, or the existing document with the same content.
-- Returns nothing if the upload changed since the caller read it: `expected_key` is where its bytes were. `process` and
-- `compare` are the jobs, built by octavo.choreography, that process the document, or compare it if it shares the results of
-- a processed duplicate. `given.extraction` requests a text written by a model, so such an upload never shares results.
--
-- A new version with the same bytes as the newest version changes nothing, so the request can be repeated. A new version with
-- the bytes of any other document shares the files of that document.
--
-- This is one function, because the files of a folder are added one by one, and most of the time for each is spent on round
-- trips to the database.
CREATE OR REPLACE FUNCTION place_upload(upload uuid, of_owner uuid, content text, expected_key text, detected text, quota bigint,
                             process jsonb, compare jsonb)
RETURNS TABLE (state text, document_id uuid, process_id uuid, duplicate_of uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    u uploads;
    newest documents;
    twin record;
    expired uuid;
    import uuid;
    lane text;
BEGIN
    -- Keep the owner from being merged, and decide one at a time which document is canonical for a content.
    PERFORM FROM owners WHERE id = of_owner FOR KEY SHARE;
    PERFORM pg_advisory_xact_lock(hashtextextended(of_owner::text || content, 0));
    SELECT * INTO u FROM uploads WHERE id = upload AND owner_id = of_owner FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no upload %', upload USING ERRCODE = 'no_data_found';
    END IF;
    IF u.state <> 'pending' OR u.object_key IS DISTINCT FROM expected_key THEN
        RETURN;
    END IF;

    IF u.version_of IS NOT NULL THEN
        -- Lock the family and the duplicates in the order of ids, like all code that changes several documents.
        PERFORM FROM documents d
        WHERE d.owner_id = of_owner AND (d.sha256 = u.sha256 OR d.family_id = (
            SELECT family_id FROM documents WHERE id = u.version_of AND owner_id = of_owner AND deleted_at IS NULL))
        ORDER BY d.id FOR NO KEY UPDATE;
        SELECT n.* INTO newest FROM documents n JOIN documents named ON named.family_id = n.family_id
        WHERE named.id = u.version_of AND named.owner_id = of_owner AND named.deleted_at IS NULL
          AND n.owner_id = of_owner AND n.deleted_at IS NULL
        ORDER BY n.version DESC LIMIT 1;
        IF newest.id IS NULL THEN
            RAISE EXCEPTION 'there is no document %', u.version_of USING ERRCODE = 'no_data_found';
        END IF;
    END IF;

    SELECT d.id, d.process_id AS process, d.status, a.key INTO twin
    FROM uploads c
    JOIN documents d ON d.id = c.document_id
    JOIN artifacts a ON a.document_id = d.id AND a.kind = 'source' AND a.revision = 0
    WHERE c.owner_id = of_owner AND c.sha256 = u.sha256 AND c.is_canonical
    FOR SHARE OF c, d, a;

    IF twin.id IS NOT NULL AND u.duplicates = 'reject' THEN
        RAISE EXCEPTION 'this content is document %', twin.id
            USING ERRCODE = 'unique_violation', CONSTRAINT = 'uploads_canonical', DETAIL = twin.id::text;
    END IF;
    IF twin.id IS NOT NULL AND u.duplicates = 'reuse' AND (newest.id IS NULL OR newest.sha256 = u.sha256) THEN
        UPDATE uploads SET state = 'deduplicated', document_id = coalesce(newest.id, twin.id),
                           process_id = coalesce(newest.process_id, twin.process), object_key = NULL,
                           finalized_at = clock_timestamp()
        WHERE id = upload RETURNING * INTO u;
        INSERT INTO events (process_id, kind, owner_id, document_id, detail)
        VALUES (u.process_id, 'deduplicated', of_owner, u.document_id, jsonb_build_object('upload', upload));
        RETURN QUERY SELECT 'deduplicated', u.document_id, u.process_id, u.document_id;
        RETURN;
    END IF;

    IF twin.id IS NULL THEN
        -- A canonical document whose source is gone becomes a duplicate of this one.
        UPDATE uploads SET is_canonical = false WHERE owner_id = of_owner AND sha256 = u.sha256 AND is_canonical
        RETURNING document_id INTO expired;
        INSERT INTO objects (key, bytes, sha256) VALUES (u.object_key, u.bytes, u.sha256);
    END IF;
    import := import_of(u);
    lane := CASE WHEN import IS NOT NULL THEN 'bulk' ELSE coalesce(process ->> 'lane', 'interactive') END;
    INSERT INTO documents (id, owner_id, process_id, title, author, filename, content_type, source_type, source_url, sha256,
                           bytes, metadata, duplicate_of, last_revision, family_id, version, import_id)
    VALUES (u.document_id, of_owner, u.process_id, u.given ->> 'title', u.given ->> 'author', u.filename, u.content_type,
            detected, u.source_url, u.sha256, u.bytes, u.given - '{title,author,extraction,import}'::text[], twin.id, 1,
            newest.family_id, coalesce((SELECT max(version) + 1 FROM documents WHERE family_id = newest.family_id), 1), import);
    IF quota < (SELECT bytes FROM owner_usage WHERE owner_id = of_owner) THEN
        RAISE EXCEPTION 'more than % bytes', quota USING ERRCODE = 'program_limit_exceeded';
    END IF;
    INSERT INTO artifacts (id, document_id, kind, key, content_type)
    VALUES (gen_random_uuid(), u.document_id, 'source', coalesce(twin.key, u.object_key), u.content_type);
    UPDATE uploads SET state = 'uploaded', is_canonical = twin.id IS NULL, finalized_at = clock_timestamp(),
                       object_key = CASE WHEN twin.id IS NULL THEN object_key END
    WHERE id = upload;
    IF expired IS NOT NULL THEN
        UPDATE documents SET duplicate_of = u.document_id, updated_at = clock_timestamp() WHERE id = expired;
    END IF;
    IF newest.id IS NOT NULL THEN
        PERFORM inherit_corrections(newest, u.document_id);
    END IF;

    -- The duplicate has no text written by a model.
    IF twin.status = 'completed' AND NOT u.given ? 'extraction' THEN
        PERFORM copy_results(twin.id, u.document_id, u.process_id);
        IF EXISTS (SELECT FROM documents d WHERE d.id = u.document_id AND d.embeddings_ready) THEN
            PERFORM enqueue_jobs(jsonb_build_array(compare || jsonb_build_object('lane', lane)));
        END IF;
    ELSE
        PERFORM enqueue_jobs(jsonb_build_array(process || jsonb_build_object('lane', lane)));
    END IF;
    IF newest.id IS NOT NULL THEN
        -- After the results were copied: a tag from a description there may be one that a person assigned here.
        INSERT INTO document_tags (document_id, tag_id)
        SELECT u.document_id, tag_id FROM document_tags WHERE document_id = newest.id AND made_by IS NULL
        ON CONFLICT (document_id, tag_id) DO UPDATE SET made_by = NULL;
        INSERT INTO events (process_id, kind, owner_id, document_id, detail)
        SELECT newest.process_id, 'superseded', of_owner, newest.id,
               jsonb_build_object('document', id, 'version', version) FROM documents WHERE id = u.document_id;
    END IF;
    RETURN QUERY SELECT 'uploaded', u.document_id, u.process_id, twin.id;
END $$;

-- The name of an owner for administrators.
CREATE FUNCTION owner_name(owner owners) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT string_agg(u.email, ', ' ORDER BY u.email) FROM memberships m JOIN users u ON u.id = m.user_id
                     WHERE m.owner_id = owner.id AND m.role = 'owner'),
                    CASE owner.kind WHEN 'anonymous' THEN 'visitor ' || owner.id ELSE owner.kind || ' account' END)
$$;

-- Moves everything of a visitor to the person who signed in, and deletes the visitor. If the person already has the content of a
-- document, the document becomes a duplicate. Returns the moved documents, so that the caller can compare them with the
-- others. Visitors have no recipients.
CREATE OR REPLACE FUNCTION merge_owner(visitor uuid, person uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moved uuid[];
BEGIN
    PERFORM FROM owners WHERE id IN (visitor, person) ORDER BY id FOR UPDATE;
    IF NOT EXISTS (SELECT FROM owners WHERE id = visitor AND kind = 'anonymous') THEN
        RAISE EXCEPTION 'owner % is not a visitor', visitor USING ERRCODE = 'check_violation';
    END IF;
    -- Jobs before documents: the order in which a job that ends locks them.
    PERFORM FROM jobs WHERE owner_id = visitor ORDER BY id FOR UPDATE;
    PERFORM resume_imports(visitor);
    UPDATE prompts SET owner_id = person WHERE owner_id = visitor;
    PERFORM merge_mappings(visitor, person);
    UPDATE conversions c SET live = false WHERE owner_id = visitor AND live AND EXISTS (
        SELECT FROM conversions o WHERE o.live AND o.owner_id = person AND o.sha256 = c.sha256 AND o.mapping = c.mapping
        AND o.mapping_sha256 = c.mapping_sha256 AND o.bytes = c.bytes);
    UPDATE conversion_batches SET owner_id = person WHERE owner_id = visitor;
    UPDATE conversions SET owner_id = person WHERE owner_id = visitor;
    UPDATE corrections SET owner_id = person WHERE owner_id = visitor;
    UPDATE documents d SET duplicate_of = twin.document_id
    FROM uploads u JOIN uploads twin ON twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical
    WHERE u.owner_id = visitor AND u.is_canonical AND d.id = u.document_id;
    UPDATE uploads u SET is_canonical = false
    WHERE owner_id = visitor AND is_canonical AND EXISTS (
        SELECT FROM uploads twin WHERE twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical);
    UPDATE uploads SET owner_id = person WHERE owner_id = visitor;
    -- Collections and tags with the same name are merged.
    UPDATE documents d SET collection_id = theirs.id
    FROM collections mine JOIN collections theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor AND d.collection_id = mine.id;
    DELETE FROM collections mine USING collections theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE collections SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO document_tags (document_id, tag_id, made_by)
    SELECT dt.document_id, theirs.id, dt.made_by FROM document_tags dt
    JOIN tags mine ON mine.id = dt.tag_id JOIN tags theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor
    ON CONFLICT DO NOTHING;
    DELETE FROM tags mine USING tags theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE tags SET owner_id = person WHERE owner_id = visitor;
    UPDATE views mine SET owner_id = person WHERE owner_id = visitor
        AND NOT EXISTS (SELECT FROM views theirs WHERE theirs.owner_id = person AND lower(theirs.name) = lower(mine.name));
    UPDATE threads SET owner_id = person WHERE owner_id = visitor;
    UPDATE jobs j SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM jobs same WHERE same.owner_id = person AND same.kind = j.kind AND same.key = j.key)
        THEN format('%s:%s', j.key, j.id) ELSE j.key END
    WHERE owner_id = visitor;
    UPDATE imports mine SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM imports same WHERE same.owner_id = person AND same.key = mine.key) THEN NULL ELSE key END
    WHERE owner_id = visitor;
    WITH moving AS (
        UPDATE documents SET owner_id = person, updated_at = clock_timestamp() WHERE owner_id = visitor RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO moved FROM moving;
    UPDATE notifications SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO connection_verdicts (owner_id, digest, verdict, decided_at)
    SELECT person, digest, verdict, decided_at FROM connection_verdicts WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    INSERT INTO connection_weights (owner_id, semantic_similarity, contradiction_detection, thematic_bridge)
    SELECT person, semantic_similarity, contradiction_detection, thematic_bridge FROM connection_weights
    WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    DELETE FROM sessions WHERE owner_id = visitor;
    DELETE FROM owners WHERE id = visitor;
    RETURN moved;
END $$;

-- One conversion for each content and mapping of an owner: returns the existing one (made = false; the stored object is then
-- not needed), or enqueues `job`, which octavo.choreography built. A file that the library already has is shared with its
-- document: the stored object is then not needed either, and `used` is the key of the document's file.
CREATE OR REPLACE FUNCTION begin_conversion(job jsonb, owner uuid, document uuid, name text, mapping_name text, mapping_hash bytea,
                                 mapping_file text, mapping_text text, content bytea, size bigint, object_key text,
                                 source_days integer)
RETURNS TABLE (id uuid, made boolean, used text) LANGUAGE plpgsql AS $$
DECLARE
    new_id uuid := (job ->> 'id')::uuid;
    same uuid;
    waiting integer;
    shared text := CASE WHEN document IS NOT NULL THEN object_key END;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(format('convert:%s:%s:%s', owner, encode(content, 'hex'), mapping_name), 0));
    IF document IS NULL THEN
        SELECT d.id, s.key INTO document, shared
        FROM documents d CROSS JOIN conversion_source(d.id) s
        WHERE d.owner_id = owner AND d.sha256 = content AND d.deleted_at IS NULL AND s.sha256 = content
        ORDER BY d.duplicate_of IS NOT NULL, d.created_at, d.id LIMIT 1;
    END IF;
    SELECT c.id INTO same FROM conversions c
    WHERE c.owner_id = owner AND c.sha256 = content AND c.mapping = mapping_name AND c.mapping_sha256 = mapping_hash
      AND c.bytes = size AND c.live;
    IF FOUND THEN
        -- The document was added, or deleted and added again, after its file was converted.
        UPDATE conversions c SET document_id = document
        WHERE c.id = same AND document IS NOT NULL
          AND NOT EXISTS (SELECT FROM documents d WHERE d.id = c.document_id AND d.deleted_at IS NULL);
        RETURN QUERY SELECT same, false, NULL::text;
        RETURN;
    END IF;
    INSERT INTO mapping_texts (owner_id, sha256, file, text) VALUES (owner, mapping_hash, mapping_file, mapping_text)
    ON CONFLICT DO NOTHING;
    -- More conversions than a person starts by hand are bulk work.
    SELECT count(*) INTO waiting FROM (
        SELECT FROM jobs j WHERE j.owner_id = owner AND j.status = 'queued' AND j.priority = 5 AND j.kind = job ->> 'kind'
        LIMIT 5) AS others;
    PERFORM enqueue_jobs(jsonb_build_array(job || jsonb_build_object(
        'document_id', document, 'lane', CASE WHEN waiting < 5 THEN 'interactive' ELSE 'bulk' END)));
    INSERT INTO conversions (id, owner_id, document_id, filename, mapping, mapping_sha256, sha256, bytes, live,
                             source_expires_at)
    VALUES (new_id, owner, document, name, mapping_name, mapping_hash, content, size, true,
            CASE WHEN shared IS NULL THEN engine_now() + make_interval(days => source_days) END);
    IF shared IS NULL THEN
        INSERT INTO objects (key, bytes, sha256) VALUES (object_key, size, content);
    END IF;
    INSERT INTO conversion_files (conversion_id, kind, key) VALUES (new_id, 'source', coalesce(shared, object_key));
    RETURN QUERY SELECT new_id, true, coalesce(shared, object_key);
END $$;

-- The public type of an event; NULL for events that are not delivered. Events of delivery jobs are not delivered. Analyses have
-- their own events, so the events of their many jobs are omitted. Conversions have their own events besides those of their jobs.
-- An event without a job belongs to a document that was
-- rejected before its job was created, or deleted permanently. A duplicate that shares results is complete when it is created.
CREATE OR REPLACE FUNCTION event_type(job_kind text, event_kind text, state_after text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN job_kind IN ('deliver', 'housekeeping') THEN NULL
        WHEN split_part(event_kind, '.', 1) IN ('analysis', 'conversion', 'import', 'webhook') AND strpos(event_kind, '.') > 0
            THEN event_kind
        WHEN job_kind = 'convert' AND event_kind IN ('downloaded', 'expired') THEN 'conversion.' || event_kind
        WHEN event_kind = 'dead_letter' THEN 'job.dead_letter'
        WHEN job_kind IN ('analyse_document', 'answer_segment', 'consolidate_answers', 'recover_analyses') THEN NULL
        ELSE CASE coalesce(job_kind, 'process_document') WHEN 'process_document' THEN 'document.' ELSE 'job.' END
             || CASE WHEN state_after = 'complete' THEN 'completed' ELSE event_kind END
    END
$$;

-- Whether there is an event to relay, an import to settle, or a delivery that ended. It only reads three indexes and assigns no
-- transaction id, because even an idle installation calls it all the time.
CREATE OR REPLACE FUNCTION relay_has_work() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    position relay;
    horizon bigint := event_horizon();
BEGIN
    SELECT * INTO position FROM relay;
    PERFORM FROM events e
    WHERE (e.epoch, e.id) > (position.epoch, position.id) AND e.id <= horizon
    ORDER BY e.epoch, e.id LIMIT 1;
    IF FOUND THEN
        RETURN true;
    END IF;
    PERFORM FROM outgoing WHERE ended ORDER BY place LIMIT 1;
    RETURN FOUND OR EXISTS (SELECT FROM finished_imports(engine_now()));
END $$;

-- Whether a recipient gets an event. People who get mail or chat messages about documents get one about an import, when it is done.
CREATE FUNCTION is_wanted(recipient subscribers, type text, import uuid, detail jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN recipient.channel = 'webhook' OR import IS NULL THEN type = ANY (recipient.events)
        WHEN type <> 'import.completed' THEN false
        ELSE recipient.events && '{import.completed,document.completed}'
             OR (detail ->> 'needs_you')::integer > 0 AND recipient.events && '{document.failed,job.dead_letter}'
    END
$$;

-- One step of the relay, in one transaction and by one relay at a time: reads the next events, writes the notifications of
-- owners, adds deliveries to the queues of recipients, and selects the deliveries that can start. The documents of an import share
-- one notification, and people get one message about all of them; only webhooks get an event for each.
CREATE OR REPLACE FUNCTION relay_events(most integer, news text[], errors text[], OUT events_read integer, OUT due jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    seen relay;
    horizon bigint;
    last_epoch bigint;
    last_id bigint;
    new_subscribers uuid[];
    new_processes uuid[];
    freed_subscribers uuid[];
    freed_processes uuid[];
BEGIN
    events_read := 0;
    due := '[]';
    SELECT * INTO seen FROM relay FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM settle_imports();
    horizon := event_horizon();
    WITH found AS MATERIALIZED (
        SELECT e.epoch, e.id, e.at, e.process_id, e.kind, e.state_after, e.owner_id, e.document_id, e.detail
        FROM events e
        WHERE (e.epoch, e.id) > (seen.epoch, seen.id) AND e.id <= horizon
        ORDER BY e.epoch, e.id LIMIT most
    ), named AS MATERIALIZED (
        -- The owner of a job may have changed since: a visitor who signed in.
        SELECT f.*, event_type(j.kind, f.kind, f.state_after) AS type, coalesce(j.owner_id, i.owner_id, f.owner_id) AS whose,
               i.id AS import,
               -- A conversion has its own event for its failure.
               coalesce(j.kind = 'convert' AND f.kind IN ('failed', 'dead_letter'), false) AS twice
        FROM found f LEFT JOIN jobs j ON j.id = f.process_id
        LEFT JOIN documents d ON d.id = f.document_id AND j.kind = 'process_document'
        LEFT JOIN imports i ON i.id = CASE WHEN f.kind = 'import.completed' THEN f.process_id ELSE d.import_id END
    ), grouped AS (
        INSERT INTO notifications (id, owner_id, event_id, process_id, import_id, type, level, created_at)
        SELECT gen_random_uuid(), (array_agg(whose))[1], max(id), import, import,
               CASE WHEN bool_or(type = 'import.completed') THEN 'import.completed' ELSE 'import.progress' END,
               CASE WHEN bool_or(type = ANY (errors)) THEN 'error' ELSE 'news' END, max(at)
        FROM named WHERE import IS NOT NULL AND (type = ANY (errors) OR type IN ('document.completed', 'import.completed'))
        GROUP BY import
        -- A finished import is news again; a failure after it was resolved is unresolved.
        ON CONFLICT (import_id) WHERE import_id IS NOT NULL DO UPDATE SET
            type = CASE WHEN EXISTS (SELECT FROM imports WHERE id = excluded.import_id AND settled_at IS NOT NULL)
                        THEN 'import.completed' ELSE excluded.type END,
            level = CASE WHEN excluded.level = 'error' THEN 'error' ELSE notifications.level END,
            created_at = CASE WHEN excluded.type = 'import.completed' THEN excluded.created_at ELSE notifications.created_at END,
            read_at = CASE WHEN excluded.type = 'import.progress' AND excluded.level = 'news' THEN notifications.read_at END,
            resolved_at = CASE WHEN excluded.level = 'news' THEN notifications.resolved_at END,
            resolved_by = CASE WHEN excluded.level = 'news' THEN notifications.resolved_by END
    ), told AS (
        INSERT INTO notifications (id, owner_id, event_id, process_id, document_id, type, level, title, error_code, reason,
                                   created_at)
        SELECT gen_random_uuid(), o.id, n.id, n.process_id, d.id, n.type,
               CASE WHEN n.type = ANY (errors) THEN 'error' ELSE 'news' END,
               coalesce(nullif(d.title, ''), d.filename, c.filename, CASE s.channel WHEN 'slack' THEN 'Slack' ELSE s.address END),
               n.detail #>> '{error,code}', coalesce(n.detail #>> '{error,message}', n.detail ->> 'reason'), n.at
        FROM named n JOIN owners o ON o.id = n.whose
        LEFT JOIN conversions c ON c.id = n.process_id LEFT JOIN subscribers s ON s.id = n.process_id
        LEFT JOIN documents d ON d.id = coalesce(c.document_id, n.document_id)
        -- A batch of conversions has one notification, when all of them have ended.
        WHERE n.type = ANY (news || errors) AND NOT n.twice AND c.batch_id IS NULL AND n.import IS NULL
    ), put AS (
        INSERT INTO outgoing (subscriber_id, event_id, process_id, type)
        SELECT subscriber, id, process_id, type FROM (
            SELECT s.id AS subscriber, n.* FROM named n JOIN subscribers s ON s.owner_id = n.whose AND NOT s.everybodys
            WHERE s.active AND is_wanted(s, n.type, n.import, n.detail) AND n.at >= s.created_at
              AND (s.user_id IS NULL OR is_for_person(s, n.process_id, n.type))
              AND NOT (n.twice AND 'conversion.failed' = ANY (s.events))
            UNION ALL
            SELECT s.id, n.* FROM named n CROSS JOIN subscribers s
            WHERE s.everybodys AND s.active AND is_wanted(s, n.type, n.import, n.detail) AND n.at >= s.created_at
              AND NOT (n.twice AND 'conversion.failed' = ANY (s.events))) AS wanted
        ORDER BY epoch, id
        RETURNING subscriber_id, process_id
    )
    SELECT (SELECT count(*) FROM found), lines.subscribers, lines.processes, l.epoch, l.id
    INTO events_read, new_subscribers, new_processes, last_epoch, last_id
    FROM (SELECT array_agg(subscriber_id) AS subscribers, array_agg(process_id) AS processes FROM put) AS lines
    LEFT JOIN LATERAL (SELECT epoch, id FROM found ORDER BY epoch DESC, id DESC LIMIT 1) AS l ON true;
    IF events_read > 0 THEN
        UPDATE relay SET epoch = last_epoch, id = last_id;
    END IF;
    -- ORDER BY makes the planner use the small index on `ended`, even before the table has statistics.
    WITH freed AS (
        DELETE FROM outgoing WHERE place = ANY (ARRAY(SELECT place FROM outgoing WHERE ended ORDER BY place LIMIT most))
        RETURNING subscriber_id, process_id
    )
    SELECT array_agg(subscriber_id), array_agg(process_id) INTO freed_subscribers, freed_processes FROM freed;
    IF new_subscribers IS NOT NULL OR freed_subscribers IS NOT NULL THEN
        due := take_due_deliveries(freed_subscribers || new_subscribers, freed_processes || new_processes);
    END IF;
END $$;
