-- The answers to requests with an Idempotency-Key, and the rotation of webhook secrets.

CREATE TABLE idempotency_keys (
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    key_hash   bytea NOT NULL CHECK (length(key_hash) = 32),
    request    bytea NOT NULL CHECK (length(request) = 32),
    body_bytes bigint NOT NULL CHECK (body_bytes >= 0),
    status     smallint NOT NULL CHECK (status BETWEEN 200 AND 299),
    salt       bytea NOT NULL CHECK (length(salt) = 16),
    answer     bytea CHECK (length(answer) <= 524288),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_id, key_hash)
);

COMMENT ON TABLE idempotency_keys IS 'Answers to requests with an Idempotency-Key, for 24 hours. Each is written in the transaction of the request itself.';
COMMENT ON COLUMN idempotency_keys.request IS 'SHA-256 of the route, the query and the body.';
COMMENT ON COLUMN idempotency_keys.answer IS 'Sealed with the key, which is not stored. NULL if the answer was too long.';

CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);

ALTER TABLE subscribers ADD COLUMN old_secret text, ADD COLUMN old_until timestamptz;
-- The table is small: one row per recipient.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE subscribers ADD CONSTRAINT old_secret_ends CHECK ((old_secret IS NULL) = (old_until IS NULL));

COMMENT ON COLUMN subscribers.old_secret IS 'The secret before the last rotation. Webhooks are signed with both until `old_until`.';
