-- Signing in with an OpenID Connect provider, and the caller of a request in its events.

-- No row has NULL before the new version runs, and the old one is stopped before the upgrade.
-- squawk-ignore ban-drop-not-null
ALTER TABLE users ALTER COLUMN password_hash DROP NOT NULL;
COMMENT ON COLUMN users.password_hash IS 'NULL if the person signs in with a provider only.';

ALTER TABLE memberships ADD COLUMN granted_by text NOT NULL DEFAULT 'person';
-- The table is small: one row per person and owner.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE memberships ADD CONSTRAINT memberships_granted_by CHECK (granted_by IN ('person', 'claims'));
COMMENT ON COLUMN memberships.granted_by IS 'claims: a provider granted the role when the person signed in, and can take it away again.';

CREATE TABLE identities (
    issuer       text NOT NULL,
    subject      text NOT NULL,
    user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz,
    PRIMARY KEY (issuer, subject)
);

COMMENT ON TABLE identities IS 'How people are known to OpenID Connect providers. A person is found by issuer and subject only, never by address.';

CREATE INDEX identities_user ON identities (user_id);

CREATE TABLE provider_sign_ins (
    state_hash   bytea PRIMARY KEY CHECK (length(state_hash) = 32),
    browser_hash bytea NOT NULL CHECK (length(browser_hash) = 32),
    nonce        text NOT NULL,
    verifier     text NOT NULL,
    back         text NOT NULL,
    user_id      uuid REFERENCES users ON DELETE CASCADE,
    expires_at   timestamptz NOT NULL
);

COMMENT ON TABLE provider_sign_ins IS 'Browsers that were sent to a provider and have not come back yet.';
COMMENT ON COLUMN provider_sign_ins.verifier IS 'The secret of PKCE, with which only this server can use the code of the provider.';
COMMENT ON COLUMN provider_sign_ins.user_id IS 'The signed-in person who connects an identity to their account; NULL to sign in.';

CREATE INDEX provider_sign_ins_expiry ON provider_sign_ins (expires_at);
CREATE INDEX provider_sign_ins_user ON provider_sign_ins (user_id) WHERE user_id IS NOT NULL;

ALTER TABLE events ADD COLUMN actor_id uuid, ADD COLUMN via text;
ALTER TABLE events ALTER COLUMN actor_id SET DEFAULT nullif(current_setting('octavo.actor', true), '')::uuid,
                   ALTER COLUMN via SET DEFAULT nullif(current_setting('octavo.via', true), '');
COMMENT ON COLUMN events.actor_id IS 'The person whose request wrote the event, or the owner if the caller is not a person. NULL for events of workers.';
COMMENT ON COLUMN events.via IS 'session or key: how the caller signed in.';
