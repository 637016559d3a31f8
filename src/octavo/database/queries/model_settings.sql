-- name: read()
SELECT version, plain, sealed FROM model_settings;

-- name: version()
SELECT version FROM model_settings;

-- name: lock()!
-- The row exists from the first change on. Two changes wait for each other here.
INSERT INTO model_settings (id, version) VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET set_at = excluded.set_at;

-- name: save(plain, sealed)!
UPDATE model_settings SET plain = :plain, sealed = :sealed, version = version + 1, set_at = engine_now();

-- name: record_change(owner, detail)!
-- Settings do not belong to a process, so the event uses the id of the user who changed them.
INSERT INTO events (process_id, kind, owner_id, detail) VALUES (:owner, 'models', :owner, :detail);
