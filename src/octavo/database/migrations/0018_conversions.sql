-- Conversions: the text of the mapping is kept with the conversion, batches of conversions, a stored state "needs review",
-- corrections with names that outlive the conversion, and mappings of one name that survive a merge.

INSERT INTO job_kinds (name, max_attempts, time_limit, limit_renewed_by_stage) VALUES
    ('convert_batch', 3, interval '10 minutes', true)
ON CONFLICT (name) DO NOTHING;

-- The texts of the mappings that conversions were made with. A conversion is always read with its own text, even if its mapping
-- was deleted, or if another mapping has its name after two owners were merged.
CREATE TABLE mapping_texts (
    owner_id uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    sha256   bytea NOT NULL CHECK (length(sha256) = 32),
    file     text NOT NULL,
    text     text NOT NULL,
    PRIMARY KEY (owner_id, sha256)
);

-- The text of a shipped mapping is not in the database; older conversions of one find it by its name.
INSERT INTO mapping_texts (owner_id, sha256, file, text)
SELECT DISTINCT ON (c.owner_id, c.mapping_sha256) c.owner_id, c.mapping_sha256, m.file, m.text
FROM conversions c JOIN mappings m ON m.owner_id = c.owner_id AND m.name = c.mapping
WHERE c.mapping_sha256 = sha256(convert_to(m.text, 'UTF8'));

-- Conversions of many documents, requested together. A batch has the same id as the job that enqueues its conversions.
CREATE TABLE conversion_batches (
    id           uuid PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    owner_id     uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    mapping      text NOT NULL,
    total        integer NOT NULL DEFAULT 0,
    ended        integer NOT NULL DEFAULT 0,
    existing     integer NOT NULL DEFAULT 0,
    skipped      integer NOT NULL DEFAULT 0,
    listed       boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL DEFAULT engine_now(),
    completed_at timestamptz
);

COMMENT ON COLUMN conversion_batches.total IS 'Conversions that the batch has enqueued so far.';
COMMENT ON COLUMN conversion_batches.existing IS 'Documents that had already been converted with this mapping.';
COMMENT ON COLUMN conversion_batches.skipped IS 'Documents that are not PDFs, or whose file is no longer stored.';
COMMENT ON COLUMN conversion_batches.listed IS 'All documents of the batch have been looked at.';

CREATE INDEX conversion_batches_owner ON conversion_batches (owner_id, created_at);

ALTER TABLE conversions ADD COLUMN needs_review boolean NOT NULL DEFAULT false;
-- squawk-ignore adding-foreign-key-constraint
ALTER TABLE conversions ADD COLUMN batch_id uuid REFERENCES conversion_batches ON DELETE SET NULL;

COMMENT ON COLUMN conversions.needs_review IS 'A person should look at the current revision.';

CREATE INDEX conversions_review ON conversions (owner_id, created_at, id) WHERE needs_review;
CREATE INDEX conversions_batch ON conversions (batch_id) WHERE batch_id IS NOT NULL;

ALTER TABLE revisions ADD COLUMN person text;
ALTER TABLE revisions ADD COLUMN changes jsonb;

COMMENT ON COLUMN revisions.person IS 'The name of the person who made it, as it was then.';
COMMENT ON COLUMN revisions.changes IS 'What the person changed; NULL for the engine, and for corrections of older versions.';

UPDATE revisions r SET person = u.email FROM users u WHERE u.id = r.user_id;

-- What people corrected: samples for training and evaluation, and the source for later conversions of the same content. A row
-- outlives its conversion, which expires earlier. Deleting the document or the conversion deletes it.
CREATE TABLE corrections (
    conversion_id uuid PRIMARY KEY,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id   uuid REFERENCES documents ON DELETE CASCADE,
    mapping       text NOT NULL,
    sha256        bytea NOT NULL CHECK (length(sha256) = 32),
    found         jsonb NOT NULL,
    corrected     jsonb NOT NULL,
    history       jsonb NOT NULL DEFAULT '[]',
    updated_at    timestamptz NOT NULL DEFAULT engine_now(),
    expires_at    timestamptz NOT NULL
);

COMMENT ON COLUMN corrections.history IS 'Who corrected what and when, oldest first.';

CREATE INDEX corrections_owner ON corrections (owner_id, updated_at, conversion_id);
CREATE INDEX corrections_content ON corrections (owner_id, sha256);
CREATE INDEX corrections_document ON corrections (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX corrections_due ON corrections (expires_at);

-- Counts the values of a revision, those that need review, the missing required ones, and the failed checks that nobody
-- accepted. A value is a list of name, value, confidence, place, settled, table, row, status and calibrated; a check is a list of
-- its text, whether it passed, and whether a person accepted that it failed. `lowest` is the lowest calibrated confidence.
CREATE OR REPLACE FUNCTION summarise_record(record jsonb, OUT found bigint, OUT unverified bigint, OUT lowest double precision,
                                 OUT missing bigint, OUT broken bigint) LANGUAGE sql IMMUTABLE AS $$
    SELECT count(*),
           count(*) FILTER (WHERE CASE WHEN v ->> 7 IS NULL THEN NOT (v ->> 4)::boolean AND (v ->> 2)::double precision < 1
                                       ELSE v ->> 7 = 'needs_review' END),
           min((v ->> 2)::double precision) FILTER (WHERE (v ->> 8)::boolean), jsonb_array_length(record -> 'missing'),
           (SELECT count(*) FROM jsonb_array_elements(record -> 'checks') k
            WHERE k -> 1 = 'false' AND k -> 2 IS DISTINCT FROM 'true')
    FROM jsonb_array_elements(record -> 'values') v
$$;

UPDATE conversions c SET needs_review = true
FROM revisions r WHERE r.conversion_id = c.id AND r.number = c.revision AND review_reason(r.record) IS NOT NULL;

INSERT INTO corrections (conversion_id, owner_id, document_id, mapping, sha256, found, corrected, history, updated_at, expires_at)
SELECT c.id, c.owner_id, c.document_id, c.mapping, c.sha256, first.record, last.record,
       (SELECT jsonb_agg(jsonb_build_object('number', r.number, 'person', r.person, 'at', r.created_at) ORDER BY r.number)
        FROM revisions r WHERE r.conversion_id = c.id AND r.made_by = 'person'),
       last.created_at, last.created_at + interval '365 days'
FROM conversions c
JOIN revisions first ON first.conversion_id = c.id AND first.number = 1
JOIN revisions last ON last.conversion_id = c.id AND last.number = c.revision AND last.made_by = 'person'
WHERE c.sha256 IS NOT NULL;

-- Completes a batch when all of its documents were looked at and all of its conversions have ended. Writes one event with the
-- counts, instead of one notification for each conversion.
CREATE FUNCTION complete_batch(batch uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    b conversion_batches;
    good bigint;
    doubtful bigint;
    bad bigint;
    reason text;
BEGIN
    SELECT * INTO b FROM conversion_batches WHERE id = batch FOR UPDATE;
    IF NOT FOUND OR NOT b.listed OR b.ended < b.total OR b.completed_at IS NOT NULL THEN
        RETURN;
    END IF;
    UPDATE conversion_batches SET completed_at = engine_now() WHERE id = batch;
    SELECT count(*) FILTER (WHERE j.status = 'complete'), count(*) FILTER (WHERE j.status = 'complete' AND c.needs_review),
           count(*) FILTER (WHERE j.status <> 'complete')
    INTO good, doubtful, bad
    FROM conversions c JOIN jobs j ON j.id = c.id WHERE c.batch_id = batch;
    reason := concat_ws(' · ', format('%s converted', good),
                        CASE WHEN doubtful > 0 THEN format('%s need%s review', doubtful, CASE doubtful WHEN 1 THEN 's' ELSE '' END) END,
                        CASE WHEN bad > 0 THEN format('%s failed', bad) END,
                        CASE WHEN b.existing > 0 THEN format('%s already converted', b.existing) END,
                        CASE WHEN b.skipped > 0 THEN format('%s not PDF', b.skipped) END);
    INSERT INTO events (process_id, kind, owner_id, detail)
    SELECT batch, 'conversion.batch', j.owner_id,
           jsonb_build_object('reason', reason, 'converted', good, 'needs_review', doubtful, 'failed', bad,
                              'existing', b.existing, 'skipped', b.skipped)
    FROM jobs j WHERE j.id = batch;
END $$;

-- Counts the conversions of a batch that have ended; one that is retried has not.
CREATE FUNCTION batch_follows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    over text[] := ARRAY['complete', 'failed', 'dead_letter', 'cancelled'];
    batch uuid := (SELECT batch_id FROM conversions WHERE id = NEW.id);
BEGIN
    IF batch IS NOT NULL AND (NEW.status = ANY (over)) <> (OLD.status = ANY (over)) THEN
        UPDATE conversion_batches b SET ended = b.ended + CASE WHEN NEW.status = ANY (over) THEN 1 ELSE -1 END
        WHERE b.id = batch;
        PERFORM complete_batch(batch);
    END IF;
    RETURN NULL;
END $$;
-- The name puts it after the triggers that write the events of the conversion.
CREATE TRIGGER follow_batch AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind = 'convert' AND OLD.status <> NEW.status) EXECUTE FUNCTION batch_follows();

-- The file that a document is converted from.
CREATE FUNCTION conversion_source(document uuid, OUT key text, OUT sha256 bytea, OUT bytes bigint) LANGUAGE sql STABLE AS $$
    SELECT o.key, o.sha256, o.bytes
    FROM artifacts a JOIN objects o ON o.key = a.key
    WHERE a.document_id = document AND a.kind IN ('source', 'unlocked') AND a.revision = 0
    ORDER BY a.kind = 'unlocked' DESC LIMIT 1
$$;

-- squawk-ignore ban-drop-function
DROP FUNCTION begin_conversion(jsonb, uuid, uuid, text, text, bytea, bytea, bigint, text, boolean, integer);

-- One conversion for each content and mapping of an owner: returns the existing one (made = false; the stored object is then
-- not needed), or enqueues `job`, which octavo.choreography built. A file that the library already has is shared with its
-- document: the stored object is then not needed either, and `used` is the key of the document's file.
CREATE FUNCTION begin_conversion(job jsonb, owner uuid, document uuid, name text, mapping_name text, mapping_hash bytea,
                                 mapping_file text, mapping_text text, content bytea, size bigint, object_key text,
                                 source_days integer)
RETURNS TABLE (id uuid, made boolean, used text) LANGUAGE plpgsql AS $$
DECLARE
    new_id uuid := (job ->> 'id')::uuid;
    same uuid;
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
    PERFORM enqueue_jobs(jsonb_build_array(job || jsonb_build_object('document_id', document)));
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

-- Begins the conversions of some documents of a batch, in a fixed number of statements: `jobs` has a job for each document.
-- Documents that already have such a conversion, have no PDF, or have the same content as another one are only counted.
CREATE FUNCTION begin_batch_part(batch uuid, owner uuid, jobs jsonb, mapping_hash bytea, mapping_file text, mapping_text text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    mapping_name text := (SELECT mapping FROM conversion_batches WHERE id = batch);
    usable jsonb;
    wanted jsonb;
BEGIN
    INSERT INTO mapping_texts (owner_id, sha256, file, text) VALUES (owner, mapping_hash, mapping_file, mapping_text)
    ON CONFLICT DO NOTHING;
    SELECT coalesce(jsonb_agg(jsonb_build_object('job', j, 'document', d.id, 'filename', d.filename, 'key', s.key,
                                                 'sha256', s.sha256, 'bytes', s.bytes)), '[]')
    INTO usable
    FROM jsonb_array_elements(jobs) j
    JOIN documents d ON d.id = (j ->> 'document_id')::uuid AND d.owner_id = owner AND d.deleted_at IS NULL
    CROSS JOIN LATERAL conversion_source(d.id) s
    WHERE d.source_type = 'pdf' AND s.key IS NOT NULL;
    -- The locks of begin_conversion, always in the same order.
    PERFORM pg_advisory_xact_lock(l.key) FROM (
        SELECT DISTINCT hashtextextended(format('convert:%s:%s:%s', owner, ltrim(u.sha256, '\x'), mapping_name), 0) AS key
        FROM jsonb_to_recordset(usable) AS u (sha256 text) ORDER BY 1) AS l;
    SELECT coalesce(jsonb_agg(u.part), '[]') INTO wanted
    FROM (SELECT DISTINCT ON (part ->> 'sha256') part FROM jsonb_array_elements(usable) part ORDER BY part ->> 'sha256') AS u
    WHERE NOT EXISTS (
        SELECT FROM conversions c
        WHERE c.owner_id = owner AND c.sha256 = (u.part ->> 'sha256')::bytea AND c.mapping = mapping_name
          AND c.mapping_sha256 = mapping_hash AND c.bytes = (u.part ->> 'bytes')::bigint AND c.live);
    IF wanted <> '[]' THEN
        PERFORM enqueue_jobs((SELECT jsonb_agg(w.part -> 'job') FROM jsonb_array_elements(wanted) AS w (part)));
        INSERT INTO conversions (id, owner_id, document_id, filename, mapping, mapping_sha256, sha256, bytes, live, batch_id)
        SELECT (w.job ->> 'id')::uuid, owner, w.document, w.filename, mapping_name, mapping_hash, w.sha256, w.bytes, true, batch
        FROM jsonb_to_recordset(wanted) AS w (job jsonb, document uuid, filename text, sha256 bytea, bytes bigint);
        INSERT INTO conversion_files (conversion_id, kind, key)
        SELECT (w.job ->> 'id')::uuid, 'source', w.key FROM jsonb_to_recordset(wanted) AS w (job jsonb, key text);
    END IF;
    UPDATE conversion_batches b
    SET total = b.total + jsonb_array_length(wanted),
        existing = b.existing + jsonb_array_length(usable) - jsonb_array_length(wanted),
        skipped = b.skipped + jsonb_array_length(jobs) - jsonb_array_length(usable)
    WHERE b.id = batch;
END $$;

-- Moves the mappings of a visitor to a person. If the person has another mapping with the same name, both are kept: that of the
-- visitor gets a new name, such as invoice_2_v1. Conversions keep the text of the mapping they were made with.
CREATE FUNCTION merge_mappings(visitor uuid, person uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    m record;
    stem text;
    version text;
    new_name text;
    number integer;
BEGIN
    INSERT INTO mapping_texts (owner_id, sha256, file, text)
    SELECT person, t.sha256, t.file, t.text FROM mapping_texts t WHERE t.owner_id = visitor
    ON CONFLICT DO NOTHING;
    FOR m IN SELECT * FROM mappings WHERE owner_id = visitor ORDER BY name LOOP
        CONTINUE WHEN EXISTS (SELECT FROM mappings o WHERE o.owner_id = person AND o.name = m.name AND o.text = m.text);
        new_name := m.name;
        number := 2;
        stem := regexp_replace(m.name, '_v\d+$', '');
        version := substr(m.name, length(stem) + 1);
        WHILE EXISTS (SELECT FROM mappings o WHERE o.owner_id = person AND o.name = new_name) LOOP
            new_name := format('%s_%s%s', stem, number, version);
            number := number + 1;
        END LOOP;
        UPDATE mappings SET owner_id = person, name = new_name,
            text = CASE WHEN new_name = m.name THEN m.text ELSE regexp_replace(m.text, '(^|\n)name:[^\n]*', '\1name: ' || new_name) END,
            summary = CASE WHEN m.summary IS NULL THEN NULL ELSE m.summary || jsonb_build_object('name', new_name) END
        WHERE id = m.id;
    END LOOP;
END $$;

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
    UPDATE jobs j SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM jobs same WHERE same.owner_id = person AND same.kind = j.kind AND same.key = j.key)
        THEN format('%s:%s', j.key, j.id) ELSE j.key END
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

-- One step of the relay, in one transaction and by one relay at a time: reads the next events, writes the notifications of
-- owners, adds deliveries to the queues of recipients, and selects the deliveries that can start.
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
    horizon := event_horizon();
    WITH found AS MATERIALIZED (
        SELECT e.epoch, e.id, e.at, e.process_id, e.kind, e.state_after, e.owner_id, e.document_id, e.detail
        FROM events e
        WHERE (e.epoch, e.id) > (seen.epoch, seen.id) AND e.id <= horizon
        ORDER BY e.epoch, e.id LIMIT most
    ), named AS MATERIALIZED (
        -- The owner of a job may have changed since: a visitor who signed in.
        SELECT f.*, event_type(j.kind, f.kind, f.state_after) AS type, coalesce(j.owner_id, f.owner_id) AS whose,
               -- A conversion has its own event for its failure.
               coalesce(j.kind = 'convert' AND f.kind IN ('failed', 'dead_letter'), false) AS twice
        FROM found f LEFT JOIN jobs j ON j.id = f.process_id
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
        WHERE n.type = ANY (news || errors) AND NOT n.twice AND c.batch_id IS NULL
    ), put AS (
        INSERT INTO outgoing (subscriber_id, event_id, process_id, type)
        SELECT subscriber, id, process_id, type FROM (
            SELECT s.id AS subscriber, n.* FROM named n JOIN subscribers s ON s.owner_id = n.whose AND NOT s.everybodys
            WHERE s.active AND n.type = ANY (s.events) AND n.at >= s.created_at
              AND (s.user_id IS NULL OR is_for_person(s, n.process_id, n.type))
              AND NOT (n.twice AND 'conversion.failed' = ANY (s.events))
            UNION ALL
            SELECT s.id, n.* FROM named n CROSS JOIN subscribers s
            WHERE s.everybodys AND s.active AND n.type = ANY (s.events) AND n.at >= s.created_at
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
