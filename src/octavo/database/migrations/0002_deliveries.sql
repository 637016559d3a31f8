-- Refused uploads can be listed.
CREATE INDEX uploads_listed ON uploads (owner_id, state, created_at, id);
