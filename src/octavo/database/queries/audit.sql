-- name: record(owner, kind, process, detail, actor)!
-- An event about people, keys, invitations or shares. Its process id is the id of the person or thing. The actor is given where
-- the request has no caller yet, such as for signing in.
INSERT INTO events (process_id, kind, owner_id, detail, actor_id)
VALUES (:process, :kind, :owner, :detail, coalesce(:actor::uuid, nullif(current_setting('octavo.actor', true), '')::uuid));

-- name: actions(owner, person, action, since, until, before_epoch, before_id, most)
-- Events with an actor, newest first. `action` is the kind of an event, or the part of it before the dot.
SELECT e.id, e.epoch, e.at, e.kind AS action, e.via, e.actor_id, e.document_id, e.detail,
       coalesce(a.email, CASE WHEN EXISTS (SELECT FROM owners o WHERE o.id = e.actor_id AND o.kind = 'local') THEN 'administrator' END) AS actor,
       coalesce(nullif(d.title, ''), d.filename, u.email, k.name, c.name, i.email, nullif(sd.title, ''), sd.filename, sc.name,
                so.name, r.name, f.name, g.name, sb.channel) AS thing
FROM events e LEFT JOIN users a ON a.id = e.actor_id
LEFT JOIN documents d ON d.id = e.document_id AND d.owner_id = e.owner_id
LEFT JOIN users u ON u.id = e.process_id LEFT JOIN api_keys k ON k.id = e.process_id AND k.owner_id = e.owner_id
LEFT JOIN collections c ON c.id = e.process_id AND c.owner_id = e.owner_id
LEFT JOIN invitations i ON i.id = e.process_id AND i.owner_id = e.owner_id
LEFT JOIN shares s ON s.id = e.process_id AND s.owner_id = e.owner_id
LEFT JOIN documents sd ON sd.id = s.document_id LEFT JOIN collections sc ON sc.id = s.collection_id
LEFT JOIN sources so ON so.id = e.process_id AND so.owner_id = e.owner_id LEFT JOIN rules r ON r.id = e.process_id AND r.owner_id = e.owner_id
LEFT JOIN fields f ON f.id = e.process_id AND f.owner_id = e.owner_id LEFT JOIN groups g ON g.id = e.process_id AND g.owner_id = e.owner_id
LEFT JOIN subscribers sb ON sb.id = e.process_id AND sb.owner_id = e.owner_id
WHERE e.owner_id = :owner AND e.actor_id IS NOT NULL
  AND (:person::uuid IS NULL OR e.actor_id = :person)
  AND (:action::text IS NULL OR e.kind = :action OR split_part(e.kind, '.', 1) = :action)
  AND (:since::timestamptz IS NULL OR e.at >= :since) AND (:until::timestamptz IS NULL OR e.at < :until)
  AND (:before_id::bigint IS NULL OR (e.epoch, e.id) < (:before_epoch::bigint, :before_id))
ORDER BY e.epoch DESC, e.id DESC LIMIT :most;
