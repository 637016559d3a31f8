-- name: relay_has_work()
SELECT relay_has_work();

-- name: import_due()
-- The seconds until the next import is done, if nothing is added to it any more. Imports with unprocessed documents do not count.
SELECT extract(epoch FROM min(i.last_added_at) + interval '1 minute' - engine_now())::float8 AS seconds FROM imports i
WHERE i.settled_at IS NULL
  AND NOT EXISTS (SELECT FROM documents d WHERE d.import_id = i.id AND d.status = 'pending' AND d.deleted_at IS NULL);

-- name: relay(most, news, errors)
-- One step of the relay: how many events were read, and the deliveries to enqueue in the same transaction.
SELECT events_read, due FROM relay_events(:most, :news, :errors);

-- name: insert_subscriber(id, owner, channel, address, secret, events, most)
-- Inserts nothing if the owner has the maximum number.
WITH held AS (SELECT id FROM owners WHERE id = :owner FOR NO KEY UPDATE)
INSERT INTO subscribers (id, owner_id, channel, address, secret, events)
SELECT :id, held.id, :channel, :address, :secret, :events FROM held
WHERE (SELECT count(*) FROM subscribers WHERE owner_id = held.id AND NOT everybodys AND user_id IS NULL) < :most
RETURNING id;

-- name: add_requester(process, owner, user, id, events)!
-- Records who requested a process, and creates the recipient of that person. A recipient that was paused stays paused.
WITH person AS (
    SELECT u.id, u.email FROM users u JOIN memberships m ON m.user_id = u.id WHERE u.id = :user AND m.owner_id = :owner
), requested AS (
    INSERT INTO requesters (process_id, user_id) SELECT :process, id FROM person
)
INSERT INTO subscribers (id, owner_id, channel, address, events, user_id)
SELECT :id, :owner, 'mail', email, :events, id FROM person
ON CONFLICT (owner_id, user_id) WHERE user_id IS NOT NULL DO UPDATE SET address = excluded.address
WHERE subscribers.address <> excluded.address;

-- name: subscribers(owner, id)
-- All recipients of an owner, oldest first, or one of them.
SELECT s.id, s.channel, s.address, s.events, s.active, s.stopped_because, s.created_at, s.failing_since,
       s.user_id IS NOT NULL AS personal,
       (SELECT count(*) FROM outgoing o WHERE o.subscriber_id = s.id AND NOT o.ended) AS waiting
FROM subscribers s
WHERE s.owner_id = :owner AND NOT s.everybodys AND (:id::uuid IS NULL OR s.id = :id)
ORDER BY s.created_at, s.id;

-- name: edit_subscriber(owner, id, address, events, active)
-- NULL leaves a field unchanged.
UPDATE subscribers SET address = coalesce(:address, address), events = coalesce(:events, events),
                       active = coalesce(:active, active),
                       stopped_because = CASE WHEN coalesce(:active, active) THEN NULL ELSE stopped_because END
WHERE owner_id = :owner AND NOT everybodys AND id = :id
RETURNING active;

-- name: rotate_secret(owner, id, secret, seconds)!
-- The old secret is valid for some time, so that the receiver can change to the new one.
UPDATE subscribers SET old_secret = secret, old_until = engine_now() + make_interval(secs => :seconds), secret = :secret
WHERE owner_id = :owner AND NOT everybodys AND id = :id AND channel = 'webhook';

-- name: delivered_event(owner, subscriber, id)
-- The event of a delivery attempt. `is_kept` is false if the event itself was deleted.
SELECT d.event_id, d.process_id, d.type, s.active, EXISTS (
    SELECT FROM events e WHERE e.process_id = d.process_id AND e.id = d.event_id) AS is_kept
FROM deliveries d JOIN subscribers s ON s.id = d.subscriber_id
WHERE s.owner_id = :owner AND NOT s.everybodys AND s.id = :subscriber AND d.id = :id;

-- name: stop_subscriber(id, because)!
UPDATE subscribers SET active = false, stopped_because = :because WHERE id = :id AND active;

-- name: drop_waiting(id)!
-- Deliveries that were not started.
DELETE FROM outgoing WHERE subscriber_id = :id AND job_id IS NULL;

-- name: delete_subscriber(owner, id)!
DELETE FROM subscribers WHERE owner_id = :owner AND NOT everybodys AND id = :id;

-- name: keep_administrators(owner, channels, addresses, events)!
-- Creates recipients for the failures of all owners from the addresses in the settings, and removes all others.
WITH given AS (
    SELECT * FROM unnest(:channels::text[], :addresses::text[]) AS g (channel, address)
), gone AS (
    DELETE FROM subscribers WHERE everybodys AND channel NOT IN (SELECT channel FROM given)
)
INSERT INTO subscribers (id, owner_id, channel, address, events, everybodys)
SELECT gen_random_uuid(), :owner, channel, address, :events, true FROM given
ON CONFLICT (channel) WHERE everybodys DO UPDATE
SET address = excluded.address, events = excluded.events, active = true, stopped_because = NULL
WHERE subscribers.address <> excluded.address OR subscribers.events <> excluded.events OR NOT subscribers.active;

-- name: delivery(subscriber, event, process)
-- Everything needed to deliver an event. The title and the facts are only returned to their owner, and the owner's name only to
-- administrators.
SELECT s.id, s.channel, s.address, s.secret, CASE WHEN s.old_until > engine_now() THEN s.old_secret END AS old_secret, s.active,
       e.id AS event_id, e.at, e.kind, e.state_after, e.process_id, e.document_id, e.detail,
       CASE WHEN NOT s.everybodys THEN coalesce(nullif(d.title, ''), d.filename, c.filename) END AS title,
       (SELECT u.language FROM users u WHERE s.channel = 'mail' AND CASE WHEN s.user_id IS NULL THEN u.email = lower(s.address)
                                                                         ELSE u.id = s.user_id END) AS language,
       (SELECT r.name FROM rules r WHERE e.kind = 'matched' AND r.owner_id = s.owner_id
                                     AND r.id = (e.detail ->> 'rule_id')::uuid) AS rule,
       s.everybodys, c.id IS NOT NULL AS converts, clock_timestamp() AS now, j.kind AS job_kind,
       CASE WHEN s.everybodys THEN owner_name(o) END AS owner,
       CASE WHEN NOT s.everybodys AND s.channel = 'webhook' AND e.document_id IS NOT NULL THEN (
           SELECT jsonb_object_agg(f.name, jsonb_build_object(
               'value', f.value, 'normalized', f.normalized, 'confidence', round(f.confidence::numeric, 3), 'status', f.status))
           FROM chosen_facts f WHERE f.document_id = d.id AND f.name <> 'title' AND f.value IS NOT NULL) END AS facts
FROM subscribers s
LEFT JOIN events e ON e.process_id = :process::uuid AND e.id = :event::bigint
LEFT JOIN jobs j ON j.id = e.process_id
LEFT JOIN owners o ON o.id = coalesce(j.owner_id, e.owner_id)
LEFT JOIN conversions c ON c.id = e.process_id AND (c.owner_id = s.owner_id OR s.everybodys)
LEFT JOIN documents d ON d.id = coalesce(c.document_id, e.document_id) AND (d.owner_id = s.owner_id OR s.everybodys)
WHERE s.id = :subscriber;

-- name: insert_try(id, subscriber, job, attempt, event, process, type, status, answer, seconds, error_code)!
-- Inserts nothing if the recipient was deleted in the meantime.
WITH changed AS (
    UPDATE subscribers SET failing_since = CASE WHEN :status = 'failed' THEN engine_now() END, warned_at = NULL
    WHERE id = :subscriber AND (failing_since IS NULL) = (:status = 'failed')
)
INSERT INTO deliveries (id, subscriber_id, job_id, attempt, event_id, process_id, type, status, answer, seconds, error_code)
SELECT :id, s.id, :job, :attempt, :event, :process, :type, :status, :answer, :seconds, :error_code
FROM subscribers s WHERE s.id = :subscriber FOR KEY SHARE;

-- name: tries(owner, subscriber, before_at, before_id, most)
-- Newest first.
SELECT d.id, d.at, d.type, d.event_id, d.process_id, d.job_id, d.attempt, d.status, d.answer, d.seconds, d.error_code
FROM deliveries d JOIN subscribers s ON s.id = d.subscriber_id
WHERE s.owner_id = :owner AND NOT s.everybodys AND s.id = :subscriber
  AND (:before_at::timestamptz IS NULL OR (d.at, d.id) < (:before_at, :before_id::uuid))
ORDER BY d.at DESC, d.id DESC LIMIT :most;

-- name: notifications(owner, id, unread, before_at, before_id, most)
-- Newest first.
SELECT n.id, n.type, n.level, n.process_id, n.document_id, n.title, n.error_code, n.created_at, n.read_at, n.resolved_at,
       n.resolved_by, CASE WHEN n.import_id IS NULL THEN n.reason ELSE import_summary(n.import_id) END AS reason
FROM notifications n
WHERE n.owner_id = :owner AND (:id::uuid IS NULL OR n.id = :id) AND (NOT :unread OR n.read_at IS NULL)
  AND (:before_at::timestamptz IS NULL OR (n.created_at, n.id) < (:before_at, :before_id::uuid))
ORDER BY n.created_at DESC, n.id DESC LIMIT :most;

-- name: count_unread(owner)
SELECT count(*) FROM notifications WHERE owner_id = :owner AND read_at IS NULL;

-- name: mark_read(owner, id)!
-- One notification of an owner, or all. Keeps the time of the first reading.
UPDATE notifications SET read_at = clock_timestamp()
WHERE owner_id = :owner AND (:id::uuid IS NULL OR id = :id) AND read_at IS NULL;

-- name: resolve(owner, id, user)!
-- Keeps the person who resolved it first.
UPDATE notifications SET resolved_at = clock_timestamp(), resolved_by = :user,
                         read_at = coalesce(read_at, clock_timestamp())
WHERE owner_id = :owner AND id = :id AND level = 'error' AND resolved_at IS NULL;

-- name: forget_tries(days)!
DELETE FROM deliveries WHERE at < engine_now() - make_interval(days => :days);

-- name: forget_notifications(days)!
-- Deletes old notifications, read or not. Unresolved errors are kept.
DELETE FROM notifications
WHERE (level = 'news' AND created_at < clock_timestamp() - make_interval(days => :days))
   OR (resolved_at IS NOT NULL AND read_at < clock_timestamp() - make_interval(days => :days));

-- name: warn_of_failing(days)!
-- Notifies owners of recipients that have failed for this many days, once until a delivery succeeds again.
WITH failing AS (
    UPDATE subscribers SET warned_at = engine_now()
    WHERE failing_since < engine_now() - make_interval(days => :days) AND warned_at IS NULL AND active AND NOT everybodys
    RETURNING id, owner_id, failing_since
)
INSERT INTO events (process_id, kind, owner_id, detail)
SELECT id, 'webhook.failing', owner_id, jsonb_build_object('since', failing_since) FROM failing;
