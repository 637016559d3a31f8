-- Wakes the workers when a job gets a slot of a cap without a worker, and when an event has to be relayed.

CREATE OR REPLACE FUNCTION set_cap(wanted_key text, wanted integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO caps (key, most) VALUES (wanted_key, wanted)
    ON CONFLICT (key) DO UPDATE SET most = excluded.most;
    PERFORM admit_waiting(ARRAY[wanted_key]);
    NOTIFY octavo_jobs;
END $$;

CREATE OR REPLACE FUNCTION cancel_job(job uuid, event text) RETURNS integer LANGUAGE plpgsql AS $$
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
        UPDATE jobs SET status = 'cancelled', lease_token = lease_token + 1, admitted = false, run_after = NULL,
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
    NOTIFY octavo_jobs;
    RETURN number;
END $$;

CREATE OR REPLACE FUNCTION pause_imports(of_owner uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    returned text[];
BEGIN
    INSERT INTO paused_imports (owner_id) VALUES (of_owner) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO events (process_id, kind, owner_id) VALUES (of_owner, 'imports.paused', of_owner);
    WITH waiting AS (
        SELECT id, cap_key, admitted FROM jobs WHERE owner_id = of_owner AND status = 'queued' AND priority >= 10
        ORDER BY id FOR UPDATE SKIP LOCKED
    ), held AS (
        UPDATE jobs SET run_after = 'infinity', admitted = false FROM waiting WHERE jobs.id = waiting.id
        RETURNING CASE WHEN waiting.admitted THEN waiting.cap_key END AS slot
    )
    SELECT array_agg(slot) FILTER (WHERE slot IS NOT NULL) INTO returned FROM held;
    PERFORM return_slots(coalesce(returned, '{}'));
    NOTIFY octavo_jobs;
    RETURN true;
END $$;

CREATE FUNCTION wake_workers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NOTIFY octavo_jobs;
    RETURN NULL;
END $$;
CREATE TRIGGER events_wake_workers AFTER INSERT ON events FOR EACH ROW
    WHEN (NEW.state_after IS NULL AND NEW.kind NOT IN ('stage', 'progress', 'gateway', 'analysis.item', 'analysis.result')
          OR NEW.kind = 'created' AND NEW.state_after <> 'queued')
    EXECUTE FUNCTION wake_workers();
