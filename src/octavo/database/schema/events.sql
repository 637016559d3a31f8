-- The append-only log of events, and the triggers that check every change of a job and write its event.

-- Rows are never updated.
CREATE TABLE events (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    epoch       bigint NOT NULL DEFAULT 1000000000000,
    at          timestamptz NOT NULL DEFAULT engine_now(),
    process_id  uuid NOT NULL,
    kind        text NOT NULL,
    state_after text,
    owner_id    uuid NOT NULL,
    document_id uuid,
    detail      jsonb NOT NULL DEFAULT '{}',
    actor_id    uuid DEFAULT nullif(current_setting('octavo.actor', true), '')::uuid,
    via         text DEFAULT nullif(current_setting('octavo.via', true), '')
) PARTITION BY RANGE (at);

COMMENT ON COLUMN events.epoch IS 'The epoch in which the event was written (`event_epochs`). Readers follow (epoch, id) up to `event_horizon()`. Events from before there were epochs have the id of their transaction here, which is smaller.';
COMMENT ON COLUMN events.actor_id IS 'The person whose request wrote the event, or the owner if the caller is not a person. NULL for events of workers.';
COMMENT ON COLUMN events.via IS 'session or key: how the caller signed in.';
COMMENT ON COLUMN events.state_after IS 'Only set for transitions. The latest one of a process is its state.';

CREATE INDEX events_order ON events (epoch, id);
CREATE INDEX events_process ON events (process_id, id);
CREATE INDEX events_owner ON events (owner_id, epoch, id);
CREATE INDEX events_actions ON events (owner_id, epoch, id) WHERE actor_id IS NOT NULL;

-- The order of events. Ids are assigned before transactions commit, so an event can become visible after one with a greater id.
-- A transaction therefore announces its first event: it takes a shared lock whose key is the id that was assigned last. No other
-- transaction matters to readers, however long it is open, in any database of the server.
CREATE FUNCTION announce_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('octavo.announced', true) IS DISTINCT FROM 'yes' THEN
        PERFORM pg_advisory_xact_lock_shared(event_lock_class(), (last_event_id() & 2147483647)::integer);
        PERFORM set_config('octavo.announced', 'yes', true);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER events_are_announced BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION announce_events();

-- Wakes a worker to relay an event that nothing else wakes one for: not enqueued jobs, which do, and not events of running jobs,
-- whose workers relay them.
CREATE FUNCTION wake_workers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NOTIFY octavo_jobs;
    RETURN NULL;
END $$;
CREATE TRIGGER events_wake_workers AFTER INSERT ON events FOR EACH ROW
    WHEN (NEW.state_after IS NULL AND NEW.kind NOT IN ('stage', 'progress', 'gateway', 'analysis.item', 'analysis.result')
          OR NEW.kind = 'created' AND NEW.state_after <> 'queued')
    EXECUTE FUNCTION wake_workers();

CREATE FUNCTION event_lock_class() RETURNS integer LANGUAGE sql IMMUTABLE RETURN 209321986;

-- The id that was assigned last, whether or not its event is committed.
CREATE FUNCTION last_event_id() RETURNS bigint LANGUAGE sql VOLATILE RETURN coalesce(pg_sequence_last_value('events_id_seq'), 0);

-- All events up to this id are committed or will never be. The id is read before the locks, and the events must be read by a later
-- statement: a transaction without a lock has then committed, or will get greater ids. The key of a lock holds the lowest 31
-- bits of an id, which is completed from an id that was assigned later.
CREATE FUNCTION event_horizon() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    assigned bigint := last_event_id();
    announced bigint[] := ARRAY(
        SELECT objid::bigint FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = event_lock_class()
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()));
    later bigint := last_event_id();
BEGIN
    RETURN least(assigned, (SELECT min(later - ((later - lowest) & 2147483647)) FROM unnest(announced) AS lowest));
END $$;

-- A database that was restored into another cluster begins an epoch. Its events come after all earlier ones, and their ids were
-- never used, not even by events that the backup does not contain. If a cursor of the previous epoch is not below `first_id`, it
-- points to such an event.
CREATE TABLE event_epochs (
    number     bigint PRIMARY KEY,
    cluster    text NOT NULL,
    first_id   bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT engine_now()
);

COMMENT ON COLUMN event_epochs.first_id IS 'All events of earlier epochs that exist have smaller ids.';
COMMENT ON COLUMN event_epochs.cluster IS 'The system identifier of the PostgreSQL cluster.';

CREATE FUNCTION this_cluster() RETURNS text LANGUAGE sql VOLATILE RETURN (SELECT system_identifier::text FROM pg_control_system());

-- Numbers of epochs are greater than any transaction id, so that cursors from before there were epochs are before all of them.
INSERT INTO event_epochs (number, cluster, first_id) SELECT 1000000000000, this_cluster(), last_event_id() + 1;

-- Begins an epoch if the database is in another cluster than before, or if it was restored.
CREATE FUNCTION begin_epoch(restored boolean) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    before event_epochs;
    known bigint;
    skipped CONSTANT bigint := 1000000000;
BEGIN
    SELECT * INTO before FROM event_epochs ORDER BY number DESC LIMIT 1;
    IF before.cluster = this_cluster() AND NOT restored THEN
        RETURN false;
    END IF;
    known := coalesce((SELECT max(id) FROM events), 0);
    PERFORM setval('events_id_seq', (greatest(known, last_event_id()) / skipped + 1) * skipped);
    INSERT INTO event_epochs (number, cluster, first_id) VALUES (before.number + 1, this_cluster(), known + 1);
    EXECUTE format('ALTER TABLE events ALTER COLUMN epoch SET DEFAULT %s', before.number + 1);
    RETURN true;
END $$;

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
    INSERT INTO events (at, process_id, kind, state_after, owner_id, document_id, detail)
    SELECT moment, n.id,
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
