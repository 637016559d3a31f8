-- Invitations, links that set a new password, the second factor, and sessions that can be listed.

-- The table is small: one row per browser.
-- squawk-ignore adding-field-with-default
ALTER TABLE sessions ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid();
ALTER TABLE sessions ADD COLUMN browser text;
ALTER TABLE sessions ALTER COLUMN browser SET DEFAULT nullif(current_setting('octavo.browser', true), '');
COMMENT ON COLUMN sessions.id IS 'The name of the session in lists; it grants nothing.';
COMMENT ON COLUMN sessions.browser IS 'The User-Agent of the browser that signed in.';
CREATE UNIQUE INDEX sessions_id ON sessions (id);

CREATE TABLE invitations (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    email      text NOT NULL CHECK (email = lower(email)),
    role       text NOT NULL CHECK (role IN ('owner', 'member', 'reader')),
    token_hash bytea NOT NULL CHECK (length(token_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);

COMMENT ON TABLE invitations IS 'One-time links with which a person becomes a member. A row is deleted when its link is used.';

CREATE UNIQUE INDEX invitations_token ON invitations (token_hash);
CREATE INDEX invitations_owner ON invitations (owner_id, created_at);

CREATE TABLE account_links (
    token_hash           bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    purpose              text NOT NULL CHECK (purpose IN ('password', 'code')),
    user_id              uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    clears_second_factor boolean NOT NULL DEFAULT false,
    expires_at           timestamptz NOT NULL
);

COMMENT ON TABLE account_links IS 'password: one-time links that set a new password. code: sign-ins that wait for the code of the second factor. A row is deleted when it is used.';

CREATE INDEX account_links_user ON account_links (user_id);
CREATE INDEX account_links_expiry ON account_links (expires_at);

CREATE TABLE second_factors (
    user_id      uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    secret       text NOT NULL,
    confirmed_at timestamptz,
    last_step    bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE second_factors IS 'Secrets of authenticator apps (TOTP). They count once confirmed with a code.';
COMMENT ON COLUMN second_factors.secret IS 'Encrypted with the secret of the installation, which is not in the database.';
COMMENT ON COLUMN second_factors.last_step IS 'The time step of the last code that was used. A code works once, and older ones no longer.';

CREATE TABLE recovery_codes (
    user_id   uuid NOT NULL REFERENCES second_factors ON DELETE CASCADE,
    code_hash bytea NOT NULL CHECK (length(code_hash) = 32),
    PRIMARY KEY (user_id, code_hash)
);

COMMENT ON TABLE recovery_codes IS 'Codes that replace the authenticator app once each. A row is deleted when its code is used.';
