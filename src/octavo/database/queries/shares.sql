-- name: insert_share(id, owner, document, collection, token_hash, sign_in, user, days)
-- Returns no row if the document or collection does not exist, is in the trash, or belongs to another owner.
WITH gone AS (DELETE FROM shares WHERE expires_at < clock_timestamp())
INSERT INTO shares (id, owner_id, document_id, collection_id, token_hash, sign_in, created_by, expires_at)
SELECT :id, :owner, :document, :collection, :token_hash, :sign_in, :user, clock_timestamp() + make_interval(days => :days)
WHERE EXISTS (SELECT FROM documents d WHERE d.id = :document::uuid AND d.owner_id = :owner AND d.deleted_at IS NULL)
   OR EXISTS (SELECT FROM collections c WHERE c.id = :collection::uuid AND c.owner_id = :owner)
RETURNING id;

-- name: list_shares(owner, share)
-- Newest first. `share`: only this one.
SELECT s.id, s.document_id, s.collection_id, coalesce(nullif(d.title, ''), d.filename, c.name, '') AS name, s.sign_in,
       u.email AS created_by, s.created_at, s.expires_at, s.last_opened_at
FROM shares s LEFT JOIN documents d ON d.id = s.document_id LEFT JOIN collections c ON c.id = s.collection_id
LEFT JOIN users u ON u.id = s.created_by
WHERE s.owner_id = :owner AND s.expires_at > clock_timestamp() AND (:share::uuid IS NULL OR s.id = :share)
ORDER BY s.created_at DESC, s.id DESC;

-- name: revoke_share(owner, share)
DELETE FROM shares WHERE id = :share AND owner_id = :owner AND expires_at > clock_timestamp() RETURNING document_id;

-- name: open_share(token_hash)
-- What a link shows; no row if it is unknown, revoked or expired. Its use is recorded at most once a minute.
WITH unnoted AS (
    SELECT id FROM shares WHERE token_hash = :token_hash AND expires_at > clock_timestamp()
      AND (last_opened_at IS NULL OR last_opened_at < clock_timestamp() - interval '1 minute')
    FOR UPDATE SKIP LOCKED
), noted AS (
    UPDATE shares SET last_opened_at = clock_timestamp() FROM unnoted WHERE shares.id = unnoted.id
)
SELECT s.id, s.owner_id, s.document_id, c.name AS collection, s.sign_in
FROM shares s LEFT JOIN collections c ON c.id = s.collection_id
WHERE s.token_hash = :token_hash AND s.expires_at > clock_timestamp();

-- name: shows(share, document)
-- Whether a link shows this document. This is the only rule about what a link shows.
SELECT true FROM shares s JOIN documents d ON d.owner_id = s.owner_id
WHERE s.id = :share AND s.expires_at > clock_timestamp() AND d.id = :document AND d.deleted_at IS NULL
  AND (d.id = s.document_id OR d.collection_id = s.collection_id AND NOT d.superseded);
