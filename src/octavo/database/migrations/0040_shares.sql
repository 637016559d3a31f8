-- Sharing a document or a collection by a link, and an index for the audit page.

CREATE TABLE shares (
    id             uuid PRIMARY KEY,
    owner_id       uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id    uuid REFERENCES documents ON DELETE CASCADE,
    collection_id  uuid REFERENCES collections ON DELETE CASCADE,
    token_hash     bytea NOT NULL CHECK (length(token_hash) = 32),
    sign_in        boolean NOT NULL,
    created_by     uuid REFERENCES users ON DELETE SET NULL,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz NOT NULL,
    last_opened_at timestamptz,
    CONSTRAINT shares_one_thing CHECK ((document_id IS NULL) <> (collection_id IS NULL))
);

COMMENT ON TABLE shares IS 'Links with which others read one document or one collection. A row is deleted when its link is revoked.';
COMMENT ON COLUMN shares.sign_in IS 'Whether only people with an account can open the link.';

CREATE UNIQUE INDEX shares_token ON shares (token_hash);
CREATE INDEX shares_owner ON shares (owner_id, created_at);
CREATE INDEX shares_document ON shares (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX shares_collection ON shares (collection_id) WHERE collection_id IS NOT NULL;
CREATE INDEX shares_created_by ON shares (created_by) WHERE created_by IS NOT NULL;

CREATE INDEX events_actions ON events (owner_id, epoch, id) WHERE actor_id IS NOT NULL;
