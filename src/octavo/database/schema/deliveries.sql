-- Notifications: recipients (table `subscribers`), deliveries to them, and the notifications inside the application.

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
    failing_since   timestamptz,
    warned_at       timestamptz,
    user_id         uuid REFERENCES users ON DELETE CASCADE,
    old_secret      text,
    old_until       timestamptz,
    CONSTRAINT webhooks_are_signed CHECK ((secret IS NOT NULL) = (channel = 'webhook')),
    CONSTRAINT stopped_for_a_reason CHECK (NOT active OR stopped_because IS NULL),
    CONSTRAINT old_secret_ends CHECK ((old_secret IS NULL) = (old_until IS NULL))
);

COMMENT ON COLUMN subscribers.secret IS 'Signs webhooks. Shown once, when it is created.';
COMMENT ON COLUMN subscribers.everybodys IS 'Of the administrator, from the settings: gets the failures of all owners.';

COMMENT ON COLUMN subscribers.failing_since IS 'The first failed delivery after the last successful one.';
COMMENT ON COLUMN subscribers.warned_at IS 'When its owner was notified that it is failing.';
COMMENT ON COLUMN subscribers.old_secret IS 'The secret before the last rotation. Webhooks are signed with both until `old_until`.';
COMMENT ON COLUMN subscribers.user_id IS 'Of a person: gets mail only about the processes that this person requested.';

CREATE INDEX subscribers_owner ON subscribers (owner_id, created_at, id);
CREATE UNIQUE INDEX subscribers_everybodys ON subscribers (channel) WHERE everybodys;
CREATE UNIQUE INDEX subscribers_person ON subscribers (owner_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX subscribers_user ON subscribers (user_id) WHERE user_id IS NOT NULL;

-- The person who requested a process and gets a mail when it has ended.
CREATE TABLE requesters (
    process_id uuid PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE
);

CREATE INDEX requesters_user ON requesters (user_id);

-- Whether an event is for the recipient of a person: the person requested the process and is still a member, and no other
-- recipient of the owner sends the same mail.
CREATE FUNCTION is_for_person(recipient subscribers, process uuid, event text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM requesters r JOIN memberships m ON m.user_id = r.user_id
                   WHERE r.process_id = process AND r.user_id = recipient.user_id AND m.owner_id = recipient.owner_id)
       AND NOT EXISTS (SELECT FROM subscribers o
                       WHERE o.owner_id = recipient.owner_id AND o.user_id IS NULL AND o.active AND o.channel = 'mail'
                         AND lower(o.address) = lower(recipient.address) AND event = ANY (o.events))
$$;

-- Pending deliveries. Events of one process are delivered to a recipient in order: only the first row of each such queue has
-- a job.
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

-- Every delivery attempt, without the content.
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

-- Notifications inside the application.
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
    reason      text,
    import_id   uuid REFERENCES imports ON DELETE CASCADE,
    CONSTRAINT only_errors_are_resolved CHECK (resolved_at IS NULL OR level = 'error'),
    CONSTRAINT somebody_at_a_time CHECK (resolved_by IS NULL OR resolved_at IS NOT NULL)
);

COMMENT ON COLUMN notifications.reason IS 'Why it failed, or why it needs review.';
COMMENT ON COLUMN notifications.title IS 'Title of the document at that time. It is stored here, with the owner, and never in an event.';

COMMENT ON COLUMN notifications.import_id IS 'Of an import: it has one notification, which is updated.';

CREATE UNIQUE INDEX notifications_import ON notifications (import_id) WHERE import_id IS NOT NULL;
CREATE UNIQUE INDEX notifications_once ON notifications (event_id);
CREATE INDEX notifications_owner ON notifications (owner_id, created_at, id);
CREATE INDEX notifications_unread ON notifications (owner_id) WHERE read_at IS NULL;
CREATE INDEX notifications_document ON notifications (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX notifications_resolved_by ON notifications (resolved_by) WHERE resolved_by IS NOT NULL;
CREATE INDEX notifications_read ON notifications (read_at) WHERE read_at IS NOT NULL;

-- The position up to which events were relayed.
CREATE TABLE relay (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch    bigint NOT NULL,
    id       bigint NOT NULL
);

INSERT INTO relay (epoch, id) VALUES (1000000000000, 0);

-- The public type of an event; NULL for events that are not delivered. Events of delivery jobs are not delivered. Analyses have
-- their own events, so the events of their many jobs are omitted. Conversions have their own events besides those of their jobs.
-- An event without a job belongs to a document that was
-- rejected before its job was created, or deleted permanently. A duplicate that shares results is complete when it is created.
CREATE FUNCTION event_type(job_kind text, event_kind text, state_after text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
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

-- Marks a delivery that ended, successfully or not, so that the relay starts the next one in its queue.
CREATE FUNCTION end_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE outgoing SET ended = true WHERE job_id = NEW.id AND NOT ended;
    RETURN NULL;
END $$;
CREATE TRIGGER delivery_ends AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind = 'deliver' AND OLD.status <> NEW.status
          AND NEW.status IN ('complete', 'failed', 'dead_letter', 'cancelled')) EXECUTE FUNCTION end_delivery();

-- Whether there is an event to relay, an import to settle, or a delivery that ended. It only reads three indexes and assigns no
-- transaction id, because even an idle installation calls it all the time.
CREATE FUNCTION relay_has_work() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
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

-- Selects the deliveries to start: the first of each of these queues, unless it has a job. The caller enqueues the jobs in the
-- same transaction. The first row is read separately for each queue, because a queue may be long.
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

-- Whether a recipient gets an event. A rule names the recipients of its event. People who get mail or chat messages about documents get one about an import, when it is done.
CREATE FUNCTION is_wanted(recipient subscribers, type text, import uuid, detail jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN type = 'document.matched' THEN coalesce(detail -> 'recipients' ? recipient.id::text, false)
        WHEN recipient.channel = 'webhook' OR import IS NULL THEN type = ANY (recipient.events)
        WHEN type <> 'import.completed' THEN false
        ELSE recipient.events && '{import.completed,document.completed}'
             OR (detail ->> 'needs_you')::integer > 0 AND recipient.events && '{document.failed,job.dead_letter}'
    END
$$;

-- One step of the relay, in one transaction and by one relay at a time: reads the next events, writes the notifications of
-- owners, adds deliveries to the queues of recipients, and selects the deliveries that can start. The documents of an import share
-- one notification, and people get one message about all of them; only webhooks get an event for each.
CREATE FUNCTION relay_events(most integer, news text[], errors text[], OUT events_read integer, OUT due jsonb)
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
