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
    CONSTRAINT live_is_whole CHECK (NOT live OR num_nonnulls(mapping_sha256, sha256, bytes) = 3)
);

COMMENT ON COLUMN conversions.live IS 'It is the conversion of its content and mapping: submitting the same again returns this one.';
COMMENT ON COLUMN conversions.revision IS 'The current revision; 0 while there is none.';
COMMENT ON COLUMN conversions.archived_at IS 'When its result expired and was deleted.';

CREATE UNIQUE INDEX conversions_same ON conversions (owner_id, sha256, mapping, mapping_sha256, bytes) WHERE live;
CREATE INDEX conversions_owner_created ON conversions (owner_id, created_at, id);
CREATE INDEX conversions_document ON conversions (document_id) WHERE document_id IS NOT NULL;
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
    PRIMARY KEY (conversion_id, number)
);

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

-- Counts the values of a revision, those that are not verified, the missing required ones, and the checks that failed. A value
-- is a list of name, value, confidence, place, verified, table and row.
CREATE FUNCTION summarise_record(record jsonb, OUT found bigint, OUT unverified bigint, OUT lowest double precision,
                                 OUT missing bigint, OUT broken bigint) LANGUAGE sql IMMUTABLE AS $$
    SELECT count(*), count(*) FILTER (WHERE NOT (v ->> 4)::boolean AND (v ->> 2)::double precision < 1),
           min((v ->> 2)::double precision), jsonb_array_length(record -> 'missing'),
           (SELECT count(*) FROM jsonb_array_elements(record -> 'checks') k WHERE k -> 1 = 'false')
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

-- One conversion for each content and mapping of an owner: returns the existing one (made = false; the stored object is then
-- not needed), or enqueues `job`, which octavo.choreography built.
CREATE FUNCTION begin_conversion(job jsonb, owner uuid, document uuid, name text, mapping_name text, mapping_hash bytea,
                                 content bytea, size bigint, object_key text, shared boolean, source_days integer)
RETURNS TABLE (id uuid, made boolean) LANGUAGE plpgsql AS $$
DECLARE
    new_id uuid := (job ->> 'id')::uuid;
    same uuid;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(format('convert:%s:%s:%s', owner, encode(content, 'hex'), mapping_name), 0));
    SELECT c.id INTO same FROM conversions c
    WHERE c.owner_id = owner AND c.sha256 = content AND c.mapping = mapping_name AND c.mapping_sha256 = mapping_hash
      AND c.bytes = size AND c.live;
    IF FOUND THEN
        RETURN QUERY SELECT same, false;
        RETURN;
    END IF;
    PERFORM enqueue_jobs(jsonb_build_array(job));
    INSERT INTO conversions (id, owner_id, document_id, filename, mapping, mapping_sha256, sha256, bytes, live,
                             source_expires_at)
    VALUES (new_id, owner, document, name, mapping_name, mapping_hash, content, size, true,
            engine_now() + make_interval(days => source_days));
    IF NOT shared THEN
        INSERT INTO objects (key, bytes, sha256) VALUES (object_key, size, content);
    END IF;
    INSERT INTO conversion_files (conversion_id, kind, key) VALUES (new_id, 'source', object_key);
    RETURN QUERY SELECT new_id, true;
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
