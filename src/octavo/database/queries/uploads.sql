-- name: insert_upload(id, owner_id, document_id, process_id, duplicates, filename, content_type, source_type, source_url, given, claimed_bytes, claimed_sha256, incoming_key, object_key, bytes, sha256, version_of)!
INSERT INTO uploads (id, owner_id, document_id, process_id, duplicates, filename, content_type, source_type, source_url,
                     given, claimed_bytes, claimed_sha256, incoming_key, object_key, bytes, sha256, version_of)
VALUES (:id, :owner_id, :document_id, :process_id, :duplicates, :filename, :content_type, :source_type, :source_url,
        :given, :claimed_bytes, decode(:claimed_sha256, 'hex'), :incoming_key, :object_key, :bytes, decode(:sha256, 'hex'),
        :version_of);

-- name: place(id, owner, sha256, key, source_type, quota, process, compare)
-- Finalize; returns no row if the upload has changed since the caller read it.
SELECT state, document_id, process_id, duplicate_of
FROM place_upload(:id, :owner, :sha256, :key, :source_type, :quota, :process, :compare);

-- name: file_upload(document, collection)!
-- Puts a new document into a collection; without one, it stays in that of its earlier version.
UPDATE documents SET collection_id = coalesce(:collection, collection_id), metadata = metadata - '{collection,by}'::text[]
WHERE id = :document;

-- name: lock_usage(owner)!
-- Serialises additions of documents and conversion sources of one owner. Locks the owner first, like all other code.
WITH owner AS (SELECT id FROM owners WHERE id = :owner FOR KEY SHARE)
INSERT INTO owner_usage (owner_id, bytes, documents) SELECT id, 0, 0 FROM owner
ON CONFLICT (owner_id) DO UPDATE SET bytes = owner_usage.bytes;

-- name: over_quota(owner, quota)
-- Whether documents, including the trash, and conversion sources without a document exceed the owner's quota.
SELECT coalesce((SELECT bytes FROM owner_usage WHERE owner_id = :owner), 0)
     + coalesce((SELECT sum(o.bytes) FROM objects o WHERE o.key IN (
                     SELECT f.key FROM conversions c JOIN conversion_files f ON f.conversion_id = c.id AND f.kind = 'source'
                     WHERE c.owner_id = :owner AND c.document_id IS NULL AND c.source_expires_at IS NOT NULL)), 0) > :quota;

-- name: may_have_version(owner, document)
SELECT EXISTS (SELECT FROM documents WHERE id = :document AND owner_id = :owner AND deleted_at IS NULL);

-- name: count_pending(owner, seconds)
-- Number of open uploads, and the seconds until the oldest stops counting.
SELECT count(*), coalesce(extract(epoch FROM min(created_at) + make_interval(secs => :seconds) - clock_timestamp()), 0)
FROM uploads
WHERE owner_id = :owner AND state = 'pending' AND created_at > clock_timestamp() - make_interval(secs => :seconds);

-- name: read_upload(owner, id)
SELECT id, owner_id, document_id, process_id, state, is_canonical, duplicates, filename, content_type, source_type,
       source_url, given, claimed_bytes, encode(claimed_sha256, 'hex') AS claimed_sha256, incoming_key, object_key, bytes,
       encode(sha256, 'hex') AS sha256, version_of, error_code, error_message,
       (SELECT duplicate_of FROM documents d WHERE d.id = uploads.document_id) AS duplicate_of
FROM uploads WHERE id = :id AND owner_id = :owner;

-- name: list_uploads(owner, state, after_at, after_id, most)
SELECT id, filename, state, error_code, error_message, created_at, finalized_at AS ended_at, content_type, coalesce(bytes, claimed_bytes) AS bytes,
       CASE WHEN state IN ('uploaded', 'deduplicated') THEN document_id END AS document_id
FROM uploads
WHERE owner_id = :owner AND state = :state
  AND (:after_id::uuid IS NULL OR (created_at, id) < (:after_at::timestamptz, :after_id::uuid))
ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: content_key(owner, id)
-- The key of an upload's bytes; NULL if no document is (or is no longer) created from it.
SELECT a.key FROM uploads u
LEFT JOIN artifacts a ON u.state = 'uploaded' AND a.document_id = u.document_id AND a.kind = 'source' AND a.revision = 0
WHERE u.id = :id AND u.owner_id = :owner;

-- name: source_object(owner, document)
-- The stored source of a document, with its size and checksum.
SELECT o.key, o.bytes, encode(o.sha256, 'hex') FROM documents d
JOIN artifacts a ON a.document_id = d.id AND a.kind = 'source' AND a.revision = 0
JOIN objects o ON o.key = a.key
WHERE d.id = :document AND d.owner_id = :owner;

-- name: set_received(owner, id, key, bytes, sha256)
-- Records the received bytes; returns the previously received key, or no row if the upload is closed.
UPDATE uploads SET object_key = :key, bytes = :bytes, sha256 = decode(:sha256, 'hex')
FROM (SELECT id, object_key FROM uploads WHERE id = :id AND owner_id = :owner AND state = 'pending' FOR UPDATE) AS before
WHERE uploads.id = before.id
RETURNING before.object_key;

-- name: refuse_upload(owner, id, code, message, most)
-- Records the reason with an event; returns the received keys, so that they can be removed. Only the newest `most` refused
-- uploads of an owner are kept.
WITH refused AS (
    UPDATE uploads SET state = 'rejected', error_code = :code, error_message = :message, object_key = NULL,
                       finalized_at = clock_timestamp()
    FROM (SELECT id, object_key FROM uploads WHERE id = :id AND owner_id = :owner AND state = 'pending' FOR UPDATE) AS before
    WHERE uploads.id = before.id
    RETURNING uploads.process_id, uploads.owner_id, before.object_key, uploads.incoming_key
), told AS (
    INSERT INTO events (process_id, kind, owner_id, detail)
    SELECT process_id, 'rejected', owner_id, jsonb_build_object('upload', :id::uuid, 'error',
           jsonb_build_object('code', :code::text, 'message', :message::text))
    FROM refused
), forgotten AS (
    DELETE FROM uploads WHERE id IN (
        SELECT id FROM uploads WHERE owner_id = :owner AND state = 'rejected' AND id <> :id::uuid
        ORDER BY created_at DESC, id DESC OFFSET :most::bigint - 1)
)
SELECT object_key, incoming_key FROM refused;

-- name: abandoned(seconds, most)
-- Ends abandoned uploads with an event; returns the received keys, so that they can be removed.
WITH ended AS (
    UPDATE uploads SET state = 'failed', error_code = 'ABANDONED', error_message = 'It was never finished.',
                       object_key = NULL, finalized_at = clock_timestamp()
    FROM (SELECT id, object_key, incoming_key FROM uploads
          WHERE state = 'pending' AND created_at < clock_timestamp() - make_interval(secs => :seconds)
          ORDER BY created_at LIMIT :most FOR UPDATE SKIP LOCKED) AS before
    WHERE uploads.id = before.id
    RETURNING uploads.id, uploads.process_id, uploads.owner_id, uploads.error_code, uploads.error_message,
              before.object_key, before.incoming_key
), told AS (
    INSERT INTO events (process_id, kind, owner_id, detail)
    SELECT process_id, 'abandoned', owner_id, jsonb_build_object('upload', id, 'error',
           jsonb_build_object('code', error_code, 'message', error_message))
    FROM ended
)
SELECT object_key, incoming_key FROM ended;
