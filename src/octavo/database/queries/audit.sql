-- name: record(owner, kind, process, detail, actor)!
-- An event about people, keys, invitations or shares. Its process id is the id of the person or thing. The actor is given where
-- the request has no caller yet, such as for signing in.
INSERT INTO events (process_id, kind, owner_id, detail, actor_id)
VALUES (:process, :kind, :owner, :detail, coalesce(:actor::uuid, nullif(current_setting('octavo.actor', true), '')::uuid));
