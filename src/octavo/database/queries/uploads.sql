-- name: insert_upload(id, owner_id, document_id, process_id, duplicates, filename, content_type, source_type, source_url, given, claimed_bytes, claimed_sha256, incoming_key, object_key, bytes, sha256)!
INSERT INTO uploads (id, owner_id, document_id, process_id, duplicates, filename, content_type, source_type, source_url,
                     given, claimed_bytes, claimed_sha256, incoming_key, object_key, bytes, sha256, received_at)
VALUES (:id, :owner_id, :document_id, :process_id, :duplicates, :filename, :content_type, :source_type, :source_url,
        :given, :claimed_bytes, decode(:claimed_sha256, 'hex'), :incoming_key, :object_key, :bytes, decode(:sha256, 'hex'),
        CASE WHEN :object_key::text IS NOT NULL THEN clock_timestamp() END);

-- name: count_pending(owner, seconds)
-- Uploads that may still be going on, and the seconds until the oldest no longer counts.
SELECT count(*), coalesce(extract(epoch FROM min(created_at) + make_interval(secs => :seconds) - clock_timestamp()), 0)
FROM uploads
WHERE owner_id = :owner AND state = 'pending' AND created_at > clock_timestamp() - make_interval(secs => :seconds);

-- name: read_upload(owner, id)
SELECT id, owner_id, document_id, process_id, state, is_canonical, duplicates, filename, content_type, source_type,
       source_url, given, claimed_bytes, encode(claimed_sha256, 'hex') AS claimed_sha256, incoming_key, object_key, bytes,
       encode(sha256, 'hex') AS sha256, error_code, error_message,
       (SELECT duplicate_of FROM documents d WHERE d.id = uploads.document_id) AS duplicate_of
FROM uploads WHERE id = :id AND owner_id = :owner;

-- name: set_received(owner, id, key, bytes, sha256)
-- The bytes are there; answers what was received before, or nothing when the upload is closed.
UPDATE uploads SET object_key = :key, bytes = :bytes, sha256 = decode(:sha256, 'hex'), received_at = clock_timestamp()
FROM (SELECT id, object_key FROM uploads WHERE id = :id AND owner_id = :owner AND state = 'pending' FOR UPDATE) AS before
WHERE uploads.id = before.id
RETURNING before.object_key;

-- name: lock_upload(owner, id)
SELECT state, object_key FROM uploads WHERE id = :id AND owner_id = :owner FOR UPDATE;

-- name: find_twin(owner, sha256)
-- The document that this content of the owner is already; none when its source has expired.
SELECT d.id, d.process_id, d.status, a.key
FROM uploads u
JOIN documents d ON d.id = u.document_id
JOIN artifacts a ON a.document_id = d.id AND a.kind = 'source' AND a.revision = 0
WHERE u.owner_id = :owner AND u.sha256 = decode(:sha256, 'hex') AND u.is_canonical
FOR SHARE OF u, d, a;

-- name: release_canonical(owner, sha256)
-- Whoever held this content has nothing left of it; answers the document that it was.
UPDATE uploads SET is_canonical = false WHERE owner_id = :owner AND sha256 = decode(:sha256, 'hex') AND is_canonical
RETURNING document_id;

-- name: set_twin(document, twin)!
UPDATE documents SET duplicate_of = :twin, updated_at = clock_timestamp() WHERE id = :document;

-- name: close_upload(id, state, canonical, document, process)!
UPDATE uploads SET state = :state, is_canonical = :canonical, document_id = :document, process_id = :process,
                   object_key = CASE WHEN :canonical THEN object_key END,
                   finalized_at = clock_timestamp()
WHERE id = :id;

-- name: refuse_upload(owner, id, code, message)
-- One row that says why, and its event; answers what was received, so that it can be removed.
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
)
SELECT object_key, incoming_key FROM refused;

-- name: record_deduplicated(process, owner, document, upload)!
INSERT INTO events (process_id, kind, owner_id, document_id, detail)
VALUES (:process, 'deduplicated', :owner, :document, jsonb_build_object('upload', :upload::uuid));

-- name: insert_object(key, bytes, sha256)!
INSERT INTO objects (key, bytes, sha256) VALUES (:key, :bytes, decode(:sha256, 'hex'));

-- name: insert_document(id, owner, process, title, filename, content_type, source_type, source_url, sha256, bytes, metadata, duplicate_of, author)!
INSERT INTO documents (id, owner_id, process_id, title, filename, content_type, source_type, source_url, sha256, bytes,
                       metadata, duplicate_of, author, last_revision)
VALUES (:id, :owner, :process, :title, :filename, :content_type, :source_type, :source_url, decode(:sha256, 'hex'), :bytes,
        :metadata, :duplicate_of, :author, 1);

-- name: insert_source(id, document, key, content_type)!
INSERT INTO artifacts (id, document_id, kind, key, content_type) VALUES (:id, :document, 'source', :key, :content_type);

-- name: usage_of(owner)
SELECT bytes, documents FROM owner_usage WHERE owner_id = :owner;

-- name: copy_results(twin, document, process)
-- A twin that asked for a document of its own gets all that was made of the first, without work.
SELECT copy_results(:twin, :document, :process);

-- name: abandoned(seconds, most)
-- Uploads that nobody will finish any more.
UPDATE uploads SET state = 'failed', error_code = 'ABANDONED', error_message = 'It was never finished.',
                   object_key = NULL, finalized_at = clock_timestamp()
FROM (SELECT id, object_key, incoming_key FROM uploads
      WHERE state = 'pending' AND created_at < clock_timestamp() - make_interval(secs => :seconds)
      ORDER BY created_at LIMIT :most FOR UPDATE SKIP LOCKED) AS before
WHERE uploads.id = before.id
RETURNING before.object_key, before.incoming_key;
