-- Accounts of mail providers are connected on the provider's page.
-- compatible-from: 40

ALTER TABLE sources ADD COLUMN consent jsonb;
COMMENT ON COLUMN sources.consent IS 'For OAuth: the page of the provider and the scope with which a person connects the account. NULL if the token was entered.';

CREATE TABLE source_consents (
    state_hash   bytea PRIMARY KEY CHECK (length(state_hash) = 32),
    browser_hash bytea NOT NULL CHECK (length(browser_hash) = 32),
    owner_id     uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    source_id    uuid REFERENCES sources ON DELETE CASCADE,
    content      text NOT NULL,
    expires_at   timestamptz NOT NULL
);

COMMENT ON TABLE source_consents IS 'Browsers that were sent to a provider to allow access to a mailbox, and have not come back yet.';
COMMENT ON COLUMN source_consents.source_id IS 'The source that gets a new token; NULL for a source that is added afterwards.';
COMMENT ON COLUMN source_consents.content IS 'The encrypted source to add, and the secret of PKCE.';

CREATE INDEX source_consents_expiry ON source_consents (expires_at);
CREATE INDEX source_consents_owner ON source_consents (owner_id);
CREATE INDEX source_consents_source ON source_consents (source_id) WHERE source_id IS NOT NULL;

SELECT renew_limited_views();
