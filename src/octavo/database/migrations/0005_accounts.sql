-- People: accounts with a password, who may act for which owner, and keys for programs.

CREATE TABLE users (
    id            uuid PRIMARY KEY,
    email         text NOT NULL CHECK (email = lower(email)),
    password_hash text NOT NULL,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN users.owner_id IS 'The owner that this person is at home in.';

CREATE UNIQUE INDEX users_email ON users (email);
CREATE INDEX users_owner ON users (owner_id);

CREATE TABLE memberships (
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    role       text NOT NULL CHECK (role IN ('owner', 'member', 'reader')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_id, user_id)
);

COMMENT ON TABLE memberships IS 'Who may act for an owner; its own person has a row here too.';

CREATE INDEX memberships_user ON memberships (user_id);

-- A browser acts for an owner in the name of a person, or for nobody in particular (anonymous, or the local owner).
ALTER TABLE sessions ADD COLUMN user_id uuid REFERENCES users ON DELETE CASCADE;
CREATE INDEX sessions_user ON sessions (user_id);

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    owner_id     uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    user_id      uuid REFERENCES users ON DELETE CASCADE,
    name         text NOT NULL,
    start        text NOT NULL,
    key_hash     bytea NOT NULL CHECK (length(key_hash) = 32),
    scope        text NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz
);

COMMENT ON COLUMN api_keys.start IS 'The first characters of the key, by which its owner recognises it; the rest is known to nobody here.';
COMMENT ON COLUMN api_keys.user_id IS 'The person it was made by; it can do no more than that person.';

CREATE UNIQUE INDEX api_keys_hash ON api_keys (key_hash);
CREATE INDEX api_keys_owner ON api_keys (owner_id, created_at);
CREATE INDEX api_keys_user ON api_keys (user_id) WHERE user_id IS NOT NULL;
