-- Conversions of business documents to XML with a mapping. A conversion has the same id as its job.

-- Mappings of an owner. A mapping is never changed; a changed mapping is saved under a name with a new version.
CREATE TABLE mappings (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    file       text NOT NULL,
    text       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Name, title, fields and required fields; NULL for a mapping that was added before this column existed.
    summary    jsonb,
    UNIQUE (owner_id, name)
);

-- The texts of the mappings that conversions were made with. A conversion is always read with its own text, even if its mapping
-- was deleted, or if another mapping has its name after two owners were merged.
CREATE TABLE mapping_texts (
    owner_id uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    sha256   bytea NOT NULL CHECK (length(sha256) = 32),
    file     text NOT NULL,
    text     text NOT NULL,
    PRIMARY KEY (owner_id, sha256)
);

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

CREATE TABLE conversions (
    id                  uuid PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    owner_id            uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id         uuid REFERENCES documents ON DELETE SET NULL,
    filename            text NOT NULL,
    mapping             text NOT NULL,
    mapping_sha256      bytea CHECK (length(mapping_sha256) = 32),
    sha256              bytea CHECK (length(sha256) = 32),
    bytes               bigint CHECK (bytes > 0),
    live                boolean NOT NULL,
    revision            integer NOT NULL DEFAULT 0,
    download_count      integer NOT NULL DEFAULT 0,
    first_downloaded_at timestamptz,
    source_expires_at   timestamptz,
    result_expires_at   timestamptz,
    archived_at         timestamptz,
    created_at          timestamptz NOT NULL DEFAULT engine_now(),
    needs_review        boolean NOT NULL DEFAULT false,
    batch_id            uuid REFERENCES conversion_batches ON DELETE SET NULL,
    CONSTRAINT live_is_whole CHECK (NOT live OR num_nonnulls(mapping_sha256, sha256, bytes) = 3)
);

COMMENT ON COLUMN conversions.live IS 'It is the conversion of its content and mapping: submitting the same again returns this one.';
COMMENT ON COLUMN conversions.revision IS 'The current revision; 0 while there is none.';
COMMENT ON COLUMN conversions.needs_review IS 'A person should look at the current revision.';
COMMENT ON COLUMN conversions.archived_at IS 'When its result expired and was deleted.';

CREATE UNIQUE INDEX conversions_same ON conversions (owner_id, sha256, mapping, mapping_sha256, bytes) WHERE live;
CREATE INDEX conversions_owner_created ON conversions (owner_id, created_at, id);
CREATE INDEX conversions_document ON conversions (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX conversions_review ON conversions (owner_id, created_at, id) WHERE needs_review;
CREATE INDEX conversions_batch ON conversions (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX conversions_source_due ON conversions (source_expires_at) WHERE source_expires_at IS NOT NULL;
CREATE INDEX conversions_result_due ON conversions (result_expires_at) WHERE result_expires_at IS NOT NULL;

-- The values that the engine found, and corrections by people, in the format of the engine.
CREATE TABLE revisions (
    conversion_id uuid NOT NULL REFERENCES conversions ON DELETE CASCADE,
    number        integer NOT NULL CHECK (number > 0),
    record        jsonb NOT NULL,
    made_by       text NOT NULL CHECK (made_by IN ('engine', 'person')),
    user_id       uuid REFERENCES users ON DELETE SET NULL,
    created_at    timestamptz NOT NULL DEFAULT engine_now(),
    person        text,
    changes       jsonb,
    PRIMARY KEY (conversion_id, number)
);

COMMENT ON COLUMN revisions.person IS 'The name of the person who made it, as it was then.';
COMMENT ON COLUMN revisions.changes IS 'What the person changed; NULL for the engine, and for corrections of older versions.';

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

CREATE TABLE conversion_files (
    conversion_id uuid NOT NULL REFERENCES conversions ON DELETE CASCADE,
    kind          text NOT NULL CHECK (kind IN ('source', 'result_xml')),
    key           text NOT NULL REFERENCES objects,
    PRIMARY KEY (conversion_id, kind)
);

CREATE INDEX conversion_files_key ON conversion_files (key);
CREATE TRIGGER conversion_files_refer AFTER INSERT OR DELETE ON conversion_files
    FOR EACH ROW EXECUTE FUNCTION count_references();

-- Keeps `live` up to date. A failed conversion is not live, so the same file can be submitted again. A retried one is live
-- again, unless another conversion of the same content is live.
CREATE FUNCTION conversion_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE conversions c SET live = NEW.status NOT IN ('failed', 'dead_letter', 'cancelled')
        AND c.archived_at IS NULL AND num_nonnulls(c.mapping_sha256, c.sha256, c.bytes) = 3
        AND NOT EXISTS (SELECT FROM conversions o WHERE o.live AND o.id <> c.id AND o.owner_id = c.owner_id
                        AND o.sha256 = c.sha256 AND o.mapping = c.mapping AND o.mapping_sha256 = c.mapping_sha256
                        AND o.bytes = c.bytes)
    WHERE c.id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER conversion_follows AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind = 'convert' AND OLD.status <> NEW.status
          AND (NEW.status IN ('failed', 'dead_letter', 'cancelled') OR OLD.status IN ('failed', 'dead_letter', 'cancelled')))
    EXECUTE FUNCTION conversion_follows();

-- Counts the values of a revision, those that need review, the missing required ones, and the failed checks that nobody
-- accepted. A value is a list of name, value, confidence, place, settled, table, row, status and calibrated; a check is a list of
-- its text, whether it passed, and whether a person accepted that it failed. `lowest` is the lowest calibrated confidence.
CREATE FUNCTION summarise_record(record jsonb, OUT found bigint, OUT unverified bigint, OUT lowest double precision,
                                 OUT missing bigint, OUT broken bigint) LANGUAGE sql IMMUTABLE AS $$
    SELECT count(*),
           count(*) FILTER (WHERE CASE WHEN v ->> 7 IS NULL THEN NOT (v ->> 4)::boolean AND (v ->> 2)::double precision < 1
                                       ELSE v ->> 7 = 'needs_review' END),
           min((v ->> 2)::double precision) FILTER (WHERE (v ->> 8)::boolean), jsonb_array_length(record -> 'missing'),
           (SELECT count(*) FROM jsonb_array_elements(record -> 'checks') k
            WHERE k -> 1 = 'false' AND k -> 2 IS DISTINCT FROM 'true')
    FROM jsonb_array_elements(record -> 'values') v
$$;

-- Why a person must review a revision; NULL if there is nothing to review.
CREATE FUNCTION review_reason(record jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN s.unverified > 0 THEN format('%s of %s values unverified', s.unverified, s.found)
                WHEN s.missing > 0 THEN format('%s required value%s missing', s.missing, CASE s.missing WHEN 1 THEN '' ELSE 's' END)
                WHEN s.broken > 0 THEN format('%s check%s failed', s.broken, CASE s.broken WHEN 1 THEN '' ELSE 's' END) END
    FROM summarise_record(record) s
$$;

-- Writes the event of a conversion that ended: ready, to be reviewed, or failed. Cancelling it writes none.
CREATE FUNCTION conversion_ends() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    reason text;
BEGIN
    IF NEW.status = 'complete' THEN
        SELECT review_reason(r.record) INTO reason
        FROM conversions c JOIN revisions r ON r.conversion_id = c.id AND r.number = c.revision WHERE c.id = NEW.id;
    END IF;
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    VALUES (NEW.id,
            CASE WHEN NEW.status <> 'complete' THEN 'conversion.failed'
                 WHEN reason IS NULL THEN 'conversion.completed' ELSE 'conversion.needs_review' END,
            NEW.owner_id, NEW.document_id, jsonb_strip_nulls(jsonb_build_object('reason', reason, 'error',
                CASE WHEN NEW.error_code IS NOT NULL
                     THEN jsonb_build_object('code', NEW.error_code, 'message', NEW.error_message) END)));
    RETURN NULL;
END $$;
CREATE TRIGGER conversion_ends AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind = 'convert' AND OLD.status <> NEW.status AND NEW.status IN ('complete', 'failed', 'dead_letter'))
    EXECUTE FUNCTION conversion_ends();

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

-- Records a submission that was rejected as a failed job with the reason, without any bytes.
CREATE FUNCTION refuse_conversion(new_id uuid, owner uuid, name text, mapping_name text, code text, message text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
BEGIN
    INSERT INTO jobs (id, kind, owner_id, virtual_time, status, max_attempts, admitted, input, error_code, error_message,
                      created_at, failed_at)
    SELECT new_id, k.name, owner, 0, 'failed', k.max_attempts, false, jsonb_build_object('mapping', mapping_name), code,
           message, at, at
    FROM job_kinds k WHERE k.name = 'convert';
    INSERT INTO conversions (id, owner_id, filename, mapping, live) VALUES (new_id, owner, name, mapping_name, false);
    INSERT INTO events (process_id, kind, owner_id, detail)
    VALUES (new_id, 'conversion.failed', owner,
            jsonb_build_object('error', jsonb_build_object('code', code, 'message', message)));
END $$;

-- How many seconds the circuit breaker of the conversion service stays open; 0 lets a call through. After that time one call is
-- sent as a test. The circuit breakers of models are in the same table and work in the same way.
CREATE FUNCTION gateway_pause(gate text, probe interval) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    seconds double precision;
BEGIN
    PERFORM FROM ai_gates WHERE name = gate FOR UPDATE;
    seconds := circuit_pause(gate, at);
    IF seconds = 0 THEN
        UPDATE ai_gates SET probe_until = at + probe WHERE name = gate AND open_until IS NOT NULL;
    END IF;
    RETURN seconds;
END $$;
