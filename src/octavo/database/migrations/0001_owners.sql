-- Who owns what, and how a browser becomes an owner.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE owners (
    id         uuid PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('local', 'anonymous', 'user')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE owners IS 'Everything that is kept belongs to one of these.';

-- The person at this installation's own machine, who is its administrator.
CREATE UNIQUE INDEX owners_one_local ON owners (kind) WHERE kind = 'local';

CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);

COMMENT ON TABLE sessions IS 'Browsers that act for an owner; only the hash of the cookie is known here.';

CREATE INDEX sessions_owner ON sessions (owner_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE sign_in_links (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);

COMMENT ON TABLE sign_in_links IS 'Links that turn one browser, once, into the owner''s.';
