-- The first version of the schema, taken from schema/ without its comments. A migration is never edited.

-- owners.sql

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE owners (
    id         uuid PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('local', 'anonymous', 'user')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE owners IS 'Every row that belongs to somebody refers to one of these.';
CREATE UNIQUE INDEX owners_one_local ON owners (kind) WHERE kind = 'local';

CREATE TABLE users (
    id            uuid PRIMARY KEY,
    email         text NOT NULL CHECK (email = lower(email)),
    password_hash text NOT NULL,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON COLUMN users.owner_id IS 'The personal owner of this person.';
CREATE UNIQUE INDEX users_email ON users (email);
CREATE INDEX users_owner ON users (owner_id);

CREATE TABLE memberships (
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    role       text NOT NULL CHECK (role IN ('owner', 'member', 'reader')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_id, user_id)
);
COMMENT ON TABLE memberships IS 'People who may act for an owner, including the person whose own it is.';
CREATE INDEX memberships_user ON memberships (user_id);

CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    user_id    uuid REFERENCES users ON DELETE CASCADE
);
COMMENT ON TABLE sessions IS 'Browsers that act for an owner. Only the hash of the cookie is stored. user_id is NULL for visitors and for the local owner.';
CREATE INDEX sessions_owner ON sessions (owner_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_user ON sessions (user_id);

CREATE TABLE sign_in_links (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
COMMENT ON TABLE sign_in_links IS 'One-time links that sign a browser in.';

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    owner_id     uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    user_id      uuid REFERENCES users ON DELETE CASCADE,
    name         text NOT NULL,
    start        text NOT NULL,
    key_hash     bytea NOT NULL CHECK (length(key_hash) = 32),
    scope        text NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz
);
COMMENT ON COLUMN api_keys.start IS 'The first characters of the key, to recognise it by. The rest is not stored.';
COMMENT ON COLUMN api_keys.user_id IS 'The person who created the key. The key never grants more than this person may do.';
CREATE UNIQUE INDEX api_keys_hash ON api_keys (key_hash);
CREATE INDEX api_keys_owner ON api_keys (owner_id, created_at);
CREATE INDEX api_keys_user ON api_keys (user_id) WHERE user_id IS NOT NULL;

CREATE FUNCTION merge_owner(visitor uuid, person uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
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
    UPDATE mappings m SET owner_id = person WHERE owner_id = visitor
        AND NOT EXISTS (SELECT FROM mappings o WHERE o.owner_id = person AND o.name = m.name);
    UPDATE conversions c SET live = false WHERE owner_id = visitor AND live AND EXISTS (
        SELECT FROM conversions o WHERE o.live AND o.owner_id = person AND o.sha256 = c.sha256 AND o.mapping = c.mapping
        AND o.mapping_sha256 = c.mapping_sha256 AND o.bytes = c.bytes);
    UPDATE conversions SET owner_id = person WHERE owner_id = visitor;
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

-- jobs.sql

CREATE TABLE engine_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    shift    interval NOT NULL DEFAULT '0'
);

INSERT INTO engine_clock DEFAULT VALUES;

CREATE FUNCTION engine_now() RETURNS timestamptz LANGUAGE sql VOLATILE
AS 'SELECT clock_timestamp() + shift FROM engine_clock';

CREATE TABLE job_kinds (
    name                   text PRIMARY KEY,
    max_attempts           integer NOT NULL CHECK (max_attempts > 0),
    time_limit             interval NOT NULL,
    limit_renewed_by_stage boolean NOT NULL,
    cap                    integer CHECK (cap > 0),
    starts_per_second      double precision CHECK (starts_per_second > 0)
);

INSERT INTO job_kinds (name, max_attempts, time_limit, limit_renewed_by_stage) VALUES
    ('process_document',    3,  interval '10 minutes', true),
    ('deliver',             12, interval '1 minute',   false),
    ('embed_document',      3,  interval '10 minutes', true),
    ('embed_tags',          3,  interval '90 seconds', false),
    ('detect_connections',  3,  interval '10 minutes', true),
    ('index_vectors',       3,  interval '2 hours',    false),
    ('convert',             3,  interval '10 minutes', true),
    ('analyse_document',    3,  interval '10 minutes', true),
    ('answer_segment',      3,  interval '15 minutes', false),
    ('consolidate_answers', 3,  interval '15 minutes', true);

CREATE TABLE caps (
    key   text PRIMARY KEY,
    most  integer NOT NULL CHECK (most > 0),
    taken integer NOT NULL DEFAULT 0 CHECK (taken >= 0)
);
COMMENT ON TABLE caps IS 'How many jobs of one key may hold a slot at the same time, and how many do.';

CREATE TABLE workers (
    id           uuid PRIMARY KEY,
    host         text NOT NULL,
    pid          integer NOT NULL,
    kinds        text[] NOT NULL,
    slots        integer NOT NULL,
    running      integer NOT NULL DEFAULT 0,
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);

CREATE TABLE job_transitions (
    before text NOT NULL,
    after  text NOT NULL,
    why    text NOT NULL,
    PRIMARY KEY (before, after)
);

INSERT INTO job_transitions (before, after, why) VALUES
    ('queued',      'processing',  'a worker claims it'),
    ('queued',      'failed',      'a service that it needs is unavailable'),
    ('queued',      'paused',      'its budget is used up, or somebody pauses it'),
    ('queued',      'cancelled',   'somebody cancels it'),
    ('processing',  'complete',    'its worker completes it'),
    ('processing',  'queued',      'it is retried, returned, or its lease expired'),
    ('processing',  'failed',      'an error that a retry would not solve'),
    ('processing',  'dead_letter', 'its attempts are used up'),
    ('processing',  'paused',      'its budget is used up'),
    ('processing',  'cancelled',   'somebody cancels it'),
    ('paused',      'queued',      'it is resumed'),
    ('paused',      'failed',      'its source is gone'),
    ('paused',      'cancelled',   'somebody cancels it'),
    ('failed',      'queued',      'somebody retries it'),
    ('dead_letter', 'queued',      'somebody requeues it'),
    ('dead_letter', 'cancelled',   'somebody discards it'),
    ('cancelled',   'queued',      'somebody starts it again');

CREATE TABLE jobs (
    id               uuid PRIMARY KEY,
    kind             text NOT NULL REFERENCES job_kinds,
    owner_id         uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id      uuid,
    parent_id        uuid REFERENCES jobs ON DELETE CASCADE,
    key              text,
    priority         smallint NOT NULL DEFAULT 5 CHECK (priority BETWEEN 0 AND 9),
    virtual_time     bigint NOT NULL,
    status           text NOT NULL,
    stage            text,
    attempt          integer NOT NULL DEFAULT 0,
    failures         integer NOT NULL DEFAULT 0,
    waits            integer NOT NULL DEFAULT 0,
    waiting_since    timestamptz,
    max_attempts     integer NOT NULL CHECK (max_attempts > 0),
    run_after        timestamptz,
    admitted         boolean NOT NULL,
    alone            boolean NOT NULL DEFAULT false,
    lease_token      bigint NOT NULL DEFAULT 0,
    leased_by        uuid,
    lease_expires_at timestamptz,
    deadline_at      timestamptz,
    cap_key          text REFERENCES caps,
    done             integer NOT NULL DEFAULT 0,
    total            integer,
    unit             text,
    error_code       text,
    error_message    text,
    note             jsonb NOT NULL DEFAULT '{}',
    input            jsonb NOT NULL DEFAULT '{}',
    output           jsonb,
    created_at       timestamptz NOT NULL,
    queued_at        timestamptz,
    started_at       timestamptz,
    progressed_at    timestamptz,
    completed_at     timestamptz,
    failed_at        timestamptz,
    event_xid        xid8 NOT NULL DEFAULT pg_current_xact_id()
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON COLUMN jobs.virtual_time IS 'Position in the queue. Owners take turns, because each job of an owner is placed one further back.';
COMMENT ON COLUMN jobs.admitted IS 'Can be claimed: it is due, and holds a slot if it has a cap.';
COMMENT ON COLUMN jobs.alone IS 'A worker crashed while running it, so it runs without other jobs beside it until it finishes a stage.';
COMMENT ON COLUMN jobs.lease_token IS 'Fencing token: a worker with an older one cannot write.';
COMMENT ON COLUMN jobs.event_xid IS 'The xid of its last event. Later events of the job get the same or a higher one, so they are read in order.';
COMMENT ON COLUMN jobs.note IS 'Why the job is in its state. Becomes the detail of the event of the transition.';
CREATE INDEX jobs_ready ON jobs (priority, virtual_time, id) WHERE status = 'queued' AND admitted;
CREATE INDEX jobs_due ON jobs (run_after) WHERE status = 'queued' AND run_after IS NOT NULL;
CREATE INDEX jobs_wait_for_cap ON jobs (cap_key, priority, virtual_time, id)
    WHERE status = 'queued' AND NOT admitted AND run_after IS NULL;
CREATE INDEX jobs_lease ON jobs (lease_expires_at) WHERE status = 'processing';
CREATE INDEX jobs_resting ON jobs (status, created_at) WHERE status IN ('failed', 'dead_letter', 'paused', 'cancelled');
CREATE INDEX jobs_owner_created ON jobs (owner_id, created_at);
CREATE INDEX jobs_owner_queued ON jobs (owner_id, priority, virtual_time) WHERE status = 'queued';
CREATE INDEX jobs_document ON jobs (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX jobs_parent ON jobs (parent_id) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX jobs_key ON jobs (owner_id, kind, key) WHERE key IS NOT NULL;

CREATE FUNCTION broken_invariant(job jobs) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN job.status NOT IN ('queued', 'processing', 'complete', 'failed', 'dead_letter', 'paused', 'cancelled')
            THEN 'status_is_known'
        WHEN job.output IS NOT NULL AND job.status <> 'complete' THEN 'output_only_when_complete'
        WHEN (job.error_code IS NOT NULL) <> (job.status IN ('failed', 'dead_letter')) THEN 'error_only_when_failed'
        WHEN (job.error_message IS NULL) <> (job.error_code IS NULL) THEN 'message_with_its_code'
        WHEN num_nonnulls(job.leased_by, job.lease_expires_at, job.deadline_at)
             <> CASE job.status WHEN 'processing' THEN 3 ELSE 0 END THEN 'lease_only_when_processing'
        WHEN job.queued_at IS NULL AND job.status <> 'failed' THEN 'queued_has_its_time'
        WHEN job.started_at IS NULL AND job.status = 'processing' THEN 'processing_has_its_time'
        WHEN (job.completed_at IS NOT NULL) <> (job.status = 'complete') THEN 'complete_has_its_time'
        WHEN (job.failed_at IS NOT NULL) <> (job.status IN ('failed', 'dead_letter')) THEN 'failed_has_its_time'
        WHEN NOT CASE job.status
            WHEN 'processing' THEN job.admitted AND job.run_after IS NULL
            WHEN 'queued' THEN NOT (job.admitted AND job.run_after IS NOT NULL)
                               AND (job.admitted OR job.run_after IS NOT NULL OR job.cap_key IS NOT NULL)
            ELSE NOT job.admitted AND job.run_after IS NULL END THEN 'slot_only_when_wanted'
    END
$$;
CREATE INDEX jobs_kind_completed ON jobs (kind, completed_at) WHERE status = 'complete';

CREATE TABLE job_stages (
    job_id      uuid NOT NULL REFERENCES jobs ON DELETE CASCADE,
    stage       text NOT NULL,
    part        text NOT NULL DEFAULT '',
    output      jsonb NOT NULL DEFAULT 'null',
    attempt     integer NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, stage, part)
);
COMMENT ON TABLE job_stages IS 'Checkpoints: a stage or part in this table is never run again.';

CREATE TABLE start_rates (
    kind    text PRIMARY KEY REFERENCES job_kinds,
    next_at timestamptz NOT NULL
);

CREATE TABLE schedules (
    name        text PRIMARY KEY,
    kind        text NOT NULL REFERENCES job_kinds,
    cron        text NOT NULL,
    input       jsonb NOT NULL DEFAULT '{}',
    enabled     boolean NOT NULL DEFAULT true,
    next_run_at timestamptz NOT NULL,
    last_run_at timestamptz,
    last_job_id uuid REFERENCES jobs ON DELETE SET NULL
);

-- events.sql

CREATE TABLE events (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    xid         xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at          timestamptz NOT NULL DEFAULT engine_now(),
    process_id  uuid NOT NULL,
    kind        text NOT NULL,
    state_after text,
    owner_id    uuid NOT NULL,
    document_id uuid,
    detail      jsonb NOT NULL DEFAULT '{}'
) PARTITION BY RANGE (at);
COMMENT ON COLUMN events.xid IS 'The transaction that wrote the event, or a later one if its process already has an event of a later one. Readers follow (xid, id) below the oldest open transaction, so they never skip a late commit and read each process in order.';
COMMENT ON COLUMN events.state_after IS 'Only set for transitions. The latest one of a process is its state.';
CREATE INDEX events_order ON events (xid, id);
CREATE INDEX events_process ON events (process_id, id);
CREATE INDEX events_owner ON events (owner_id, xid, id);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER events_are_append_only BEFORE UPDATE OR DELETE ON events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_are_not_truncated BEFORE TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE events_default PARTITION OF events DEFAULT;
CREATE TRIGGER not_truncated BEFORE TRUNCATE ON events_default
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION ensure_event_partitions(months integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first date := date_trunc('month', engine_now() AT TIME ZONE 'UTC');
    month date;
BEGIN
    FOR ahead IN 0..months LOOP
        month := first + make_interval(months => ahead);
        IF to_regclass(format('events_%s', to_char(month, 'YYYY_MM'))) IS NULL THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF events FOR VALUES FROM (%L) TO (%L)',
                'events_' || to_char(month, 'YYYY_MM'),
                month::timestamp AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
            EXECUTE format('CREATE TRIGGER not_truncated BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()',
                'events_' || to_char(month, 'YYYY_MM'));
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION refuse_broken(job uuid, invariant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % breaks %', job, invariant USING ERRCODE = 'check_violation', CONSTRAINT = invariant;
END $$;

CREATE FUNCTION refuse_step(job uuid, before text, after text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % cannot go from % to %', job, before, after
        USING ERRCODE = 'check_violation', CONSTRAINT = 'job_transitions';
END $$;

CREATE FUNCTION record_created_jobs() RETURNS trigger LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    moment timestamptz := engine_now();
BEGIN
    PERFORM refuse_broken(n.id, broken_invariant(n)) FROM created n WHERE broken_invariant(n) IS NOT NULL;
    INSERT INTO events (at, process_id, kind, state_after, owner_id, document_id, detail)
    SELECT moment, id, 'created', status, owner_id, document_id, jsonb_build_object('kind', kind) || note FROM created;
    IF EXISTS (SELECT FROM created WHERE status = 'queued') THEN
        NOTIFY octavo_jobs;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION record_changed_jobs() RETURNS trigger LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    moment timestamptz := engine_now();
BEGIN
    PERFORM CASE WHEN broken_invariant(n) IS NOT NULL THEN refuse_broken(n.id, broken_invariant(n))
                 ELSE refuse_step(n.id, o.status, n.status) END
    FROM changed_to n JOIN changed_from o USING (id)
    WHERE broken_invariant(n) IS NOT NULL
       OR n.status <> o.status
          AND NOT EXISTS (SELECT FROM job_transitions t WHERE t.before = o.status AND t.after = n.status);
    INSERT INTO events (xid, at, process_id, kind, state_after, owner_id, document_id, detail)
    SELECT greatest(n.event_xid, pg_current_xact_id()), moment, n.id,
           coalesce(n.note ->> 'event', CASE n.status WHEN 'queued' THEN 'retry' ELSE n.status END),
           n.status, n.owner_id, n.document_id, jsonb_build_object('attempt', n.attempt) || n.note
    FROM changed_to n JOIN changed_from o USING (id)
    WHERE n.status <> o.status
    ORDER BY n.status = 'processing'; -- the job that ends before the one that gets its slot
    RETURN NULL;
END $$;
CREATE TRIGGER jobs_created AFTER INSERT ON jobs REFERENCING NEW TABLE AS created
    FOR EACH STATEMENT EXECUTE FUNCTION record_created_jobs();
CREATE TRIGGER jobs_changed AFTER UPDATE ON jobs REFERENCING OLD TABLE AS changed_from NEW TABLE AS changed_to
    FOR EACH STATEMENT EXECUTE FUNCTION record_changed_jobs();

-- queue.sql

DO $$ BEGIN
    FOR priority IN 0..9 LOOP
        EXECUTE format('CREATE SEQUENCE virtual_clock_%s MINVALUE 0 START 0', priority);
    END LOOP;
END $$;

CREATE FUNCTION virtual_clock(priority smallint) RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT coalesce(pg_sequence_last_value(('virtual_clock_' || priority)::regclass), 0) $$;

CREATE FUNCTION next_virtual_time(owner uuid, wanted smallint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT greatest(virtual_clock(wanted),
        coalesce((SELECT max(virtual_time) FROM jobs
                  WHERE owner_id = owner AND status = 'queued' AND priority = wanted), 0)) + 1
$$;

CREATE FUNCTION admit_waiting(keys text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    cap caps;
    admitted_now integer;
BEGIN
    FOR cap IN SELECT * FROM caps WHERE key = ANY (keys) ORDER BY key FOR NO KEY UPDATE LOOP
        CONTINUE WHEN cap.taken >= cap.most;
        WITH next AS (
            SELECT id FROM jobs
            WHERE cap_key = cap.key AND status = 'queued' AND NOT admitted AND run_after IS NULL
            ORDER BY priority, virtual_time, id LIMIT cap.most - cap.taken FOR UPDATE
        )
        UPDATE jobs SET admitted = true, virtual_time = greatest(virtual_time, virtual_clock(priority))
        FROM next WHERE jobs.id = next.id;
        GET DIAGNOSTICS admitted_now = ROW_COUNT;
        IF admitted_now > 0 THEN
            UPDATE caps SET taken = taken + admitted_now WHERE key = cap.key;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION return_slots(returned text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(returned) > 0 THEN
        PERFORM FROM caps WHERE key = ANY (returned) ORDER BY key FOR NO KEY UPDATE;
        UPDATE caps SET taken = taken - back.number
        FROM (SELECT key, count(*) AS number FROM unnest(returned) AS key GROUP BY key) AS back
        WHERE caps.key = back.key;
        PERFORM admit_waiting(returned);
    END IF;
END $$;

CREATE FUNCTION set_cap(wanted_key text, wanted integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO caps (key, most) VALUES (wanted_key, wanted)
    ON CONFLICT (key) DO UPDATE SET most = excluded.most;
    PERFORM admit_waiting(ARRAY[wanted_key]);
END $$;

CREATE FUNCTION enqueue_jobs(wanted jsonb) RETURNS TABLE (id uuid, made boolean) LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    unknown text;
    capped text[];
BEGIN
    SELECT w.kind INTO unknown FROM jsonb_to_recordset(wanted) AS w (kind text)
    WHERE NOT EXISTS (SELECT FROM job_kinds WHERE name = w.kind) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is no job kind %', unknown USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'job_kinds';
    END IF;

    INSERT INTO caps (key, most)
    SELECT DISTINCT ON (coalesce(w.cap_key, 'kind:' || w.kind))
           coalesce(w.cap_key, 'kind:' || w.kind), coalesce(w.cap, k.cap)
    FROM jsonb_to_recordset(wanted) AS w (kind text, cap_key text, cap integer) JOIN job_kinds k ON k.name = w.kind
    WHERE coalesce(w.cap, k.cap) IS NOT NULL
    ORDER BY 1
    ON CONFLICT DO NOTHING;

    WITH given AS (
        SELECT w.*, k.max_attempts AS kind_attempts,
               CASE WHEN w.cap_key IS NOT NULL THEN w.cap_key WHEN k.cap IS NOT NULL THEN 'kind:' || w.kind END AS slot_key
        FROM ROWS FROM (jsonb_to_recordset(wanted) AS (
            id uuid, kind text, owner_id uuid, document_id uuid, parent_id uuid, key text, priority smallint,
            max_attempts integer, delay_seconds double precision, cap_key text, cap integer, input jsonb))
        WITH ORDINALITY AS w (id, kind, owner_id, document_id, parent_id, key, priority, max_attempts, delay_seconds,
                              cap_key, cap, input, place)
        JOIN job_kinds k ON k.name = w.kind
    ), placed AS (
        SELECT g.*, row_number() OVER (PARTITION BY g.owner_id, coalesce(g.priority, 5::smallint) ORDER BY g.place) - 1
                    + base.virtual_time AS virtual_time
        FROM given g
        JOIN (SELECT d.owner_id, d.priority, next_virtual_time(d.owner_id, d.priority) AS virtual_time
              FROM (SELECT DISTINCT given.owner_id, coalesce(given.priority, 5::smallint) AS priority FROM given) AS d) AS base
          ON base.owner_id = g.owner_id AND base.priority = coalesce(g.priority, 5::smallint)
    ), inserted AS (
        INSERT INTO jobs (id, kind, owner_id, document_id, parent_id, key, priority, virtual_time, status, max_attempts,
                          run_after, admitted, cap_key, input, created_at, queued_at)
        SELECT p.id, p.kind, p.owner_id, p.document_id, p.parent_id, p.key, coalesce(p.priority, 5::smallint), p.virtual_time,
               'queued', coalesce(p.max_attempts, p.kind_attempts),
               CASE WHEN p.delay_seconds > 0 THEN at + make_interval(secs => p.delay_seconds) END,
               p.slot_key IS NULL AND coalesce(p.delay_seconds, 0) <= 0,
               p.slot_key, coalesce(p.input, '{}'), at, at
        FROM placed p ORDER BY p.place
        ON CONFLICT (owner_id, kind, key) WHERE key IS NOT NULL DO NOTHING
        RETURNING jobs.id, jobs.cap_key, jobs.run_after
    )
    SELECT array_agg(DISTINCT i.cap_key) FILTER (WHERE i.cap_key IS NOT NULL AND i.run_after IS NULL)
    INTO capped FROM inserted i;

    IF capped IS NOT NULL THEN
        PERFORM admit_waiting(capped);
    END IF;

    RETURN QUERY
    SELECT coalesce(same.id, twin.id), same.id IS NOT NULL
    FROM ROWS FROM (jsonb_to_recordset(wanted) AS (id uuid, kind text, owner_id uuid, key text))
        WITH ORDINALITY AS w (id, kind, owner_id, key, place)
    LEFT JOIN jobs same ON same.id = w.id
    LEFT JOIN jobs twin ON twin.owner_id = w.owner_id AND twin.kind = w.kind AND twin.key = w.key AND same.id IS NULL
    ORDER BY w.place;
END $$;

CREATE FUNCTION promote_due(at timestamptz, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    promoted integer;
    capped text[];
BEGIN
    WITH due AS (
        SELECT id FROM jobs WHERE status = 'queued' AND run_after <= at
        ORDER BY run_after LIMIT most FOR UPDATE SKIP LOCKED
    ), awake AS (
        UPDATE jobs SET run_after = NULL, admitted = (cap_key IS NULL),
                        virtual_time = greatest(virtual_time, virtual_clock(priority))
        FROM due WHERE jobs.id = due.id
        RETURNING jobs.cap_key
    )
    SELECT count(*), array_agg(DISTINCT cap_key) FILTER (WHERE cap_key IS NOT NULL) INTO promoted, capped FROM awake;
    IF capped IS NOT NULL THEN
        PERFORM admit_waiting(capped);
    END IF;
    RETURN promoted;
END $$;

CREATE FUNCTION take_over_expired(at timestamptz, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    taken integer;
    returned text[];
BEGIN
    WITH expired AS (
        SELECT id, leased_by, failures + alone::integer AS crashes
        FROM jobs WHERE status = 'processing' AND lease_expires_at <= at
        ORDER BY lease_expires_at LIMIT most FOR UPDATE SKIP LOCKED
    ), over AS (
        UPDATE jobs SET
            status = CASE WHEN crashes >= max_attempts THEN 'dead_letter' ELSE 'queued' END,
            event_xid = greatest(event_xid, pg_current_xact_id()),
            failures = crashes, alone = true, lease_token = lease_token + 1,
            leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
            admitted = crashes < max_attempts,
            virtual_time = greatest(virtual_time, virtual_clock(priority)),
            queued_at = CASE WHEN crashes < max_attempts THEN at ELSE queued_at END,
            failed_at = CASE WHEN crashes >= max_attempts THEN at END,
            error_code = CASE WHEN crashes >= max_attempts THEN 'CRASHED' END,
            error_message = CASE WHEN crashes >= max_attempts
                THEN format('The worker crashed %s times while it ran this job.', crashes) END,
            note = jsonb_build_object('reason', 'lease_expired', 'worker', expired.leased_by,
                'error', jsonb_build_object('code', 'CRASHED', 'message', 'The worker crashed while it ran this job.'))
        FROM expired WHERE jobs.id = expired.id
        RETURNING jobs.cap_key, jobs.admitted
    )
    SELECT count(*), array_agg(cap_key) FILTER (WHERE cap_key IS NOT NULL AND NOT admitted) INTO taken, returned FROM over;
    PERFORM return_slots(coalesce(returned, '{}'));
    RETURN taken;
END $$;

CREATE FUNCTION pass_time(taking_over boolean) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    taken integer := 0;
BEGIN
    IF taking_over THEN
        taken := take_over_expired(at, 500);
    END IF;
    RETURN taken + promote_due(at, 1000);
END $$;

CREATE FUNCTION hold_to_rate(candidates uuid[], at timestamptz) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    rate record;
    candidate record;
    start_at timestamptz;
    held_until timestamptz;
    kept uuid[] := candidates;
    returned text[] := '{}';
BEGIN
    FOR rate IN
        SELECT r.kind, r.next_at, make_interval(secs => 1 / k.starts_per_second) AS gap
        FROM start_rates r JOIN job_kinds k ON k.name = r.kind
        WHERE r.kind IN (SELECT kind FROM jobs WHERE id = ANY (candidates))
        ORDER BY r.kind FOR UPDATE OF r
    LOOP
        start_at := greatest(rate.next_at, at);
        held_until := start_at;
        FOR candidate IN
            SELECT id, cap_key FROM jobs WHERE id = ANY (candidates) AND kind = rate.kind ORDER BY priority, virtual_time, id
        LOOP
            IF start_at <= at THEN
                start_at := start_at + rate.gap;
                held_until := start_at;
            ELSE
                kept := array_remove(kept, candidate.id);
                UPDATE jobs SET run_after = held_until, admitted = false WHERE id = candidate.id;
                returned := array_append(returned, candidate.cap_key);
                held_until := held_until + rate.gap;
            END IF;
        END LOOP;
        UPDATE start_rates SET next_at = start_at WHERE kind = rate.kind;
    END LOOP;
    PERFORM return_slots(array_remove(returned, NULL));
    RETURN kept;
END $$;

CREATE FUNCTION advance_clocks(priorities smallint[], times bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR place IN 1..cardinality(times) LOOP
        -- In the order of the queue, so the last one of a priority is the latest.
        CONTINUE WHEN place < cardinality(times) AND priorities[place + 1] = priorities[place];
        IF times[place] > virtual_clock(priorities[place]) THEN
            PERFORM setval(('virtual_clock_' || priorities[place])::regclass, times[place]);
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION choose_jobs(worker uuid, known text[], slots integer, is_idle boolean, at timestamptz,
                             mark_priority smallint, mark_time bigint)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    chosen uuid[];
    lonely boolean[];
    priorities smallint[];
    times bigint[];
    first_lonely integer;
BEGIN
    -- Nothing runs beside a job that crashed a worker, until it has finished a stage.
    IF NOT is_idle AND EXISTS (SELECT FROM jobs WHERE status = 'processing' AND leased_by = worker AND alone) THEN
        RETURN '{}';
    END IF;
    IF mark_priority > 0 THEN -- more urgent jobs first, wherever the search begins
        SELECT array_agg(n.id), array_agg(n.alone), array_agg(n.priority), array_agg(n.virtual_time)
        INTO chosen, lonely, priorities, times
        FROM (SELECT id, alone, priority, virtual_time FROM jobs
              WHERE status = 'queued' AND admitted AND priority < mark_priority AND kind = ANY (known)
              ORDER BY priority, virtual_time, id LIMIT slots FOR UPDATE SKIP LOCKED) AS n;
    END IF;
    IF chosen IS NULL THEN
        SELECT array_agg(n.id), array_agg(n.alone), array_agg(n.priority), array_agg(n.virtual_time)
        INTO chosen, lonely, priorities, times
        FROM (SELECT id, alone, priority, virtual_time FROM jobs
              WHERE status = 'queued' AND admitted AND (priority, virtual_time) >= (mark_priority, mark_time)
                AND kind = ANY (known)
              ORDER BY priority, virtual_time, id LIMIT slots FOR UPDATE SKIP LOCKED) AS n;
    END IF;
    IF chosen IS NULL THEN
        RETURN '{}';
    END IF;
    -- A job that crashed a worker waits for an idle worker and then runs alone.
    first_lonely := array_position(lonely, true);
    IF first_lonely IS NOT NULL THEN
        first_lonely := CASE WHEN first_lonely = 1 AND is_idle THEN 1 ELSE first_lonely - 1 END;
        chosen := chosen[1:first_lonely];
        times := times[1:first_lonely];
    END IF;
    PERFORM advance_clocks(priorities, times);
    IF EXISTS (SELECT FROM start_rates) THEN
        chosen := hold_to_rate(chosen, at);
    END IF;
    RETURN chosen;
END $$;

CREATE FUNCTION exchange_jobs(worker uuid, held uuid[], tokens bigint[], outputs jsonb, known text[], slots integer,
                              is_idle boolean, lease interval, mark_priority smallint, mark_time bigint)
RETURNS TABLE (id uuid, kind text, owner_id uuid, document_id uuid, parent_id uuid, priority smallint,
               virtual_time bigint, attempt integer, stage text, lease_token bigint, input jsonb)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    at timestamptz := engine_now();
    returned text[];
    chosen uuid[] := '{}';
BEGIN
    -- Rates are always locked before caps, so that two exchanges cannot deadlock.
    PERFORM FROM start_rates ORDER BY kind FOR UPDATE;
    -- Lock order: held jobs, claimed jobs, caps. SKIP LOCKED still waits for a row that was updated and locked again at the
    -- same moment, and the transaction that has it may wait for a cap. A transaction that holds a cap never waits for a
    -- running job.
    IF cardinality(held) > 0 THEN
        SELECT array_agg(mine.cap_key) INTO returned FROM (
            SELECT cap_key FROM jobs JOIN unnest(held, tokens) AS h (job, token) ON jobs.id = h.job
            WHERE lease_token = h.token AND status = 'processing' AND cap_key IS NOT NULL FOR UPDATE OF jobs) AS mine;
    END IF;
    IF slots > 0 THEN
        chosen := choose_jobs(worker, known, slots, is_idle, at, mark_priority, mark_time);
    END IF;
    IF returned IS NOT NULL THEN
        PERFORM return_slots(returned);
    END IF;
    IF cardinality(held) + cardinality(chosen) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH steps AS (
        SELECT job, token, outputs -> (place - 1)::integer AS made, true AS ends
        FROM unnest(held, tokens) WITH ORDINALITY AS h (job, token, place)
        UNION ALL
        SELECT job, NULL, NULL, false FROM unnest(chosen) AS job
    ), stepped AS (
        UPDATE jobs SET
            event_xid = greatest(event_xid, pg_current_xact_id()),
            progressed_at = at,
            status = CASE WHEN ends THEN 'complete' ELSE 'processing' END,
            admitted = NOT ends,
            output = made,
            completed_at = CASE WHEN ends THEN at END,
            attempt = CASE WHEN ends THEN attempt ELSE attempt + 1 END,
            lease_token = CASE WHEN ends THEN lease_token ELSE lease_token + 1 END,
            leased_by = CASE WHEN NOT ends THEN worker END,
            lease_expires_at = CASE WHEN NOT ends THEN at + lease END,
            deadline_at = CASE WHEN NOT ends THEN at + k.time_limit END,
            started_at = CASE WHEN ends THEN started_at ELSE at END,
            note = CASE WHEN ends THEN '{}' ELSE jsonb_build_object('worker', worker) END
        FROM steps, job_kinds k
        WHERE jobs.id = steps.job AND k.name = jobs.kind
          AND (NOT ends OR jobs.lease_token = token AND jobs.status = 'processing')
        RETURNING jobs.*
    )
    SELECT s.id, s.kind, s.owner_id, s.document_id, s.parent_id, s.priority, s.virtual_time, s.attempt, s.stage,
           s.lease_token, s.input
    FROM stepped s WHERE s.status = 'processing';
END $$;

CREATE FUNCTION renew_leases(worker uuid, held uuid[], tokens bigint[], lease interval) RETURNS SETOF uuid LANGUAGE sql AS $$
    UPDATE jobs SET lease_expires_at = t.at + lease
    FROM unnest(held, tokens) AS h (id, token), (SELECT engine_now() AS at) AS t
    WHERE jobs.id = h.id AND jobs.lease_token = h.token AND jobs.status = 'processing' AND jobs.deadline_at > t.at
    RETURNING jobs.id
$$;

CREATE FUNCTION lost_leases(held uuid[], tokens bigint[]) RETURNS SETOF uuid LANGUAGE sql AS $$
    SELECT h.id FROM unnest(held, tokens) AS h (id, token)
    WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.id = h.id AND j.lease_token = h.token AND j.status = 'processing')
$$;

CREATE FUNCTION hold_lease(job uuid, token bigint) RETURNS boolean LANGUAGE sql AS $$
    SELECT EXISTS (SELECT FROM jobs WHERE id = job AND lease_token = token AND status = 'processing' FOR UPDATE)
$$;

CREATE FUNCTION finish_stage(job uuid, token bigint, finished text, of_part text, made jsonb, took interval)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    held jobs;
BEGIN
    UPDATE jobs SET event_xid = greatest(jobs.event_xid, pg_current_xact_id()),
                    stage = finished, failures = 0, waits = 0, waiting_since = NULL, alone = false, progressed_at = at,
                    done = CASE WHEN of_part = '' THEN done ELSE done + 1 END,
                    deadline_at = CASE WHEN k.limit_renewed_by_stage THEN at + k.time_limit ELSE deadline_at END
    FROM job_kinds k
    WHERE jobs.id = job AND lease_token = token AND status = 'processing' AND k.name = jobs.kind
    RETURNING jobs.* INTO held;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO job_stages (job_id, stage, part, output, attempt, started_at, finished_at)
    VALUES (job, finished, of_part, made, held.attempt, at - took, at);
    INSERT INTO events (xid, process_id, kind, owner_id, document_id, detail)
    VALUES (held.event_xid, job, 'stage', held.owner_id, held.document_id, jsonb_strip_nulls(jsonb_build_object(
        'stage', finished, 'part', nullif(of_part, ''), 'attempt', held.attempt,
        'seconds', round(extract(epoch FROM took)::numeric, 3))));
    RETURN true;
END $$;

CREATE FUNCTION report_progress(job uuid, token bigint, now_done integer, of_total integer, counted text, doing text)
RETURNS boolean LANGUAGE sql AS $$
    WITH before AS (
        SELECT id, progressed_at, total, unit, stage, t.at FROM jobs, (SELECT engine_now() AS at) AS t
        WHERE id = job AND lease_token = token AND status = 'processing'
        FOR UPDATE OF jobs
    ), held AS (
        UPDATE jobs SET done = now_done, total = of_total, unit = counted, stage = coalesce(doing, jobs.stage),
                        progressed_at = before.at, event_xid = greatest(jobs.event_xid, pg_current_xact_id())
        FROM before WHERE jobs.id = before.id
        RETURNING jobs.*
    ), told AS (
        INSERT INTO events (xid, at, process_id, kind, owner_id, document_id, detail)
        SELECT held.event_xid, before.at, held.id, 'progress', held.owner_id, held.document_id,
               jsonb_strip_nulls(jsonb_build_object('stage', held.stage, 'done', now_done, 'total', of_total, 'unit', counted))
        FROM held JOIN before USING (id)
        WHERE now_done = of_total OR before.progressed_at IS NULL
           OR (before.total, before.unit, before.stage) IS DISTINCT FROM (held.total, held.unit, held.stage)
           OR floor(extract(epoch FROM before.progressed_at) / 2) < floor(extract(epoch FROM before.at) / 2)
    )
    SELECT EXISTS (SELECT FROM held)
$$;

CREATE FUNCTION fail_job(job uuid, token bigint, code text, message text, first_delay double precision,
                         factor double precision, charged boolean, retry_after double precision)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    held jobs;
    used_up boolean;
    pause double precision;
    next_status text;
    error jsonb := jsonb_build_object('code', code, 'message', message);
BEGIN
    SELECT * INTO held FROM jobs WHERE id = job AND lease_token = token AND status = 'processing' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    used_up := CASE WHEN charged THEN held.failures + 1 >= held.max_attempts
                    ELSE at - coalesce(held.waiting_since, at) >= interval '24 hours' END;
    next_status := CASE WHEN first_delay IS NULL THEN 'failed' WHEN used_up THEN 'dead_letter' ELSE 'queued' END;
    -- A fifth of the pause is random, so that jobs that failed together do not return together.
    pause := greatest(
        least(900, first_delay * factor ^ (CASE WHEN charged THEN held.failures ELSE held.waits END)) * (0.9 + 0.2 * random()),
        coalesce(retry_after, 0));
    UPDATE jobs SET
        event_xid = greatest(event_xid, pg_current_xact_id()),
        status = next_status,
        failures = failures + CASE WHEN charged OR first_delay IS NULL THEN 1 ELSE 0 END,
        waits = CASE WHEN charged THEN waits ELSE waits + 1 END,
        waiting_since = CASE WHEN charged THEN waiting_since ELSE coalesce(waiting_since, at) END,
        run_after = CASE WHEN next_status = 'queued' THEN at + make_interval(secs => pause) END,
        admitted = false, leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
        queued_at = CASE WHEN next_status = 'queued' THEN at ELSE queued_at END,
        failed_at = CASE WHEN next_status <> 'queued' THEN at END,
        error_code = CASE WHEN next_status <> 'queued' THEN code END,
        error_message = CASE WHEN next_status <> 'queued' THEN message END,
        note = jsonb_build_object('error', error)
    WHERE id = job;
    IF held.cap_key IS NOT NULL THEN
        PERFORM return_slots(ARRAY[held.cap_key]);
    END IF;
    RETURN next_status;
END $$;

CREATE FUNCTION hand_back_jobs(held uuid[], tokens bigint[], because text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    number integer;
BEGIN
    UPDATE jobs SET event_xid = greatest(event_xid, pg_current_xact_id()),
                    status = 'queued', queued_at = engine_now(), lease_token = lease_token + 1,
                    leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
                    virtual_time = greatest(virtual_time, virtual_clock(priority)),
                    note = jsonb_build_object('reason', because)
    FROM unnest(held, tokens) AS h (id, token)
    WHERE jobs.id = h.id AND jobs.lease_token = h.token AND jobs.status = 'processing';
    GET DIAGNOSTICS number = ROW_COUNT;
    IF number > 0 THEN
        NOTIFY octavo_jobs;
    END IF;
    RETURN number;
END $$;

CREATE FUNCTION pause_job(job uuid, token bigint, code text, message text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    held jobs;
BEGIN
    SELECT * INTO held FROM jobs WHERE id = job FOR UPDATE;
    IF NOT FOUND OR (token IS NOT NULL AND (held.lease_token <> token OR held.status <> 'processing')) THEN
        RETURN false;
    END IF;
    UPDATE jobs SET event_xid = greatest(event_xid, pg_current_xact_id()),
                    status = 'paused', lease_token = lease_token + 1, admitted = false, run_after = NULL,
                    leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
                    note = jsonb_build_object('error', jsonb_build_object('code', code, 'message', message))
    WHERE id = job;
    IF held.admitted AND held.cap_key IS NOT NULL THEN
        PERFORM return_slots(ARRAY[held.cap_key]);
    END IF;
    RETURN true;
END $$;

CREATE FUNCTION requeue_job(job uuid, from_stage text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    held jobs;
BEGIN
    SELECT * INTO held FROM jobs WHERE id = job FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF held.status NOT IN ('paused', 'failed', 'dead_letter', 'cancelled') THEN
        PERFORM refuse_step(job, held.status, 'queued');
    END IF;
    IF from_stage = '' THEN
        DELETE FROM job_stages WHERE job_id = job;
    ELSIF from_stage IS NOT NULL THEN
        DELETE FROM job_stages WHERE job_id = job AND finished_at >= (
            SELECT min(finished_at) FROM job_stages WHERE job_id = job AND stage = from_stage);
        IF NOT FOUND THEN
            RAISE EXCEPTION 'job % has no finished stage %', job, from_stage USING ERRCODE = 'no_data_found';
        END IF;
    END IF;
    UPDATE jobs SET event_xid = greatest(event_xid, pg_current_xact_id()),
                    status = 'queued', queued_at = at, failures = 0, waits = 0, waiting_since = NULL, run_after = NULL,
                    alone = (held.error_code IS NOT DISTINCT FROM 'CRASHED'), admitted = (cap_key IS NULL),
                    virtual_time = next_virtual_time(owner_id, priority), lease_token = lease_token + 1,
                    stage = (SELECT s.stage FROM job_stages s WHERE s.job_id = job ORDER BY s.finished_at DESC LIMIT 1),
                    done = CASE WHEN from_stage IS NULL THEN done ELSE 0 END,
                    error_code = NULL, error_message = NULL, failed_at = NULL,
                    note = jsonb_strip_nulls(jsonb_build_object('reason', 'asked', 'from_stage', from_stage, 'error_before',
                        CASE WHEN held.error_code IS NOT NULL THEN held.error_code END))
    WHERE id = job;
    IF held.cap_key IS NOT NULL THEN
        PERFORM admit_waiting(ARRAY[held.cap_key]);
    END IF;
    NOTIFY octavo_jobs;
    RETURN true;
END $$;

CREATE FUNCTION cancel_job(job uuid, event text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    number integer;
    returned text[];
    before text;
BEGIN
    SELECT status INTO before FROM jobs WHERE id = job FOR UPDATE;
    IF before IN ('complete', 'failed', 'cancelled') THEN
        PERFORM refuse_step(job, before, 'cancelled');
    END IF;
    WITH RECURSIVE family AS (
        SELECT id FROM jobs WHERE id = job
        UNION
        SELECT j.id FROM jobs j JOIN family f ON j.parent_id = f.id
    ), locked AS (
        SELECT jobs.id, jobs.admitted, jobs.cap_key FROM jobs JOIN family USING (id)
        WHERE jobs.id = job OR jobs.status NOT IN ('complete', 'failed', 'cancelled')
        ORDER BY jobs.id FOR UPDATE OF jobs
    ), stopped AS (
        UPDATE jobs SET event_xid = greatest(event_xid, pg_current_xact_id()),
                        status = 'cancelled', lease_token = lease_token + 1, admitted = false, run_after = NULL,
                        leased_by = NULL, lease_expires_at = NULL, deadline_at = NULL,
                        error_code = NULL, error_message = NULL, failed_at = NULL,
                        note = jsonb_strip_nulls(jsonb_build_object('event', event,
                            'because', CASE WHEN jobs.id <> job THEN job END))
        FROM locked WHERE jobs.id = locked.id
        RETURNING CASE WHEN locked.admitted THEN locked.cap_key END AS slot
    )
    SELECT count(*), array_agg(slot) FILTER (WHERE slot IS NOT NULL) INTO number, returned FROM stopped;
    IF returned IS NOT NULL THEN
        PERFORM return_slots(returned);
    END IF;
    RETURN number;
END $$;

-- job_views.sql

CREATE VIEW job_waiting AS
SELECT j.id AS job_id, because.reason,
    CASE
        WHEN because.reason = 'paused' THEN coalesce(j.note -> 'error', '{}')
        WHEN because.reason = 'no_worker' THEN jsonb_build_object(
            'live_workers', (SELECT count(*) FROM workers w WHERE w.expires_at > engine_now()))
        WHEN because.reason IN ('backing_off', 'provider') THEN jsonb_strip_nulls(jsonb_build_object(
            'run_after', j.run_after, 'attempt', j.attempt, 'failures', j.failures, 'max_attempts', j.max_attempts,
            'error', j.note -> 'error'))
        WHEN because.reason = 'cap' THEN (
            SELECT jsonb_build_object('cap_key', c.key, 'most', c.most, 'taken', c.taken) FROM caps c WHERE c.key = j.cap_key)
        -- Counted backwards from the job and only up to 1000, so that it costs the same in a queue of a million.
        WHEN because.reason IN ('alone', 'behind') THEN jsonb_build_object('position', 1 + (
            SELECT count(*) FROM (
                SELECT FROM jobs b
                WHERE b.status = 'queued' AND b.admitted AND (b.priority, b.virtual_time, b.id) < (j.priority, j.virtual_time, j.id)
                ORDER BY b.priority DESC, b.virtual_time DESC, b.id DESC LIMIT 1000) AS before))
        ELSE '{}'
    END AS detail
FROM jobs j
CROSS JOIN LATERAL (SELECT
    CASE
        WHEN j.status = 'paused' THEN 'paused'
        WHEN NOT EXISTS (SELECT FROM workers w WHERE w.expires_at > engine_now() AND j.kind = ANY (w.kinds)) THEN 'no_worker'
        WHEN j.run_after > engine_now() AND j.note #>> '{error,code}' = 'AI_UNAVAILABLE' THEN 'provider'
        WHEN j.run_after > engine_now() THEN 'backing_off'
        WHEN j.run_after IS NULL AND NOT j.admitted THEN 'cap'
        WHEN j.alone THEN 'alone'
        ELSE 'behind'
    END AS reason) AS because
WHERE j.status IN ('queued', 'paused');
COMMENT ON VIEW job_waiting IS 'Select by job ids: the position in the queue is computed for each row.';

CREATE FUNCTION running_seconds(job uuid, attempt_started timestamptz, until timestamptz) RETURNS double precision
LANGUAGE sql STABLE AS $$
    SELECT extract(epoch FROM until - attempt_started) + coalesce((
        SELECT sum(extract(epoch FROM finished_at - started_at)) FROM job_stages
        WHERE job_id = job AND finished_at <= attempt_started), 0)
$$;

CREATE FUNCTION job_eta(wanted uuid[]) RETURNS TABLE (job_id uuid, low_seconds double precision, high_seconds double precision)
LANGUAGE sql VOLATILE AS $$
    WITH running AS MATERIALIZED (
        SELECT id, kind, stage, total - done AS items_left, running_seconds(id, started_at, engine_now()) AS elapsed
        FROM jobs WHERE id = ANY (wanted) AND status = 'processing'
    ), by_parts AS (
        -- Parts that run in parallel end sooner than the sum of their durations; `beside` is how many ran in parallel.
        SELECT r.id, r.items_left * took.quartiles[1] / took.beside AS low, r.items_left * took.quartiles[2] / took.beside AS high
        FROM running r CROSS JOIN LATERAL (
            SELECT count(*) AS samples,
                   percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY seconds) AS quartiles,
                   greatest(1, sum(seconds) / nullif(extract(epoch FROM max(finished_at) - min(started_at)), 0)) AS beside
            FROM (SELECT started_at, finished_at, extract(epoch FROM finished_at - started_at)::double precision AS seconds
                  FROM job_stages s WHERE s.job_id = r.id AND s.stage = r.stage AND s.part <> ''
                  ORDER BY finished_at DESC LIMIT 50) AS parts) AS took
        WHERE r.items_left > 0 AND took.samples >= 3
    ), by_kind AS (
        SELECT k.kind, took.quartiles[1] AS low, took.quartiles[2] AS high
        FROM (SELECT DISTINCT kind FROM running) AS k CROSS JOIN LATERAL (
            SELECT count(*) AS samples, percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY seconds) AS quartiles
            FROM (SELECT running_seconds(c.id, c.started_at, c.completed_at) AS seconds
                  FROM jobs c WHERE c.status = 'complete' AND c.kind = k.kind
                  ORDER BY c.completed_at DESC LIMIT 50) AS completed) AS took
        WHERE took.samples >= 5
    )
    SELECT r.id, coalesce(p.low, greatest(0, k.low - r.elapsed)), coalesce(p.high, k.high - r.elapsed)
    FROM running r LEFT JOIN by_parts p USING (id) LEFT JOIN by_kind k USING (kind)
    WHERE p.id IS NOT NULL OR k.high > r.elapsed
$$;

-- documents.sql

CREATE TABLE objects (
    key        text PRIMARY KEY,
    bytes      bigint NOT NULL CHECK (bytes >= 0),
    sha256     bytea NOT NULL CHECK (length(sha256) = 32),
    refs       integer NOT NULL DEFAULT 0 CHECK (refs >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX objects_unused ON objects (created_at) WHERE refs = 0;

CREATE TABLE collections (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX collections_name ON collections (owner_id, lower(name));

CREATE TABLE tags (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX tags_name ON tags (owner_id, lower(name));

CREATE TABLE documents (
    id                   uuid PRIMARY KEY,
    owner_id             uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    process_id           uuid NOT NULL,
    status               text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'completed', 'failed')),
    title                text,
    filename             text NOT NULL,
    content_type         text NOT NULL,
    source_type          text NOT NULL,
    source_url           text,
    sha256               bytea NOT NULL CHECK (length(sha256) = 32),
    bytes                bigint NOT NULL CHECK (bytes >= 0),
    quality              text CHECK (quality IN ('full', 'partial', 'ocr', 'stored_only', 'empty')),
    revision             integer NOT NULL DEFAULT 0,
    last_revision        integer NOT NULL DEFAULT 0 CHECK (last_revision >= revision),
    text_ready           boolean NOT NULL DEFAULT false,
    embeddings_ready     boolean NOT NULL DEFAULT false,
    needs_classification boolean NOT NULL DEFAULT false,
    page_count           integer,
    word_count           integer,
    author               text,
    language             text,
    document_date        date,
    summary              text,
    metadata             jsonb NOT NULL DEFAULT '{}',
    collection_id        uuid REFERENCES collections ON DELETE SET NULL,
    duplicate_of         uuid REFERENCES documents ON DELETE SET NULL,
    download_count       integer NOT NULL DEFAULT 0,
    first_downloaded_at  timestamptz,
    created_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_at           timestamptz,
    edited               text[] NOT NULL DEFAULT '{}',
    described            text[] NOT NULL DEFAULT '{}',
    described_by         text,
    family_id            uuid NOT NULL,
    version              integer NOT NULL DEFAULT 1 CHECK (version > 0),
    superseded           boolean NOT NULL DEFAULT false
);
COMMENT ON COLUMN documents.process_id IS 'The job that processes it. The status of the document follows the status of this job.';
COMMENT ON COLUMN documents.revision IS 'The current revision; 0 while there is none.';
COMMENT ON COLUMN documents.last_revision IS 'The last revision that was started.';
COMMENT ON COLUMN documents.deleted_at IS 'Set while it is in the trash.';
COMMENT ON COLUMN documents.edited IS 'Fields that a person set or cleared. They are never overwritten.';
COMMENT ON COLUMN documents.described IS 'Fields that a description set. The next description may replace them.';
COMMENT ON COLUMN documents.described_by IS 'What described it: `local`, or `provider:model`.';
COMMENT ON COLUMN documents.family_id IS 'Shared by all versions: the id of the first one, which may be deleted.';
COMMENT ON COLUMN documents.superseded IS 'A newer version exists and is not in the trash.';
CREATE INDEX documents_owner_created ON documents (owner_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX documents_owner_content ON documents (owner_id, sha256);
CREATE INDEX documents_owner_status ON documents (owner_id, status, created_at) WHERE deleted_at IS NULL AND status <> 'completed';
CREATE INDEX documents_trash ON documents (owner_id, deleted_at, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX documents_collection ON documents (collection_id) WHERE collection_id IS NOT NULL;
CREATE INDEX documents_duplicate ON documents (duplicate_of) WHERE duplicate_of IS NOT NULL;
CREATE INDEX documents_process ON documents (process_id);
CREATE INDEX documents_owner_title ON documents (owner_id, lower(coalesce(nullif(title, ''), filename)), id)
    WHERE deleted_at IS NULL;
CREATE INDEX documents_need_somebody ON documents (owner_id, created_at, id)
    WHERE deleted_at IS NULL AND status = 'completed' AND (needs_classification OR quality IN ('partial', 'empty'));
CREATE INDEX documents_stored_only ON documents (owner_id, created_at, id)
    WHERE deleted_at IS NULL AND quality = 'stored_only';
CREATE UNIQUE INDEX documents_version ON documents (family_id, version);
CREATE INDEX documents_superseded ON documents (owner_id) WHERE superseded AND deleted_at IS NULL;

CREATE TABLE document_tags (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    tag_id      uuid NOT NULL REFERENCES tags ON DELETE CASCADE,
    made_by     text,
    PRIMARY KEY (document_id, tag_id)
);
COMMENT ON COLUMN document_tags.made_by IS 'NULL for a tag that a person assigned.';
CREATE INDEX document_tags_tag ON document_tags (tag_id);

CREATE TABLE artifacts (
    id           uuid PRIMARY KEY,
    document_id  uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    job_id       uuid,
    kind         text NOT NULL,
    name         text NOT NULL DEFAULT '',
    revision     integer NOT NULL DEFAULT 0,
    key          text NOT NULL REFERENCES objects,
    content_type text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT engine_now(),
    UNIQUE (document_id, revision, kind, name)
);
COMMENT ON COLUMN artifacts.revision IS '0 for files of the document itself, such as its source.';
CREATE INDEX artifacts_key ON artifacts (key);
CREATE INDEX artifacts_page_pictures ON artifacts (created_at) WHERE kind = 'page_picture';

CREATE FUNCTION count_references() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE objects SET refs = refs + 1 WHERE key = NEW.key;
    ELSE
        UPDATE objects SET refs = refs - 1 WHERE key = OLD.key;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER artifacts_refer AFTER INSERT OR DELETE ON artifacts
    FOR EACH ROW EXECUTE FUNCTION count_references();

CREATE TABLE owner_usage (
    owner_id  uuid PRIMARY KEY REFERENCES owners ON DELETE CASCADE,
    bytes     bigint NOT NULL CHECK (bytes >= 0),
    documents integer NOT NULL CHECK (documents >= 0)
);

CREATE FUNCTION count_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('DELETE', 'UPDATE') THEN
        UPDATE owner_usage SET bytes = bytes - OLD.bytes, documents = documents - 1 WHERE owner_id = OLD.owner_id;
    END IF;
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        INSERT INTO owner_usage (owner_id, bytes, documents) VALUES (NEW.owner_id, NEW.bytes, 1)
        ON CONFLICT (owner_id) DO UPDATE SET bytes = owner_usage.bytes + excluded.bytes, documents = owner_usage.documents + 1;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER documents_count AFTER INSERT OR DELETE OR UPDATE OF owner_id ON documents
    FOR EACH ROW EXECUTE FUNCTION count_usage();

CREATE FUNCTION follow_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    readable boolean := NEW.status IN ('failed', 'dead_letter') AND EXISTS (
        SELECT FROM job_stages WHERE job_id = NEW.id AND stage = 'chunked');
BEGIN
    -- Discarding a dead letter does not change its document.
    UPDATE documents d SET updated_at = clock_timestamp(),
        needs_classification = readable OR kept.as_it_is,
        status = CASE
            WHEN NEW.status = 'complete' OR readable OR kept.as_it_is THEN 'completed'
            WHEN NEW.status IN ('failed', 'dead_letter', 'cancelled') THEN 'failed'
            ELSE 'pending' END
    FROM (SELECT id, NEW.status = 'cancelled' AND needs_classification AS as_it_is
          FROM documents WHERE process_id = NEW.id) AS kept
    WHERE d.id = kept.id;
    RETURN NULL;
END $$;
CREATE TRIGGER document_follows AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind = 'process_document' AND OLD.status <> NEW.status) EXECUTE FUNCTION follow_job();

CREATE TABLE pages (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision    integer NOT NULL,
    number      integer NOT NULL CHECK (number > 0),
    label       text,
    char_start  integer NOT NULL,
    char_end    integer NOT NULL CHECK (char_end >= char_start),
    width       real,
    height      real,
    bookmarks   jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (document_id, revision, number)
);
COMMENT ON COLUMN pages.bookmarks IS 'Entries of the table of contents of the file that begin on this page and have no heading in the text, each as [level, title].';

CREATE TABLE chunks (
    id           uuid PRIMARY KEY,
    document_id  uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision     integer NOT NULL,
    index        integer NOT NULL CHECK (index >= 0),
    content      text NOT NULL,
    char_start   integer NOT NULL,
    char_end     integer NOT NULL CHECK (char_end > char_start),
    page_from    integer,
    page_to      integer,
    heading_path text[] NOT NULL DEFAULT '{}',
    word_count   integer NOT NULL,
    themes       text[] NOT NULL DEFAULT '{}',
    tone         jsonb,
    importance   real,
    summary      text,
    made_by      text,
    seconds      real CHECK (seconds >= 0),
    boxes        jsonb NOT NULL DEFAULT '[]',
    UNIQUE (document_id, revision, index)
);
COMMENT ON COLUMN chunks.char_start IS 'In characters of the Markdown of the same revision.';
COMMENT ON COLUMN chunks.seconds IS 'Where in a recording the chunk begins; NULL for text that was not spoken.';
COMMENT ON COLUMN chunks.boxes IS 'Boxes on pages, each as [page, left, top, right, bottom] in points from the upper left corner.';

CREATE TABLE chunk_concepts (
    chunk_id   uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    concept    text NOT NULL,
    importance real NOT NULL,
    PRIMARY KEY (chunk_id, concept)
);
CREATE INDEX chunk_concepts_concept ON chunk_concepts (lower(concept));

CREATE FUNCTION begin_family() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.family_id := coalesce(NEW.family_id, NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER documents_begin_family BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION begin_family();

CREATE FUNCTION settle_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents d SET superseded = NOT d.superseded
    WHERE d.family_id = coalesce(NEW.family_id, OLD.family_id) AND d.superseded <> EXISTS (
        SELECT FROM documents newer
        WHERE newer.family_id = d.family_id AND newer.version > d.version AND newer.deleted_at IS NULL);
    RETURN NULL;
END $$;
CREATE TRIGGER documents_version_came AFTER INSERT ON documents FOR EACH ROW
    WHEN (NEW.version > 1) EXECUTE FUNCTION settle_versions();
CREATE TRIGGER documents_version_moved AFTER UPDATE OF deleted_at ON documents FOR EACH ROW
    WHEN ((OLD.deleted_at IS NULL) <> (NEW.deleted_at IS NULL)) EXECUTE FUNCTION settle_versions();
CREATE TRIGGER documents_version_went AFTER DELETE ON documents FOR EACH ROW EXECUTE FUNCTION settle_versions();

-- uploads.sql

CREATE TABLE uploads (
    id             uuid PRIMARY KEY,
    owner_id       uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id    uuid NOT NULL,
    process_id     uuid NOT NULL,
    state          text NOT NULL DEFAULT 'pending'
                   CHECK (state IN ('pending', 'uploaded', 'deduplicated', 'rejected', 'failed', 'deleted')),
    is_canonical   boolean NOT NULL DEFAULT false,
    duplicates     text NOT NULL CHECK (duplicates IN ('reuse', 'new', 'reject')),
    filename       text NOT NULL,
    content_type   text NOT NULL,
    source_type    text NOT NULL,
    source_url     text,
    given          jsonb NOT NULL DEFAULT '{}',
    claimed_bytes  bigint CHECK (claimed_bytes >= 0),
    claimed_sha256 bytea CHECK (length(claimed_sha256) = 32),
    incoming_key   text,
    object_key     text,
    bytes          bigint CHECK (bytes >= 0),
    sha256         bytea CHECK (length(sha256) = 32),
    error_code     text,
    error_message  text,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    received_at    timestamptz,
    finalized_at   timestamptz,
    version_of     uuid,
    CONSTRAINT canonical_is_uploaded CHECK (NOT is_canonical OR state = 'uploaded'),
    CONSTRAINT error_when_refused CHECK ((error_code IS NOT NULL) = (state IN ('rejected', 'failed'))),
    CONSTRAINT bytes_when_kept CHECK (state NOT IN ('uploaded', 'deduplicated') OR (sha256 IS NOT NULL AND bytes > 0))
);
COMMENT ON COLUMN uploads.incoming_key IS 'Where a presigned link lets the client write. Never read after finalizing.';
COMMENT ON COLUMN uploads.object_key IS 'Where the received bytes are. Only the server writes there.';
COMMENT ON COLUMN uploads.given IS 'What the client sent with it: title, author, source, extraction.';
COMMENT ON COLUMN uploads.version_of IS 'The document, in any version, of which this becomes a new version.';
CREATE UNIQUE INDEX uploads_canonical ON uploads (owner_id, sha256) WHERE is_canonical;
CREATE INDEX uploads_pending ON uploads (owner_id, created_at) WHERE state = 'pending';
CREATE INDEX uploads_document ON uploads (document_id);

CREATE FUNCTION copy_results(twin uuid, copy uuid, process uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    from_revision integer;
BEGIN
    UPDATE documents d SET
        quality = t.quality, revision = 1, text_ready = t.text_ready, embeddings_ready = t.embeddings_ready,
        needs_classification = t.needs_classification, page_count = t.page_count, word_count = t.word_count,
        author = coalesce(d.author, t.author), language = t.language, document_date = t.document_date,
        summary = t.summary, metadata = t.metadata || d.metadata, title = coalesce(d.title, t.title),
        described = ARRAY(SELECT name FROM unnest(t.described) AS name
                          WHERE NOT (name = 'title' AND d.title IS NOT NULL OR name = 'author' AND d.author IS NOT NULL)),
        described_by = t.described_by, source_type = t.source_type, status = 'completed'
    FROM documents t WHERE d.id = copy AND t.id = twin;
    SELECT revision INTO from_revision FROM documents WHERE id = twin;
    INSERT INTO document_tags (document_id, tag_id, made_by)
    SELECT copy, tag_id, made_by FROM document_tags WHERE document_id = twin AND made_by IS NOT NULL;
    INSERT INTO artifacts (id, document_id, job_id, kind, name, revision, key, content_type)
    SELECT gen_random_uuid(), copy, process, kind, name, 1, key, content_type
    FROM artifacts WHERE document_id = twin AND revision = from_revision AND revision > 0;
    INSERT INTO pages (document_id, revision, number, label, char_start, char_end, width, height, bookmarks)
    SELECT copy, 1, number, label, char_start, char_end, width, height, bookmarks
    FROM pages WHERE document_id = twin AND revision = from_revision;
    INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, page_from, page_to,
                        heading_path, word_count, themes, tone, importance, summary, made_by, seconds, boxes)
    SELECT gen_random_uuid(), copy, 1, index, content, char_start, char_end, page_from, page_to,
           heading_path, word_count, themes, tone, importance, summary, made_by, seconds, boxes
    FROM chunks WHERE document_id = twin AND revision = from_revision;
    INSERT INTO chunk_concepts (chunk_id, concept, importance)
    SELECT mine.id, k.concept, k.importance
    FROM chunks theirs JOIN chunks mine ON mine.document_id = copy AND mine.index = theirs.index
    JOIN chunk_concepts k ON k.chunk_id = theirs.id
    WHERE theirs.document_id = twin AND theirs.revision = from_revision;
    INSERT INTO chunk_embeddings (model_id, chunk_id, owner_id, document_id, vector)
    SELECT e.model_id, mine.id, e.owner_id, copy, e.vector
    FROM chunks theirs JOIN chunks mine ON mine.document_id = copy AND mine.index = theirs.index
    JOIN chunk_embeddings e ON e.chunk_id = theirs.id
    WHERE theirs.document_id = twin AND theirs.revision = from_revision;
    INSERT INTO jobs (id, kind, owner_id, document_id, key, virtual_time, status, max_attempts, admitted, output,
                      created_at, queued_at, completed_at)
    SELECT process, k.name, d.owner_id, d.id, format('process:%s:1', d.id), 0, 'complete', k.max_attempts, false,
           jsonb_build_object('reused', twin), at, at, at
    FROM documents d, job_kinds k WHERE d.id = copy AND k.name = 'process_document';
END $$;

CREATE FUNCTION inherit_corrections(before documents, next uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE documents SET
        collection_id = before.collection_id,
        title = CASE WHEN title IS NULL AND 'title' = ANY (before.edited) THEN before.title ELSE title END,
        author = CASE WHEN author IS NULL AND 'author' = ANY (before.edited) THEN before.author ELSE author END,
        edited = ARRAY(SELECT name FROM unnest(before.edited) AS name
                       WHERE name = 'tags' OR name = 'title' AND title IS NULL OR name = 'author' AND author IS NULL)
    WHERE id = next;
$$;

CREATE FUNCTION place_upload(upload uuid, of_owner uuid, content text, expected_key text, detected text, quota bigint,
                             process jsonb, compare jsonb)
RETURNS TABLE (state text, document_id uuid, process_id uuid, duplicate_of uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    u uploads;
    newest documents;
    twin record;
    expired uuid;
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
    INSERT INTO documents (id, owner_id, process_id, title, author, filename, content_type, source_type, source_url, sha256,
                           bytes, metadata, duplicate_of, last_revision, family_id, version)
    VALUES (u.document_id, of_owner, u.process_id, u.given ->> 'title', u.given ->> 'author', u.filename, u.content_type,
            detected, u.source_url, u.sha256, u.bytes, u.given - '{title,author,extraction}'::text[], twin.id, 1, newest.family_id,
            coalesce((SELECT max(version) + 1 FROM documents WHERE family_id = newest.family_id), 1));
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
            PERFORM enqueue_jobs(jsonb_build_array(compare));
        END IF;
    ELSE
        PERFORM enqueue_jobs(jsonb_build_array(process));
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

-- embeddings.sql

CREATE TABLE embedding_models (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 16000),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE chunk_embeddings (
    model_id    integer NOT NULL REFERENCES embedding_models,
    chunk_id    uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    owner_id    uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    vector      vector NOT NULL,
    PRIMARY KEY (chunk_id, model_id)
);
CREATE INDEX chunk_embeddings_owner ON chunk_embeddings (owner_id, model_id);
CREATE INDEX chunk_embeddings_document ON chunk_embeddings (document_id);

CREATE TABLE tag_embeddings (
    model_id integer NOT NULL REFERENCES embedding_models,
    tag_id   uuid NOT NULL REFERENCES tags ON DELETE CASCADE,
    vector   vector NOT NULL,
    PRIMARY KEY (tag_id, model_id)
);

CREATE FUNCTION embedding_model(of_name text, of_dimensions integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    found embedding_models;
BEGIN
    SELECT * INTO found FROM embedding_models WHERE name = of_name;
    IF found.id IS NULL THEN
        INSERT INTO embedding_models (name, dimensions) VALUES (of_name, of_dimensions) ON CONFLICT DO NOTHING;
        SELECT * INTO found FROM embedding_models WHERE name = of_name;
    END IF;
    RETURN CASE WHEN found.dimensions = of_dimensions THEN found.id END;
END $$;

CREATE FUNCTION vectors_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE chunk_embeddings SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    UPDATE connections SET owner_id = NEW.owner_id
    WHERE NEW.id IN (source_document, target_document) AND owner_id <> NEW.owner_id;
    RETURN NULL;
END $$;
CREATE TRIGGER vectors_follow AFTER UPDATE OF owner_id ON documents
    FOR EACH ROW WHEN (OLD.owner_id <> NEW.owner_id) EXECUTE FUNCTION vectors_follow_document();

-- search.sql

CREATE FUNCTION search_config(of_language text) RETURNS regconfig LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    CASE split_part(lower(coalesce(of_language, 'en')), '-', 1)
        WHEN 'en' THEN 'pg_catalog.english'::regconfig
        WHEN 'ar' THEN 'pg_catalog.arabic'::regconfig
        WHEN 'ca' THEN 'pg_catalog.catalan'::regconfig
        WHEN 'da' THEN 'pg_catalog.danish'::regconfig
        WHEN 'de' THEN 'pg_catalog.german'::regconfig
        WHEN 'el' THEN 'pg_catalog.greek'::regconfig
        WHEN 'es' THEN 'pg_catalog.spanish'::regconfig
        WHEN 'eu' THEN 'pg_catalog.basque'::regconfig
        WHEN 'fi' THEN 'pg_catalog.finnish'::regconfig
        WHEN 'fr' THEN 'pg_catalog.french'::regconfig
        WHEN 'ga' THEN 'pg_catalog.irish'::regconfig
        WHEN 'hi' THEN 'pg_catalog.hindi'::regconfig
        WHEN 'hu' THEN 'pg_catalog.hungarian'::regconfig
        WHEN 'hy' THEN 'pg_catalog.armenian'::regconfig
        WHEN 'id' THEN 'pg_catalog.indonesian'::regconfig
        WHEN 'it' THEN 'pg_catalog.italian'::regconfig
        WHEN 'lt' THEN 'pg_catalog.lithuanian'::regconfig
        WHEN 'ne' THEN 'pg_catalog.nepali'::regconfig
        WHEN 'nl' THEN 'pg_catalog.dutch'::regconfig
        WHEN 'no' THEN 'pg_catalog.norwegian'::regconfig
        WHEN 'nb' THEN 'pg_catalog.norwegian'::regconfig
        WHEN 'pt' THEN 'pg_catalog.portuguese'::regconfig
        WHEN 'ro' THEN 'pg_catalog.romanian'::regconfig
        WHEN 'ru' THEN 'pg_catalog.russian'::regconfig
        WHEN 'sr' THEN 'pg_catalog.serbian'::regconfig
        WHEN 'sv' THEN 'pg_catalog.swedish'::regconfig
        WHEN 'ta' THEN 'pg_catalog.tamil'::regconfig
        WHEN 'tr' THEN 'pg_catalog.turkish'::regconfig
        WHEN 'yi' THEN 'pg_catalog.yiddish'::regconfig
        ELSE 'pg_catalog.simple'::regconfig
    END;

CREATE FUNCTION search_text(given text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    plain text := normalize(translate(left(given, 100000), '/\*_`#|<>~=@', '            '), NFKC);
    unspaced CONSTANT text := '\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3040-\u30FF\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF';
BEGIN
    IF plain !~ ('[' || unspaced || ']') THEN
        RETURN plain;
    END IF;
    RETURN (
        SELECT string_agg(CASE WHEN part[1] ~ ('^[' || unspaced || ']') THEN (
            SELECT string_agg(substr(part[1], place, 2), ' ' ORDER BY place) FROM generate_series(1, length(part[1])) AS place)
            ELSE part[1] END, ' ' ORDER BY number)
        FROM regexp_matches(plain, format('[%1$s]+|[^%1$s]+', unspaced), 'g') WITH ORDINALITY AS parts (part, number));
END $$;

CREATE FUNCTION lexeme_query(lexeme text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')::tsquery;

CREATE FUNCTION times_used(rank real) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    1 / (1.64493406685 * greatest(1.00001 - rank::double precision, 0.002)) - 0.5;

CREATE FUNCTION search_words(config regconfig, given text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT said || array_to_tsvector(ARRAY(SELECT '3 ' || lexeme FROM unnest(said) WHERE cardinality(positions) >= 3))
    FROM to_tsvector(config, search_text(given)) AS said
$$;

CREATE TABLE chunk_words (
    chunk_id    uuid PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision    integer NOT NULL,
    length      integer NOT NULL,
    words       tsvector NOT NULL
) WITH (toast_tuple_target = 128);
COMMENT ON COLUMN chunk_words.length IS 'Number of words, without the stop words of its language.';
CREATE INDEX chunk_words_document ON chunk_words (document_id);
CREATE INDEX chunk_words_words ON chunk_words USING gin (words);

ALTER TABLE chunk_words ALTER COLUMN words SET STORAGE EXTERNAL;

CREATE TABLE document_passages (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision    integer NOT NULL,
    passages    integer NOT NULL,
    words       bigint NOT NULL,
    PRIMARY KEY (document_id, revision)
);

CREATE FUNCTION count_chunks(of_documents uuid[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM document_passages p WHERE document_id = ANY (of_documents) AND NOT EXISTS (
        SELECT FROM chunk_words w WHERE w.document_id = p.document_id AND w.revision = p.revision);
    INSERT INTO document_passages (document_id, revision, passages, words)
    SELECT document_id, revision, count(*), sum(length) FROM chunk_words WHERE document_id = ANY (of_documents) GROUP BY 1, 2
    ON CONFLICT (document_id, revision) DO UPDATE SET passages = excluded.passages, words = excluded.words;
$$;

CREATE FUNCTION index_chunks(of_chunks uuid[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO chunk_words (chunk_id, document_id, revision, length, words)
    SELECT c.id, c.document_id, c.revision,
           coalesce((SELECT sum(cardinality(positions)) FROM unnest(said.words)), 0), said.words
    FROM chunks c JOIN documents d ON d.id = c.document_id
    CROSS JOIN LATERAL search_words(search_config(d.language),
                                    array_to_string(c.heading_path, E'\n') || E'\n' || c.content) AS said (words)
    WHERE c.id = ANY (of_chunks)
    ON CONFLICT (chunk_id) DO UPDATE SET length = excluded.length, words = excluded.words;
    SELECT count_chunks(ARRAY(SELECT DISTINCT document_id FROM chunks WHERE id = ANY (of_chunks)));
$$;

CREATE FUNCTION words_follow_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_chunks(ARRAY(SELECT id FROM made));
    RETURN NULL;
END $$;
CREATE TRIGGER words_follow AFTER INSERT ON chunks
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION words_follow_chunks();

CREATE FUNCTION count_after_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_chunks(ARRAY(SELECT DISTINCT document_id FROM gone));
    RETURN NULL;
END $$;
CREATE TRIGGER count_after_delete AFTER DELETE ON chunks
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_after_delete();

CREATE FUNCTION words_follow_language() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM index_chunks(ARRAY(SELECT id FROM chunks WHERE document_id = NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER words_follow AFTER UPDATE OF language ON documents FOR EACH ROW
    WHEN (search_config(OLD.language) <> search_config(NEW.language)) EXECUTE FUNCTION words_follow_language();
CREATE INDEX documents_title_words ON documents
    USING gin (to_tsvector(search_config(language), search_text(coalesce(nullif(title, ''), filename))));

CREATE FUNCTION searched_documents(of_owner uuid, chosen jsonb)
RETURNS TABLE (id uuid, revision integer, config regconfig) LANGUAGE sql STABLE AS $$
    SELECT d.id, d.revision, search_config(d.language) FROM documents d
    WHERE d.owner_id = of_owner AND d.deleted_at IS NULL
      AND (NOT d.superseded OR chosen ?| '{documents,versions}' OR NOT EXISTS (
          SELECT FROM documents newer WHERE newer.family_id = d.family_id AND newer.version > d.version
              AND newer.deleted_at IS NULL AND newer.text_ready))
      AND (chosen -> 'documents' IS NULL OR d.id = ANY (ARRAY(SELECT jsonb_array_elements_text(chosen -> 'documents')::uuid)))
      AND (chosen -> 'without' IS NULL OR d.id <> (chosen ->> 'without')::uuid)
      AND (chosen -> 'tags' IS NULL OR EXISTS (
          SELECT FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
          WHERE dt.document_id = d.id AND lower(t.name) IN (SELECT lower(jsonb_array_elements_text(chosen -> 'tags')))))
      AND (chosen -> 'collection' IS NULL OR EXISTS (
          SELECT FROM collections c WHERE c.id = d.collection_id AND lower(c.name) = lower(chosen ->> 'collection')))
      AND (chosen -> 'kinds' IS NULL OR d.source_type IN (SELECT jsonb_array_elements_text(chosen -> 'kinds')))
      AND (chosen -> 'language' IS NULL OR d.language = chosen ->> 'language')
      AND (chosen -> 'since' IS NULL OR coalesce(d.document_date, d.created_at::date) >= (chosen ->> 'since')::date)
      AND (chosen -> 'until' IS NULL OR coalesce(d.document_date, d.created_at::date) <= (chosen ->> 'until')::date)
$$;

CREATE FUNCTION nearest_chunks(of_owner uuid, chosen jsonb, of_model integer, given vector, required tsquery, excluded tsquery,
                                 by_index boolean, most integer)
RETURNS TABLE (chunk_id uuid, document_id uuid, score double precision) LANGUAGE plpgsql STABLE AS $$
DECLARE
    as_indexed text := CASE WHEN by_index THEN format(
        CASE WHEN vector_dims(given) > 2000 THEN '::halfvec(%s)' ELSE '::vector(%s)' END, vector_dims(given)) ELSE '' END;
BEGIN
    IF of_model IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($query$
        SELECT near.chunk_id, near.document_id, 1 - near.distance FROM (
            SELECT e.chunk_id, e.document_id, d.revision, e.vector%1$s <=> $1%1$s AS distance
            FROM chunk_embeddings e JOIN searched_documents($2, $3) d ON d.id = e.document_id %3$s
            WHERE e.model_id = %2$s AND e.owner_id = $2
            ORDER BY e.vector%1$s <=> $1%1$s LIMIT 2 * $4) AS near
        JOIN chunks c ON c.id = near.chunk_id AND c.revision = near.revision
        ORDER BY near.distance, near.chunk_id LIMIT $4$query$,
        as_indexed, of_model, CASE WHEN required IS NOT NULL OR excluded IS NOT NULL THEN
            'JOIN chunk_words w ON w.chunk_id = e.chunk_id AND ($5 IS NULL OR w.words @@ $5) AND ($6 IS NULL OR NOT w.words @@ $6)'
            ELSE '' END)
    USING given, of_owner, chosen, most, required, excluded;
END $$;

-- connections.sql

CREATE TABLE connections (
    id              uuid PRIMARY KEY,
    owner_id        uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    engine          text NOT NULL CHECK (engine IN ('semantic_similarity', 'contradiction_detection', 'thematic_bridge')),
    source_chunk    uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    target_chunk    uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    source_document uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    target_document uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    strength        real NOT NULL CHECK (strength BETWEEN 0 AND 1),
    source_start    integer NOT NULL CHECK (source_start >= 0),
    source_end      integer NOT NULL CHECK (source_end > source_start),
    target_start    integer NOT NULL CHECK (target_start >= 0),
    target_end      integer NOT NULL CHECK (target_end > target_start),
    explanation     text NOT NULL,
    status          text NOT NULL CHECK (status IN ('found', 'possible', 'confirmed')),
    made_by         text NOT NULL,
    digest          bytea NOT NULL CHECK (length(digest) = 32),
    detail          jsonb NOT NULL DEFAULT '{}',
    found_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT kept_once UNIQUE (source_chunk, target_chunk, engine),
    CONSTRAINT without_direction CHECK (source_chunk < target_chunk),
    CONSTRAINT between_documents CHECK (source_document <> target_document)
);
COMMENT ON COLUMN connections.source_start IS 'In characters of the chunk; the quote goes from here to source_end.';
COMMENT ON COLUMN connections.digest IS 'Hash of both quotes. The verdict of a person is stored under it.';
CREATE INDEX connections_target ON connections (target_chunk);
CREATE INDEX connections_source_document ON connections (source_document);
CREATE INDEX connections_target_document ON connections (target_document);
CREATE INDEX connections_owner ON connections (owner_id);

CREATE TABLE connection_verdicts (
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    digest     bytea NOT NULL CHECK (length(digest) = 32),
    verdict    text NOT NULL CHECK (verdict IN ('confirmed', 'dismissed')),
    decided_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_id, digest)
);

CREATE FUNCTION page_of(chunk chunks, place integer) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN chunk.page_from = chunk.page_to THEN chunk.page_from ELSE (
        SELECT max(p.number) FROM pages p
        WHERE p.document_id = chunk.document_id AND p.revision = chunk.revision
          AND p.number BETWEEN chunk.page_from AND chunk.page_to
          AND (p.char_start <= chunk.char_start + place OR p.number = chunk.page_from)) END
$$;

CREATE TABLE connection_weights (
    owner_id                uuid PRIMARY KEY REFERENCES owners ON DELETE CASCADE,
    semantic_similarity     smallint NOT NULL CHECK (semantic_similarity BETWEEN 0 AND 100),
    contradiction_detection smallint NOT NULL CHECK (contradiction_detection BETWEEN 0 AND 100),
    thematic_bridge         smallint NOT NULL CHECK (thematic_bridge BETWEEN 0 AND 100)
);

-- ai.sql

CREATE TABLE ai_calls (
    id            uuid PRIMARY KEY,
    request_hash  bytea CHECK (length(request_hash) = 32),
    owner_id      uuid REFERENCES owners ON DELETE SET NULL,
    document_id   uuid,
    job_id        uuid,
    lease_token   bigint,
    purpose       text NOT NULL,
    provider      text NOT NULL,
    model         text NOT NULL,
    state         text NOT NULL CHECK (state IN ('reserved', 'settled', 'failed')),
    estimate_usd  numeric(14, 8) NOT NULL CHECK (estimate_usd >= 0),
    cost_usd      numeric(14, 8) NOT NULL DEFAULT 0 CHECK (cost_usd >= 0),
    is_estimated  boolean NOT NULL DEFAULT false,
    tokens_in     integer NOT NULL DEFAULT 0,
    tokens_out    integer NOT NULL DEFAULT 0,
    seconds       double precision,
    fault         text,
    failed_models jsonb NOT NULL DEFAULT '[]',
    response      jsonb,
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    CONSTRAINT answer_only_when_settled CHECK (response IS NULL OR state = 'settled'),
    CONSTRAINT answer_or_no_hash CHECK (state <> 'settled' OR (response IS NULL) = (request_hash IS NULL)),
    CONSTRAINT fault_only_when_failed CHECK ((fault IS NOT NULL) = (state = 'failed')),
    CONSTRAINT ended_has_its_time CHECK ((ended_at IS NULL) = (state = 'reserved'))
);
COMMENT ON COLUMN ai_calls.request_hash IS 'Hash of owner, generation, task, prompt and inputs. NULL if the answer was deleted and cannot be reused.';
COMMENT ON COLUMN ai_calls.is_estimated IS 'The cost is unknown, so the estimate is used.';
COMMENT ON COLUMN ai_calls.failed_models IS 'Models that were called before with the same request, and why they failed.';
COMMENT ON COLUMN ai_calls.expires_at IS 'After this time nobody waits for the answer.';
CREATE UNIQUE INDEX ai_calls_live ON ai_calls (request_hash) WHERE state <> 'failed' AND request_hash IS NOT NULL;
CREATE INDEX ai_calls_reserved ON ai_calls (expires_at) WHERE state = 'reserved';
CREATE INDEX ai_calls_answers ON ai_calls (ended_at) WHERE response IS NOT NULL;
CREATE INDEX ai_calls_owner ON ai_calls (owner_id, created_at);
CREATE INDEX ai_calls_document ON ai_calls (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX ai_calls_job ON ai_calls (job_id, created_at) WHERE job_id IS NOT NULL;

CREATE TABLE ai_reuses (
    call_id     uuid NOT NULL REFERENCES ai_calls ON DELETE CASCADE,
    owner_id    uuid REFERENCES owners ON DELETE CASCADE,
    document_id uuid,
    job_id      uuid,
    saved_usd   numeric(14, 8) NOT NULL,
    at          timestamptz NOT NULL
);
CREATE INDEX ai_reuses_call ON ai_reuses (call_id);
CREATE INDEX ai_reuses_owner ON ai_reuses (owner_id, at);

CREATE TABLE ai_spending (
    key          text PRIMARY KEY,
    reserved_usd numeric(16, 8) NOT NULL DEFAULT 0 CHECK (reserved_usd >= 0),
    spent_usd    numeric(16, 8) NOT NULL DEFAULT 0 CHECK (spent_usd >= 0)
);

CREATE TABLE ai_gates (
    name        text PRIMARY KEY,
    requests_at timestamptz NOT NULL DEFAULT '-infinity',
    tokens_at   timestamptz NOT NULL DEFAULT '-infinity',
    held_until  timestamptz NOT NULL DEFAULT '-infinity',
    failures    integer NOT NULL DEFAULT 0,
    open_until  timestamptz,
    probe_until timestamptz
);
COMMENT ON COLUMN ai_gates.requests_at IS 'When the next request would be due if requests came evenly; tokens_at is the same for tokens.';
COMMENT ON COLUMN ai_gates.held_until IS 'The provider asked to send nothing before this time.';
COMMENT ON COLUMN ai_gates.open_until IS 'Set while the circuit is open. After it one call may probe, until probe_until.';

CREATE TABLE provider_files (
    provider   text NOT NULL,
    account    text NOT NULL,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    sha256     bytea NOT NULL CHECK (length(sha256) = 32),
    name       text NOT NULL,
    uri        text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (provider, account, owner_id, sha256)
);
COMMENT ON COLUMN provider_files.account IS 'Fingerprint of the API key and base URL it was sent with; other accounts cannot see the file.';
CREATE INDEX provider_files_owner ON provider_files (owner_id);
CREATE INDEX provider_files_expiry ON provider_files (expires_at);

CREATE TABLE budgets (
    scope       text NOT NULL CHECK (scope IN ('document', 'owner', 'month')),
    document_id uuid REFERENCES documents ON DELETE CASCADE,
    most_usd    numeric(16, 8) NOT NULL CHECK (most_usd BETWEEN 0 AND 1000000),
    set_at      timestamptz NOT NULL DEFAULT engine_now(),
    UNIQUE NULLS NOT DISTINCT (scope, document_id),
    CONSTRAINT only_documents_have_their_own CHECK (document_id IS NULL OR scope = 'document')
);
CREATE INDEX budgets_document ON budgets (document_id);

CREATE FUNCTION take_ledger_turn() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('ai_calls', 0))
$$;

CREATE FUNCTION take_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM take_ledger_turn();
    RETURN NULL;
END $$;
CREATE TRIGGER a_turn_each BEFORE INSERT OR UPDATE OR DELETE ON ai_calls
    FOR EACH STATEMENT EXECUTE FUNCTION take_turn();

CREATE FUNCTION spending_keys(owner uuid, document uuid, at timestamptz) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT array_remove(ARRAY[
        'month:' || month, 'owner:' || owner || ':' || month, 'document:' || document], NULL)
    FROM to_char(at AT TIME ZONE 'UTC', 'YYYY-MM') AS month
$$;

CREATE FUNCTION count_money() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('DELETE', 'UPDATE') THEN
        UPDATE ai_spending SET
            reserved_usd = reserved_usd - CASE OLD.state WHEN 'reserved' THEN OLD.estimate_usd ELSE 0 END,
            spent_usd = spent_usd - OLD.cost_usd
        WHERE key = ANY (spending_keys(OLD.owner_id, OLD.document_id, OLD.created_at));
    END IF;
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        INSERT INTO ai_spending (key, reserved_usd, spent_usd)
        SELECT key, CASE NEW.state WHEN 'reserved' THEN NEW.estimate_usd ELSE 0 END, NEW.cost_usd
        FROM unnest(spending_keys(NEW.owner_id, NEW.document_id, NEW.created_at)) AS key ORDER BY key
        ON CONFLICT (key) DO UPDATE SET reserved_usd = ai_spending.reserved_usd + excluded.reserved_usd,
                                        spent_usd = ai_spending.spent_usd + excluded.spent_usd;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER money_is_counted AFTER INSERT OR DELETE OR UPDATE OF state, cost_usd, owner_id, document_id ON ai_calls
    FOR EACH ROW EXECUTE FUNCTION count_money();

CREATE FUNCTION forget_answer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.request_hash := NULL;
    NEW.response := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER answers_go_with_their_owner BEFORE UPDATE OF owner_id, document_id ON ai_calls FOR EACH ROW
    WHEN (NEW.owner_id IS NULL OR NEW.document_id IS NULL AND OLD.document_id IS NOT NULL)
    EXECUTE FUNCTION forget_answer();

CREATE FUNCTION calls_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ai_calls WHERE document_id = OLD.id) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'DELETE' THEN
        UPDATE ai_calls SET document_id = NULL WHERE document_id = OLD.id;
        DELETE FROM ai_spending WHERE key = 'document:' || OLD.id;
    ELSE
        UPDATE ai_calls SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER calls_follow AFTER DELETE OR UPDATE OF owner_id ON documents
    FOR EACH ROW EXECUTE FUNCTION calls_follow_document();

CREATE FUNCTION is_awaited(call ai_calls, at timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT call.expires_at > at AND (call.job_id IS NULL OR EXISTS (
        SELECT FROM jobs WHERE id = call.job_id AND lease_token = call.lease_token AND status = 'processing'))
$$;

CREATE FUNCTION give_up_calls(calls uuid[], at timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    number integer;
BEGIN
    UPDATE ai_calls SET state = 'failed', fault = 'abandoned', cost_usd = estimate_usd, is_estimated = true, ended_at = at
    WHERE id = ANY (calls) AND state = 'reserved';
    GET DIAGNOSTICS number = ROW_COUNT;
    RETURN number;
END $$;

CREATE FUNCTION budgets_in_force(document uuid, usual numeric[]) RETURNS numeric[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY[
        coalesce(max(most_usd) FILTER (WHERE document_id = document),
                 max(most_usd) FILTER (WHERE scope = 'document' AND document_id IS NULL), usual[1]),
        coalesce(max(most_usd) FILTER (WHERE scope = 'owner'), usual[2]),
        coalesce(max(most_usd) FILTER (WHERE scope = 'month'), usual[3])]
    FROM budgets WHERE document_id IS NULL OR document_id = document
$$;

CREATE FUNCTION limit_passed(owner uuid, document uuid, at timestamptz, needed numeric, limits numeric[])
RETURNS TABLE (scope text, taken_usd numeric, limit_usd numeric) LANGUAGE sql STABLE AS $$
    SELECT b.scope, coalesce(s.reserved_usd + s.spent_usd, 0), b.most
    FROM unnest(ARRAY['document', 'owner', 'month'], limits) WITH ORDINALITY AS b (scope, most, place)
    JOIN unnest(spending_keys(owner, document, at)) AS key ON split_part(key, ':', 1) = b.scope
    LEFT JOIN ai_spending s USING (key)
    WHERE needed > 0 AND coalesce(s.reserved_usd + s.spent_usd, 0) + needed > b.most
    ORDER BY b.place LIMIT 1
$$;

CREATE FUNCTION budget_passed(owner uuid, document uuid, at timestamptz, needed numeric, limits numeric[])
RETURNS TABLE (scope text, taken_usd numeric, limit_usd numeric) LANGUAGE sql STABLE AS $$
    SELECT * FROM limit_passed(owner, document, at, needed, budgets_in_force(document, limits))
$$;

CREATE FUNCTION circuit_pause(of_provider text, at timestamptz) RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT coalesce(max(extract(epoch FROM greatest(open_until, probe_until) - at)) FILTER (
        WHERE greatest(open_until, probe_until) > at), 0)
    FROM ai_gates WHERE name = of_provider AND open_until IS NOT NULL
$$;

CREATE FUNCTION gate_pause(of_provider text, of_model text, tokens integer, request_rate double precision,
                           token_rate double precision, patience double precision, at timestamptz)
RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    burst CONSTANT interval := interval '6 seconds';
    start timestamptz;
    pause double precision;
BEGIN
    INSERT INTO ai_gates (name) VALUES (of_provider) ON CONFLICT DO NOTHING;
    SELECT greatest(at, max(held_until)) INTO start FROM ai_gates WHERE name IN (of_provider, of_provider || ':' || of_model);
    IF request_rate IS NOT NULL THEN
        SELECT greatest(start, requests_at - burst, tokens_at - burst) INTO start FROM ai_gates WHERE name = of_provider;
    END IF;
    pause := extract(epoch FROM start - at);
    IF pause <= patience AND request_rate IS NOT NULL THEN
        UPDATE ai_gates SET
            requests_at = greatest(requests_at, start) + make_interval(secs => 60 / (0.9 * request_rate)),
            tokens_at = greatest(tokens_at, start) + make_interval(secs => tokens * 60 / (0.9 * token_rate))
        WHERE name = of_provider;
    END IF;
    RETURN pause;
END $$;

CREATE FUNCTION reuse_answer(hash bytea, owner uuid, document uuid, job uuid) RETURNS SETOF ai_calls LANGUAGE sql AS $$
    WITH found AS (
        SELECT * FROM ai_calls WHERE request_hash = hash AND state = 'settled'
    ), noted AS (
        INSERT INTO ai_reuses (call_id, owner_id, document_id, job_id, saved_usd, at)
        SELECT id, owner, document, job, cost_usd, engine_now() FROM found
    )
    SELECT * FROM found
$$;

CREATE FUNCTION reserve_call(
    call uuid, hash bytea, owner uuid, document uuid, job uuid, token bigint, of_purpose text, of_provider text,
    of_model text, estimate numeric, tokens integer, time_limit double precision, request_rate double precision,
    token_rate double precision, patience double precision, limits numeric[], anonymous_too boolean, failed jsonb,
    OUT verdict text, OUT seconds double precision, OUT scope text, OUT taken_usd numeric, OUT limit_usd numeric)
LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    live ai_calls;
BEGIN
    -- Lock the owner first, because deleting or merging an owner locks it before the ledger, too.
    IF (SELECT kind FROM owners WHERE id = owner FOR KEY SHARE) = 'anonymous' AND NOT anonymous_too THEN
        verdict := 'local_only';
        RETURN;
    END IF;
    PERFORM take_ledger_turn();
    IF job IS NOT NULL AND NOT EXISTS (
        SELECT FROM jobs WHERE id = job AND lease_token = token AND status = 'processing') THEN
        verdict := 'gone';
        RETURN;
    END IF;
    SELECT * INTO live FROM ai_calls WHERE request_hash = hash AND state <> 'failed';
    IF live.state = 'settled' THEN
        verdict := 'answered';
        RETURN;
    ELSIF live.state = 'reserved' AND is_awaited(live, at) THEN
        verdict := 'in_flight';
        RETURN;
    ELSIF live.state = 'reserved' THEN
        PERFORM give_up_calls(ARRAY[live.id], at);
    END IF;
    SELECT b.scope, b.taken_usd, b.limit_usd INTO scope, taken_usd, limit_usd
    FROM budget_passed(owner, document, at, estimate, limits) b;
    IF scope IS NOT NULL THEN
        verdict := 'over_budget';
        -- Recorded, so that the job continues as soon as the budget allows this much.
        INSERT INTO ai_calls (id, owner_id, document_id, job_id, lease_token, purpose, provider, model, state, fault,
                              estimate_usd, failed_models, created_at, expires_at, ended_at)
        VALUES (call, owner, document, job, token, of_purpose, of_provider, of_model, 'failed', 'over_budget', estimate,
                failed, at, at, at);
        RETURN;
    END IF;
    seconds := circuit_pause(of_provider, at);
    IF seconds > 0 THEN
        verdict := 'circuit_open';
        RETURN;
    END IF;
    seconds := gate_pause(of_provider, of_model, tokens, request_rate, token_rate, patience, at);
    IF seconds > patience THEN
        verdict := 'held';
        RETURN;
    END IF;
    verdict := 'granted';
    INSERT INTO ai_calls (id, request_hash, owner_id, document_id, job_id, lease_token, purpose, provider, model, state,
                          estimate_usd, failed_models, created_at, expires_at)
    VALUES (call, hash, owner, document, job, token, of_purpose, of_provider, of_model, 'reserved', estimate, failed, at,
            at + make_interval(secs => seconds + time_limit));
    UPDATE ai_gates SET probe_until = at + make_interval(secs => seconds + time_limit)
    WHERE name = of_provider AND open_until IS NOT NULL;
END $$;

CREATE FUNCTION settle_call(call uuid, read integer, written integer, cost numeric, took double precision, answer jsonb)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    settled ai_calls;
BEGIN
    UPDATE ai_calls SET
        state = 'settled', tokens_in = read, tokens_out = written, cost_usd = cost, seconds = took, ended_at = at,
        response = CASE WHEN request_hash IS NOT NULL THEN answer END
    WHERE id = call AND state = 'reserved' RETURNING * INTO settled;
    IF settled.id IS NULL THEN
        UPDATE ai_calls SET tokens_in = read, tokens_out = written, cost_usd = cost, seconds = took, is_estimated = false
        WHERE id = call AND fault = 'abandoned';
        RETURN false;
    END IF;
    UPDATE ai_gates SET failures = 0, open_until = NULL, probe_until = NULL
    WHERE name = settled.provider AND failures > 0;
    RETURN true;
END $$;

CREATE FUNCTION fail_call(call uuid, of_fault text, read integer, written integer, cost numeric, took double precision,
                          hurts boolean, hold double precision)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    most CONSTANT integer := 5;
    at timestamptz := engine_now();
    failed ai_calls;
BEGIN
    UPDATE ai_calls SET
        state = 'failed', fault = of_fault, tokens_in = read, tokens_out = written, seconds = took,
        cost_usd = coalesce(cost, estimate_usd), is_estimated = cost IS NULL, ended_at = coalesce(ended_at, at)
    WHERE id = call AND (state = 'reserved' OR fault = 'abandoned') RETURNING * INTO failed;
    IF NOT hurts THEN
        UPDATE ai_gates SET failures = 0, open_until = NULL, probe_until = NULL WHERE name = failed.provider AND failures > 0;
    ELSIF hurts THEN
        -- Calls that were sent before the circuit opened do not count.
        UPDATE ai_gates SET
            failures = failures + 1, probe_until = NULL,
            open_until = CASE WHEN failures + 1 >= most
                THEN at + make_interval(secs => least(600, 30 * 2 ^ least(failures + 1 - most, 10))) END
        WHERE name = failed.provider AND coalesce(open_until <= at, true);
    END IF;
    IF hold > 0 THEN
        INSERT INTO ai_gates (name, held_until)
        VALUES (failed.provider || ':' || failed.model, at + make_interval(secs => hold))
        ON CONFLICT (name) DO UPDATE SET held_until = greatest(ai_gates.held_until, excluded.held_until);
    END IF;
END $$;

CREATE FUNCTION tend_calls(kept interval) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    given_up integer;
BEGIN
    PERFORM take_ledger_turn();
    given_up := give_up_calls(ARRAY(SELECT c.id FROM ai_calls c WHERE c.state = 'reserved' AND NOT is_awaited(c, at)), at);
    UPDATE ai_calls SET request_hash = NULL, response = NULL WHERE id IN (
        SELECT id FROM ai_calls WHERE response IS NOT NULL AND ended_at < at - kept LIMIT 1000);
    DELETE FROM provider_files WHERE expires_at < at;
    RETURN given_up;
END $$;

-- deliveries.sql

CREATE TABLE subscribers (
    id              uuid PRIMARY KEY,
    owner_id        uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    channel         text NOT NULL,
    address         text NOT NULL,
    secret          text,
    events          text[] NOT NULL CHECK (cardinality(events) > 0),
    everybodys      boolean NOT NULL DEFAULT false,
    active          boolean NOT NULL DEFAULT true,
    stopped_because text,
    created_at      timestamptz NOT NULL DEFAULT engine_now(),
    CONSTRAINT webhooks_are_signed CHECK ((secret IS NOT NULL) = (channel = 'webhook')),
    CONSTRAINT stopped_for_a_reason CHECK (NOT active OR stopped_because IS NULL)
);
COMMENT ON COLUMN subscribers.secret IS 'Signs webhooks. Shown once, when it is created.';
COMMENT ON COLUMN subscribers.everybodys IS 'Of the administrator, from the settings: gets the failures of all owners.';
CREATE INDEX subscribers_owner ON subscribers (owner_id, created_at, id);
CREATE UNIQUE INDEX subscribers_everybodys ON subscribers (channel) WHERE everybodys;

CREATE TABLE outgoing (
    place         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscriber_id uuid NOT NULL REFERENCES subscribers ON DELETE CASCADE,
    event_id      bigint NOT NULL,
    process_id    uuid NOT NULL,
    type          text NOT NULL,
    job_id        uuid,
    ended         boolean NOT NULL DEFAULT false,
    CONSTRAINT ended_with_its_job CHECK (NOT ended OR job_id IS NOT NULL)
);
COMMENT ON COLUMN outgoing.ended IS 'Its job ended, with success or not. The relay deletes the row and starts the next one.';
CREATE UNIQUE INDEX outgoing_once ON outgoing (subscriber_id, event_id);
CREATE UNIQUE INDEX outgoing_one_at_a_time ON outgoing (subscriber_id, process_id) WHERE job_id IS NOT NULL;
CREATE INDEX outgoing_lines ON outgoing (subscriber_id, process_id, place);
CREATE UNIQUE INDEX outgoing_job ON outgoing (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX outgoing_ended ON outgoing (place) WHERE ended;

CREATE TABLE deliveries (
    id            uuid PRIMARY KEY,
    subscriber_id uuid NOT NULL REFERENCES subscribers ON DELETE CASCADE,
    job_id        uuid NOT NULL,
    attempt       integer NOT NULL,
    event_id      bigint,
    process_id    uuid,
    type          text NOT NULL,
    status        text NOT NULL CHECK (status IN ('delivered', 'failed')),
    answer        integer,
    seconds       double precision NOT NULL,
    error_code    text,
    at            timestamptz NOT NULL DEFAULT engine_now(),
    CONSTRAINT failed_with_a_code CHECK ((error_code IS NOT NULL) = (status = 'failed'))
);
COMMENT ON COLUMN deliveries.answer IS 'The status code of the receiver, of HTTP or SMTP.';
CREATE INDEX deliveries_subscriber ON deliveries (subscriber_id, at, id);
CREATE INDEX deliveries_at ON deliveries (at);

CREATE FUNCTION refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'deliveries are never changed' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER deliveries_stay BEFORE UPDATE ON deliveries FOR EACH ROW EXECUTE FUNCTION refuse_update();

CREATE TABLE notifications (
    id          uuid PRIMARY KEY,
    owner_id    uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    event_id    bigint NOT NULL,
    process_id  uuid NOT NULL,
    document_id uuid REFERENCES documents ON DELETE CASCADE,
    type        text NOT NULL,
    level       text NOT NULL CHECK (level IN ('news', 'error')),
    title       text,
    error_code  text,
    created_at  timestamptz NOT NULL,
    read_at     timestamptz,
    resolved_at timestamptz,
    resolved_by uuid REFERENCES users ON DELETE SET NULL,
    CONSTRAINT only_errors_are_resolved CHECK (resolved_at IS NULL OR level = 'error'),
    CONSTRAINT somebody_at_a_time CHECK (resolved_by IS NULL OR resolved_at IS NOT NULL)
);
COMMENT ON COLUMN notifications.title IS 'Title of the document at that time. It is stored here, with the owner, and never in an event.';
CREATE UNIQUE INDEX notifications_once ON notifications (event_id);
CREATE INDEX notifications_owner ON notifications (owner_id, created_at, id);
CREATE INDEX notifications_unread ON notifications (owner_id) WHERE read_at IS NULL;
CREATE INDEX notifications_document ON notifications (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX notifications_resolved_by ON notifications (resolved_by) WHERE resolved_by IS NOT NULL;
CREATE INDEX notifications_read ON notifications (read_at) WHERE read_at IS NOT NULL;

CREATE TABLE relay (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    xid      xid8 NOT NULL,
    id       bigint NOT NULL
);

INSERT INTO relay (xid, id) SELECT pg_snapshot_xmin(pg_current_snapshot()), 0;

CREATE FUNCTION event_type(job_kind text, event_kind text, state_after text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN job_kind IN ('deliver', 'housekeeping') THEN NULL
        WHEN starts_with(event_kind, 'analysis.') THEN event_kind
        WHEN event_kind = 'dead_letter' THEN 'job.dead_letter'
        WHEN job_kind IN ('analyse_document', 'answer_segment', 'consolidate_answers', 'recover_analyses') THEN NULL
        ELSE CASE coalesce(job_kind, 'process_document') WHEN 'process_document' THEN 'document.' ELSE 'job.' END
             || CASE WHEN state_after = 'complete' THEN 'completed' ELSE event_kind END
    END
$$;

CREATE FUNCTION end_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE outgoing SET ended = true WHERE job_id = NEW.id AND NOT ended;
    RETURN NULL;
END $$;
CREATE TRIGGER delivery_ends AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind = 'deliver' AND OLD.status <> NEW.status
          AND NEW.status IN ('complete', 'failed', 'dead_letter', 'cancelled')) EXECUTE FUNCTION end_delivery();

CREATE FUNCTION relay_has_work() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    position relay;
BEGIN
    SELECT * INTO position FROM relay;
    PERFORM FROM events e
    WHERE (e.xid, e.id) > (position.xid, position.id) AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY e.xid, e.id LIMIT 1;
    IF FOUND THEN
        RETURN true;
    END IF;
    PERFORM FROM outgoing WHERE ended ORDER BY place LIMIT 1;
    RETURN FOUND;
END $$;

CREATE FUNCTION take_due_deliveries(subscribers uuid[], processes uuid[]) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    heads bigint[];
    due jsonb;
BEGIN
    SELECT array_agg(head.place) INTO heads
    FROM (SELECT DISTINCT subscriber, process FROM unnest(subscribers, processes) AS l (subscriber, process)) AS line
    CROSS JOIN LATERAL (
        SELECT place, job_id FROM outgoing WHERE subscriber_id = line.subscriber AND process_id = line.process
        ORDER BY place LIMIT 1) AS head
    WHERE head.job_id IS NULL;
    WITH started AS (
        UPDATE outgoing SET job_id = gen_random_uuid() WHERE place = ANY (heads) RETURNING *
    )
    SELECT jsonb_agg(jsonb_build_object(
        'job', o.job_id, 'owner', s.owner_id, 'subscriber', s.id, 'event', o.event_id, 'process', o.process_id,
        'type', o.type) ORDER BY o.place)
    INTO due FROM started o JOIN subscribers s ON s.id = o.subscriber_id;
    RETURN coalesce(due, '[]');
END $$;

CREATE FUNCTION relay_events(most integer, news text[], errors text[], OUT events_read integer, OUT due jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    seen relay;
    last_xid xid8;
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
    WITH found AS MATERIALIZED (
        SELECT e.xid, e.id, e.at, e.process_id, e.kind, e.state_after, e.owner_id, e.document_id, e.detail
        FROM events e
        WHERE (e.xid, e.id) > (seen.xid, seen.id) AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY e.xid, e.id LIMIT most
    ), named AS MATERIALIZED (
        -- The owner of a job may have changed since: a visitor who signed in.
        SELECT f.*, event_type(j.kind, f.kind, f.state_after) AS type, coalesce(j.owner_id, f.owner_id) AS whose
        FROM found f LEFT JOIN jobs j ON j.id = f.process_id
    ), told AS (
        INSERT INTO notifications (id, owner_id, event_id, process_id, document_id, type, level, title, error_code, created_at)
        SELECT gen_random_uuid(), o.id, n.id, n.process_id, d.id, n.type,
               CASE WHEN n.type = ANY (errors) THEN 'error' ELSE 'news' END,
               coalesce(d.title, d.filename), n.detail #>> '{error,code}', n.at
        FROM named n JOIN owners o ON o.id = n.whose LEFT JOIN documents d ON d.id = n.document_id
        WHERE n.type = ANY (news || errors)
    ), put AS (
        INSERT INTO outgoing (subscriber_id, event_id, process_id, type)
        SELECT subscriber, id, process_id, type FROM (
            SELECT s.id AS subscriber, n.* FROM named n JOIN subscribers s ON s.owner_id = n.whose AND NOT s.everybodys
            WHERE s.active AND n.type = ANY (s.events) AND n.at >= s.created_at
            UNION ALL
            SELECT s.id, n.* FROM named n CROSS JOIN subscribers s
            WHERE s.everybodys AND s.active AND n.type = ANY (s.events) AND n.at >= s.created_at) AS wanted
        ORDER BY xid, id
        RETURNING subscriber_id, process_id
    )
    SELECT (SELECT count(*) FROM found), lines.subscribers, lines.processes, l.xid, l.id
    INTO events_read, new_subscribers, new_processes, last_xid, last_id
    FROM (SELECT array_agg(subscriber_id) AS subscribers, array_agg(process_id) AS processes FROM put) AS lines
    LEFT JOIN LATERAL (SELECT xid, id FROM found ORDER BY xid DESC, id DESC LIMIT 1) AS l ON true;
    IF events_read > 0 THEN
        UPDATE relay SET xid = last_xid, id = last_id;
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

-- conversions.sql

CREATE TABLE mappings (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    file       text NOT NULL,
    text       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
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
END $$;

CREATE TABLE gateway_circuits (
    address     text PRIMARY KEY,
    failures    integer NOT NULL DEFAULT 0,
    open_until  timestamptz,
    probe_until timestamptz
);
COMMENT ON COLUMN gateway_circuits.open_until IS 'Set while the circuit is open. After it one call may probe, until probe_until.';

CREATE FUNCTION gateway_pause(of_address text, probe interval) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    circuit gateway_circuits;
BEGIN
    SELECT * INTO circuit FROM gateway_circuits WHERE address = of_address FOR UPDATE;
    IF circuit.open_until IS NULL THEN
        RETURN 0;
    END IF;
    IF circuit.open_until > at OR circuit.probe_until > at THEN
        RETURN greatest(extract(epoch FROM greatest(circuit.open_until, circuit.probe_until) - at), 1);
    END IF;
    UPDATE gateway_circuits SET probe_until = at + probe WHERE address = of_address;
    RETURN 0;
END $$;

CREATE FUNCTION gateway_answered(of_address text, well boolean) RETURNS void LANGUAGE sql AS $$
    INSERT INTO gateway_circuits AS c (address, failures) VALUES (of_address, CASE WHEN well THEN 0 ELSE 1 END)
    ON CONFLICT (address) DO UPDATE SET
        failures = CASE WHEN well THEN 0 ELSE c.failures + 1 END,
        probe_until = NULL,
        open_until = CASE WHEN NOT well AND c.failures + 1 >= 5
            THEN engine_now() + least(interval '10 seconds' * 2 ^ least(c.failures - 4, 10), interval '10 minutes') END
$$;

-- analyses.sql

CREATE TABLE prompts (
    id              uuid PRIMARY KEY,
    owner_id        uuid REFERENCES owners ON DELETE CASCADE,
    title           text NOT NULL CHECK (title <> ''),
    content         text NOT NULL CHECK (content <> ''),
    system          text NOT NULL DEFAULT '',
    execution_order integer NOT NULL DEFAULT 100 CHECK (execution_order >= 0),
    active          boolean NOT NULL DEFAULT true,
    version         integer NOT NULL DEFAULT 1 CHECK (version > 0),
    created_at      timestamptz NOT NULL DEFAULT engine_now(),
    updated_at      timestamptz NOT NULL DEFAULT engine_now()
);
COMMENT ON COLUMN prompts.owner_id IS 'NULL for a built-in prompt, which everybody can use and nobody can change.';
CREATE INDEX prompts_owner ON prompts (owner_id, execution_order, id);

CREATE TABLE prompt_versions (
    prompt_id  uuid NOT NULL REFERENCES prompts ON DELETE CASCADE,
    version    integer NOT NULL,
    title      text NOT NULL,
    content    text NOT NULL,
    system     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT engine_now(),
    PRIMARY KEY (prompt_id, version)
);

CREATE FUNCTION keep_prompt_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        NEW.updated_at := engine_now();
        NEW.version := OLD.version + (CASE WHEN (NEW.content, NEW.system) IS DISTINCT FROM (OLD.content, OLD.system)
                                      THEN 1 ELSE 0 END);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER prompts_count_versions BEFORE UPDATE ON prompts FOR EACH ROW EXECUTE FUNCTION keep_prompt_version();

CREATE FUNCTION write_prompt_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO prompt_versions (prompt_id, version, title, content, system)
    VALUES (NEW.id, NEW.version, NEW.title, NEW.content, NEW.system) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER prompts_keep_versions AFTER INSERT OR UPDATE ON prompts
    FOR EACH ROW EXECUTE FUNCTION write_prompt_version();

INSERT INTO prompts (id, title, execution_order, content) VALUES
    ('00000000-0000-7000-8000-00000000a001', 'Summary', 10,
     'Summarise what these pages say: their subject, the main points in their order, and what they conclude.'),
    ('00000000-0000-7000-8000-00000000a002', 'People and organisations', 20,
     'Which people and organisations are named, and what is the role of each of them?'),
    ('00000000-0000-7000-8000-00000000a003', 'Dates and deadlines', 30,
     'Which dates, periods and deadlines are given, and what happens on each of them or until then?'),
    ('00000000-0000-7000-8000-00000000a004', 'Money', 40,
     'Which amounts of money are named, for what, who pays them and to whom?'),
    ('00000000-0000-7000-8000-00000000a005', 'Obligations and risks', 50,
     'Who has to do what? Which duties, conditions, penalties and risks are there?');

CREATE TABLE analyses (
    id            uuid PRIMARY KEY,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id   uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision      integer NOT NULL,
    mode          text NOT NULL CHECK (mode IN ('parallel', 'sequential')),
    at_once       integer NOT NULL CHECK (at_once BETWEEN 1 AND 10),
    status        text NOT NULL CHECK (status IN ('created', 'queued', 'analyzing', 'completed', 'error')),
    phase         text NOT NULL DEFAULT 'initializing'
                  CHECK (phase IN ('initializing', 'uploading', 'processing', 'consolidating', 'completed', 'abandoned')),
    unit          text CHECK (unit IN ('pages', 'passages')),
    units         integer CHECK (units > 0),
    error_code    text,
    error_message text,
    created_at    timestamptz NOT NULL DEFAULT engine_now(),
    progressed_at timestamptz NOT NULL DEFAULT engine_now(),
    completed_at  timestamptz,
    CONSTRAINT completed_in_both CHECK ((status = 'completed') = (phase = 'completed')),
    CONSTRAINT completed_has_its_time CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT abandoned_is_an_error CHECK (phase <> 'abandoned' OR status = 'error'),
    CONSTRAINT error_has_its_code CHECK ((status = 'error') = (error_code IS NOT NULL)),
    CONSTRAINT message_with_its_code CHECK ((error_code IS NULL) = (error_message IS NULL)),
    CONSTRAINT planned_before_asked CHECK (units IS NOT NULL OR phase IN ('initializing', 'abandoned'))
);
COMMENT ON TABLE analyses IS 'An analysis has the id of the job that prepares it, which is the parent of all its other jobs.';
COMMENT ON COLUMN analyses.units IS 'How many pages or chunks have to be covered; known when it is planned.';
CREATE INDEX analyses_owner ON analyses (owner_id, created_at, id);
CREATE INDEX analyses_document ON analyses (document_id);
CREATE INDEX analyses_open ON analyses (progressed_at) WHERE status IN ('created', 'queued', 'analyzing');

CREATE TABLE segments (
    id            uuid PRIMARY KEY,
    analysis_id   uuid NOT NULL REFERENCES analyses ON DELETE CASCADE,
    parent_id     uuid REFERENCES segments ON DELETE CASCADE,
    first         integer NOT NULL,
    last          integer NOT NULL,
    context_first integer NOT NULL,
    tokens        integer NOT NULL CHECK (tokens >= 0),
    ready         boolean NOT NULL,
    CONSTRAINT pages_in_order CHECK (1 <= context_first AND context_first <= first AND first <= last)
);
COMMENT ON COLUMN segments.parent_id IS 'The segment that was too long for a model and of which this is a part.';
COMMENT ON COLUMN segments.ready IS 'It can be sent: as text, or as the artifact segment_file(…) of the document.';
CREATE UNIQUE INDEX segments_own ON segments (analysis_id, first) WHERE parent_id IS NULL;
CREATE UNIQUE INDEX segments_parts ON segments (parent_id, first) WHERE parent_id IS NOT NULL;
CREATE INDEX segments_analysis ON segments (analysis_id);

CREATE FUNCTION segment_file(segment segments) RETURNS text LANGUAGE sql IMMUTABLE
RETURN 'segment:' || segment.context_first || '-' || segment.last;

CREATE TABLE analysis_results (
    analysis_id     uuid NOT NULL REFERENCES analyses ON DELETE CASCADE,
    prompt_id       uuid NOT NULL,
    version         integer NOT NULL,
    title           text NOT NULL,
    content         text NOT NULL,
    system          text NOT NULL,
    execution_order integer NOT NULL,
    status          text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'completed', 'failed')),
    generation      integer NOT NULL DEFAULT 0 CHECK (generation >= 0),
    job_id          uuid UNIQUE,
    answer          text,
    citations       jsonb NOT NULL DEFAULT '[]',
    made_by         text,
    failed_models   jsonb NOT NULL DEFAULT '[]',
    error_code      text,
    error_message   text,
    completed_at    timestamptz,
    PRIMARY KEY (analysis_id, prompt_id),
    CONSTRAINT answer_when_completed CHECK ((status = 'completed') = (answer IS NOT NULL)),
    CONSTRAINT maker_with_answer CHECK ((answer IS NULL) = (made_by IS NULL)),
    CONSTRAINT time_with_answer CHECK ((answer IS NULL) = (completed_at IS NULL)),
    CONSTRAINT error_when_failed CHECK ((status = 'failed') = (error_code IS NOT NULL)),
    CONSTRAINT job_when_running CHECK (status <> 'running' OR job_id IS NOT NULL)
);

CREATE TABLE analysis_items (
    id            uuid PRIMARY KEY,
    analysis_id   uuid NOT NULL,
    segment_id    uuid NOT NULL REFERENCES segments ON DELETE CASCADE,
    prompt_id     uuid NOT NULL,
    status        text NOT NULL DEFAULT 'planned' CHECK (status IN ('planned', 'done', 'split', 'failed')),
    generation    integer NOT NULL DEFAULT 0 CHECK (generation >= 0),
    job_id        uuid UNIQUE,
    answer        jsonb,
    made_by       text,
    failed_models jsonb NOT NULL DEFAULT '[]',
    error_code    text,
    error_message text,
    done_at       timestamptz,
    UNIQUE (segment_id, prompt_id),
    FOREIGN KEY (analysis_id, prompt_id) REFERENCES analysis_results ON DELETE CASCADE,
    CONSTRAINT answer_when_done CHECK ((status = 'done') = (answer IS NOT NULL)),
    CONSTRAINT maker_with_answer CHECK ((answer IS NULL) = (made_by IS NULL)),
    CONSTRAINT time_with_answer CHECK ((answer IS NULL) = (done_at IS NULL)),
    CONSTRAINT error_when_failed CHECK ((status = 'failed') = (error_code IS NOT NULL))
);
COMMENT ON COLUMN analysis_items.job_id IS 'NULL while it is not enqueued, because the segment before it has to be answered first.';
COMMENT ON COLUMN analysis_items.status IS 'split: its segment was too long, and the items of its parts replace it.';
CREATE INDEX analysis_items_of_prompt ON analysis_items (analysis_id, prompt_id, status);

CREATE TABLE analysis_transitions (
    before text NOT NULL,
    after  text NOT NULL,
    why    text NOT NULL,
    PRIMARY KEY (before, after)
);

INSERT INTO analysis_transitions (before, after, why) VALUES
    ('created',   'queued',    'its job is in line'),
    ('queued',    'analyzing', 'its segments are planned'),
    ('queued',    'error',     'it cannot be prepared, is cancelled, or nothing happens for two days'),
    ('analyzing', 'completed', 'all prompts are answered'),
    ('analyzing', 'error',     'a prompt cannot be answered, it is cancelled, or nothing happens for two days'),
    ('error',     'queued',    'it is prepared again'),
    ('error',     'analyzing', 'what failed is asked again'),
    ('completed', 'analyzing', 'something is asked anew, or more is asked');

CREATE FUNCTION follow_analysis() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.status <> OLD.status AND NOT EXISTS (
        SELECT FROM analysis_transitions t WHERE t.before = OLD.status AND t.after = NEW.status) THEN
        RAISE EXCEPTION 'analysis % cannot go from % to %', NEW.id, OLD.status, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'analysis_transitions';
    END IF;
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    VALUES (NEW.id, 'analysis.' || CASE
                WHEN TG_OP = 'INSERT' THEN 'created'
                WHEN NEW.phase = 'abandoned' THEN 'abandoned'
                WHEN NEW.status <> OLD.status THEN CASE NEW.status WHEN 'error' THEN 'failed' ELSE NEW.status END
                ELSE NEW.phase END,
            NEW.owner_id, NEW.document_id, jsonb_strip_nulls(jsonb_build_object(
                'status', NEW.status, 'phase', NEW.phase, 'error', CASE WHEN NEW.error_code IS NOT NULL THEN
                    jsonb_build_object('code', NEW.error_code, 'message', NEW.error_message) END)));
    RETURN NULL;
END $$;
CREATE TRIGGER analyses_tell_beginning AFTER INSERT ON analyses FOR EACH ROW EXECUTE FUNCTION follow_analysis();
CREATE TRIGGER analyses_tell AFTER UPDATE ON analyses FOR EACH ROW
    WHEN ((OLD.status, OLD.phase) IS DISTINCT FROM (NEW.status, NEW.phase)) EXECUTE FUNCTION follow_analysis();

CREATE FUNCTION tell_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    SELECT a.id, 'analysis.item', a.owner_id, a.document_id,
           jsonb_build_object('item', n.id, 'segment', n.segment_id, 'prompt', n.prompt_id, 'status', n.status)
    FROM changed_to n JOIN changed_from o USING (id) JOIN analyses a ON a.id = n.analysis_id
    WHERE n.status <> o.status;
    RETURN NULL;
END $$;
CREATE TRIGGER items_tell AFTER UPDATE ON analysis_items REFERENCING OLD TABLE AS changed_from NEW TABLE AS changed_to
    FOR EACH STATEMENT EXECUTE FUNCTION tell_items();

CREATE FUNCTION tell_results() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    SELECT a.id, 'analysis.result', a.owner_id, a.document_id,
           jsonb_build_object('prompt', n.prompt_id, 'status', n.status)
    FROM changed_to n JOIN changed_from o USING (analysis_id, prompt_id) JOIN analyses a ON a.id = n.analysis_id
    WHERE n.status <> o.status;
    RETURN NULL;
END $$;
CREATE TRIGGER results_tell AFTER UPDATE ON analysis_results REFERENCING OLD TABLE AS changed_from NEW TABLE AS changed_to
    FOR EACH STATEMENT EXECUTE FUNCTION tell_results();

CREATE FUNCTION settle_analysis(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    held analyses;
    at timestamptz := engine_now();
BEGIN
    SELECT * INTO held FROM analyses WHERE id = wanted FOR UPDATE;
    IF held.status <> 'analyzing' OR held.phase NOT IN ('processing', 'consolidating') THEN
        RETURN;
    END IF;
    UPDATE analysis_results r SET status = 'failed', error_code = 'ANALYSIS_INCOMPLETE',
        error_message = 'Some pages could not be asked.'
    WHERE r.analysis_id = wanted AND r.status = 'pending'
      AND EXISTS (SELECT FROM analysis_items i
                  WHERE i.analysis_id = wanted AND i.prompt_id = r.prompt_id AND i.status = 'failed')
      AND NOT EXISTS (SELECT FROM analysis_items i
                      WHERE i.analysis_id = wanted AND i.prompt_id = r.prompt_id AND i.status = 'planned'
                        AND (i.job_id IS NOT NULL OR held.mode = 'parallel'));
    UPDATE analyses a SET
        progressed_at = at,
        status = n.status,
        phase = CASE WHEN n.status = 'completed' THEN 'completed' WHEN n.asking THEN 'processing' ELSE 'consolidating' END,
        completed_at = CASE WHEN n.status = 'completed' THEN at END,
        error_code = CASE WHEN n.status = 'error' THEN n.code END,
        error_message = CASE WHEN n.status = 'error' THEN n.message END
    FROM (SELECT CASE WHEN bool_or(r.status IN ('pending', 'running')) THEN 'analyzing'
                      WHEN bool_or(r.status = 'failed') THEN 'error' ELSE 'completed' END AS status,
                 (array_agg(r.error_code ORDER BY r.execution_order) FILTER (WHERE r.status = 'failed'))[1] AS code,
                 (array_agg(r.error_message ORDER BY r.execution_order) FILTER (WHERE r.status = 'failed'))[1] AS message,
                 EXISTS (SELECT FROM analysis_items i WHERE i.analysis_id = wanted AND i.status = 'planned') AS asking
          FROM analysis_results r WHERE r.analysis_id = wanted) AS n
    WHERE a.id = wanted;
END $$;

CREATE FUNCTION reopen_analysis(wanted uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE analyses SET status = 'analyzing', phase = 'processing', completed_at = NULL, error_code = NULL,
                        error_message = NULL, progressed_at = engine_now()
    WHERE id = wanted AND (status IN ('completed', 'error') OR phase = 'consolidating') AND units IS NOT NULL
      AND EXISTS (SELECT FROM analysis_items WHERE analysis_id = wanted)
$$;

CREATE FUNCTION follow_analysis_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ended boolean := NEW.status IN ('failed', 'dead_letter', 'cancelled');
    code text := coalesce(NEW.error_code, 'CANCELLED');
    message text := coalesce(NEW.error_message, 'Stopped by you.');
BEGIN
    IF NEW.kind = 'analyse_document' THEN
        UPDATE analyses SET progressed_at = engine_now(), status = CASE WHEN ended THEN 'error' ELSE 'queued' END,
            phase = CASE WHEN ended THEN phase ELSE 'initializing' END,
            error_code = CASE WHEN ended THEN code END, error_message = CASE WHEN ended THEN message END
        WHERE id = NEW.id AND CASE WHEN ended THEN status IN ('queued', 'analyzing') ELSE status = 'error' END;
        RETURN NULL;
    END IF;
    PERFORM FROM analyses WHERE id = NEW.parent_id FOR UPDATE;
    IF NEW.kind = 'answer_segment' AND ended THEN
        UPDATE analysis_items SET status = 'failed', error_code = code, error_message = message
        WHERE job_id = NEW.id AND status = 'planned';
    ELSIF NEW.kind = 'answer_segment' THEN
        UPDATE analysis_items SET status = 'planned', error_code = NULL, error_message = NULL
        WHERE job_id = NEW.id AND status = 'failed';
        UPDATE analysis_results r SET status = 'pending', error_code = NULL, error_message = NULL
        FROM analysis_items i WHERE i.job_id = NEW.id AND r.analysis_id = i.analysis_id AND r.prompt_id = i.prompt_id
          AND r.status = 'failed';
    ELSIF ended THEN
        UPDATE analysis_results SET status = 'failed', error_code = code, error_message = message
        WHERE job_id = NEW.id AND status = 'running';
    ELSE
        UPDATE analysis_results SET status = 'running', error_code = NULL, error_message = NULL
        WHERE job_id = NEW.id AND status = 'failed';
    END IF;
    IF NOT ended THEN
        PERFORM reopen_analysis(NEW.parent_id);
    END IF;
    PERFORM settle_analysis(NEW.parent_id);
    RETURN NULL;
END $$;
CREATE TRIGGER analysis_follows AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind IN ('analyse_document', 'answer_segment', 'consolidate_answers')
          AND (NEW.status IN ('failed', 'dead_letter', 'cancelled')
               OR NEW.status = 'queued' AND OLD.status IN ('failed', 'dead_letter', 'cancelled')))
    EXECUTE FUNCTION follow_analysis_job();

CREATE FUNCTION hold_jobs_of(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR attempt IN 1..1000 LOOP
        BEGIN
            PERFORM FROM jobs WHERE (id = wanted OR parent_id = wanted) AND status <> 'complete' FOR UPDATE NOWAIT;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep(0.01);
        END;
    END LOOP;
    RAISE EXCEPTION 'the jobs of analysis % cannot be locked', wanted USING ERRCODE = 'lock_not_available';
END $$;

CREATE FUNCTION analyses_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE analyses SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER analyses_follow AFTER UPDATE OF owner_id ON documents
    FOR EACH ROW WHEN (OLD.owner_id <> NEW.owner_id) EXECUTE FUNCTION analyses_follow_document();
