-- The tables of the job engine: jobs, their stages, caps, workers and schedules. Its functions are in queue.sql.

-- The clock of the job engine, which tests can shift. All delays are measured with it.
CREATE TABLE engine_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    shift    interval NOT NULL DEFAULT '0'
);

INSERT INTO engine_clock DEFAULT VALUES;

CREATE FUNCTION engine_now() RETURNS timestamptz LANGUAGE sql VOLATILE
AS 'SELECT clock_timestamp() + shift FROM engine_clock';

-- The kinds of job and their limits. Workers update it when they start.
CREATE TABLE job_kinds (
    name                   text PRIMARY KEY,
    max_attempts           integer NOT NULL CHECK (max_attempts > 0),
    time_limit             interval NOT NULL,
    limit_renewed_by_stage boolean NOT NULL,
    cap                    integer CHECK (cap > 0),
    starts_per_second      double precision CHECK (starts_per_second > 0)
);

-- The kinds that can be enqueued before the first worker has started. That worker updates the limits.
INSERT INTO job_kinds (name, max_attempts, time_limit, limit_renewed_by_stage) VALUES
    ('process_document',    3,  interval '10 minutes', true),
    ('deliver',             12, interval '1 minute',   false),
    ('embed_document',      3,  interval '10 minutes', true),
    ('embed_tags',          3,  interval '90 seconds', false),
    ('detect_connections',  3,  interval '10 minutes', true),
    ('index_vectors',       3,  interval '1 day',      false),
    ('convert',             3,  interval '10 minutes', true),
    ('analyse_document',    3,  interval '10 minutes', true),
    ('answer_segment',      3,  interval '15 minutes', false),
    ('consolidate_answers', 3,  interval '15 minutes', true),
    ('convert_batch',       3,  interval '10 minutes', true),
    ('export_library',      3,  interval '1 hour',     true);

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

-- The state machine: one row for each allowed transition. A test compares it with the diagram and with the Python table.
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
    priority         smallint NOT NULL DEFAULT 5 CHECK (priority BETWEEN 0 AND 19),
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
    taken_from       uuid[] NOT NULL DEFAULT '{}'
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

COMMENT ON COLUMN jobs.priority IS '0 to 9: the interactive lane. 10 to 19: the same priorities in the bulk lane, which imports use.';
COMMENT ON COLUMN jobs.virtual_time IS 'Position in the queue. Owners take turns, because each job of an owner is placed one further back.';
COMMENT ON COLUMN jobs.admitted IS 'Can be claimed: it is due, and holds a slot if it has a cap.';
COMMENT ON COLUMN jobs.alone IS 'Suspected of ending its workers: a worker runs one such job at a time, until the job finishes a stage.';
COMMENT ON COLUMN jobs.taken_from IS 'Workers that ended or fell silent while they ran it, since its last finished stage.';
COMMENT ON COLUMN jobs.lease_token IS 'Fencing token: a worker with an older one cannot write.';
COMMENT ON COLUMN jobs.note IS 'Why the job is in its state. Becomes the detail of the event of the transition.';

-- The only index that claiming reads. A job is removed from it when it is claimed.
CREATE INDEX jobs_ready ON jobs (priority, virtual_time, id) WHERE status = 'queued' AND admitted;
CREATE INDEX jobs_suspected ON jobs (priority, virtual_time, id) WHERE status = 'queued' AND admitted AND alone;
CREATE INDEX jobs_due ON jobs (run_after) WHERE status = 'queued' AND run_after IS NOT NULL;
CREATE INDEX jobs_wait_for_cap ON jobs (cap_key, priority, virtual_time, id)
    WHERE status = 'queued' AND NOT admitted AND run_after IS NULL;
CREATE INDEX jobs_lease ON jobs (lease_expires_at) WHERE status = 'processing';
CREATE INDEX jobs_taken_over ON jobs (id) WHERE taken_from <> '{}';

-- Only final and paused states. Every job passes through the others, so an index on them would grow twice for each job.
CREATE INDEX jobs_resting ON jobs (status, created_at) WHERE status IN ('failed', 'dead_letter', 'paused', 'cancelled');
CREATE INDEX jobs_owner_created ON jobs (owner_id, created_at);
CREATE INDEX jobs_owner_queued ON jobs (owner_id, priority, virtual_time) WHERE status = 'queued';
CREATE INDEX jobs_document ON jobs (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX jobs_parent ON jobs (parent_id) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX jobs_key ON jobs (owner_id, kind, key) WHERE key IS NOT NULL;

-- The name of the first invariant that a job violates, or NULL. A trigger rejects such rows, and the doctor uses the same
-- function. CHECK constraints would do the same, but PostgreSQL prepares them again for every statement.
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

-- Index for the durations of the last jobs of a kind, from which the ETA of running jobs is computed, even for rare kinds.
CREATE INDEX jobs_kind_completed ON jobs (kind, completed_at) WHERE status = 'complete';

-- Owners whose bulk lane is paused. Their waiting bulk jobs have no due time (run_after = infinity), so that claiming never reads them.
CREATE TABLE paused_imports (
    owner_id  uuid PRIMARY KEY REFERENCES owners ON DELETE CASCADE,
    paused_at timestamptz NOT NULL DEFAULT engine_now()
);

CREATE INDEX jobs_held ON jobs (owner_id) WHERE status = 'queued' AND run_after = 'infinity';

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

-- Scheduled jobs. Each run starts once across all workers.
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
