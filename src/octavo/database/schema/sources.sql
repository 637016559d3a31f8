-- Sources that bring in documents, such as watched folders and mailboxes, and the files or mails that were seen there.

CREATE TABLE sources (
    id            uuid PRIMARY KEY,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    kind          text NOT NULL CONSTRAINT sources_kind_check CHECK (kind IN ('folder', 'imap', 's3', 'webdav', 'rss', 'lmtp', 'extension')),
    name          text NOT NULL CHECK (name <> ''),
    address       text NOT NULL CHECK (address <> ''),
    options       jsonb NOT NULL DEFAULT '{}',
    every_seconds integer NOT NULL CHECK (every_seconds > 0),
    paused        boolean NOT NULL DEFAULT false,
    next_run_at   timestamptz NOT NULL DEFAULT engine_now(),
    last_run_at   timestamptz,
    error         text,
    job_id        uuid,
    created_at    timestamptz NOT NULL DEFAULT engine_now(),
    access        jsonb NOT NULL DEFAULT '{}',
    secret        text,
    position      jsonb,
    consent       jsonb
);

COMMENT ON COLUMN sources.address IS 'The path of a folder, as the workers see it, a URL, or the part of a mail address before the @.';
COMMENT ON COLUMN sources.options IS 'What is added and how. Depends on the kind.';
COMMENT ON COLUMN sources.last_run_at IS 'When the source was last looked at.';
COMMENT ON COLUMN sources.error IS 'Why the last look, or the last job, did not succeed; NULL if it did.';
COMMENT ON COLUMN sources.job_id IS 'The last job that added files.';
COMMENT ON COLUMN sources.access IS 'How to connect, without secrets: the user, and for OAuth and S3 the servers. Never changed, so that a secret is only sent to the server for which it was entered.';
COMMENT ON COLUMN sources.secret IS 'The encrypted password or OAuth token.';
COMMENT ON COLUMN sources.consent IS 'For OAuth: the page of the provider and the scope with which a person connects the account. NULL if the token was entered.';
COMMENT ON COLUMN sources.position IS 'For a mailbox: the last mail that was seen. Changed together with the rows of the mails.';

CREATE UNIQUE INDEX sources_address ON sources (owner_id, kind, address);
-- Mails are delivered to the one source with this address.
CREATE UNIQUE INDEX sources_mail_address ON sources (address) WHERE kind = 'lmtp';
CREATE UNIQUE INDEX sources_name ON sources (owner_id, lower(name));
CREATE INDEX sources_due ON sources (next_run_at) WHERE NOT paused;

CREATE TABLE source_files (
    source_id   uuid NOT NULL REFERENCES sources ON DELETE CASCADE,
    path        text NOT NULL CHECK (path <> ''),
    bytes       bigint NOT NULL CHECK (bytes >= 0),
    modified    bigint NOT NULL,
    state       text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'added', 'known', 'failed')),
    document_id uuid REFERENCES documents ON DELETE SET NULL,
    versioned   boolean NOT NULL DEFAULT false,
    error       text,
    seen_at     timestamptz NOT NULL DEFAULT engine_now(),
    etag        text NOT NULL DEFAULT '',
    finished    boolean NOT NULL DEFAULT false,
    PRIMARY KEY (source_id, path)
);

COMMENT ON COLUMN source_files.path IS 'Relative to the source. For a mail: the UIDVALIDITY of its mailbox and its UID.';
COMMENT ON COLUMN source_files.modified IS 'Time of the last change, in nanoseconds.';
COMMENT ON COLUMN source_files.state IS '`waiting` until it has stopped changing; `known` if the owner already had this content.';
COMMENT ON COLUMN source_files.document_id IS 'The document; while a changed file waits, that of its earlier content.';
COMMENT ON COLUMN source_files.versioned IS 'Whether a change makes a new version of the document: the file created it, and was in each look since.';
COMMENT ON COLUMN source_files.seen_at IS 'When it was first seen with this size, time and tag.';
COMMENT ON COLUMN source_files.etag IS 'The entity tag of a file on a server.';
COMMENT ON COLUMN source_files.finished IS 'Whether the file was moved or marked after it was added, if the source does that.';

CREATE INDEX source_files_waiting ON source_files (source_id, seen_at) WHERE state = 'waiting';
CREATE INDEX source_files_unfinished ON source_files (source_id, seen_at) WHERE state IN ('added', 'known') AND NOT finished;
CREATE INDEX source_files_document ON source_files (document_id) WHERE document_id IS NOT NULL;

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
