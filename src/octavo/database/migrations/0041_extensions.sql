-- compatible-from: 40
-- Sources of extensions.

-- A wider constraint replaces it.
-- squawk-ignore ban-drop-constraint
ALTER TABLE sources DROP CONSTRAINT sources_kind_check;
-- The table is small: one row per source.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE sources ADD CONSTRAINT sources_kind_check CHECK (kind IN ('folder', 'imap', 's3', 'webdav', 'rss', 'lmtp', 'extension'));
