-- Sources on other servers: mailboxes, S3, WebDAV and feeds; and mails that a mail server delivers.

-- More kinds than before are allowed.
-- squawk-ignore ban-drop-constraint
ALTER TABLE sources DROP CONSTRAINT sources_kind_check;
-- The table is small: one row per source.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE sources ADD CONSTRAINT sources_kind_check CHECK (kind IN ('folder', 'imap', 's3', 'webdav', 'rss', 'lmtp'));
ALTER TABLE sources ADD COLUMN access jsonb NOT NULL DEFAULT '{}', ADD COLUMN secret text, ADD COLUMN position jsonb;

COMMENT ON COLUMN sources.address IS 'The path of a folder, as the workers see it, a URL, or the part of a mail address before the @.';
COMMENT ON COLUMN sources.options IS 'What is added and how. Depends on the kind.';
COMMENT ON COLUMN sources.access IS 'How to connect, without secrets: the user, and for OAuth and S3 the servers. Never changed, so that a secret is only sent to the server for which it was entered.';
COMMENT ON COLUMN sources.secret IS 'The encrypted password or OAuth token.';
COMMENT ON COLUMN sources.position IS 'For a mailbox: the last mail that was seen. Changed together with the rows of the mails.';

ALTER TABLE source_files ADD COLUMN etag text NOT NULL DEFAULT '', ADD COLUMN finished boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN source_files.path IS 'Relative to the source. For a mail: the UIDVALIDITY of its mailbox and its UID.';
COMMENT ON COLUMN source_files.seen_at IS 'When it was first seen with this size, time and tag.';
COMMENT ON COLUMN source_files.etag IS 'The entity tag of a file on a server.';
COMMENT ON COLUMN source_files.finished IS 'Whether the file was moved or marked after it was added, if the source does that.';

CREATE UNIQUE INDEX sources_mail_address ON sources (address) WHERE kind = 'lmtp';
CREATE INDEX source_files_unfinished ON source_files (source_id, seen_at) WHERE state IN ('added', 'known') AND NOT finished;
