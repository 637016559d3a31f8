-- The append-only log of events, and the triggers that check every change of a job and write its event.

-- Rows are never updated.
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

-- One partition for each month, created some months ahead. Events of other months are stored in the default partition.
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

-- Every change of state is checked and recorded as an event in the same transaction, no matter which code makes it.
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
