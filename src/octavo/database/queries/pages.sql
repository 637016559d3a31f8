-- name: frame(owner, person)
-- The counts that every page shows to its owner, and the time of the database.
SELECT coalesce((SELECT documents FROM owner_usage WHERE owner_id = :owner), 0)
       - (SELECT count(*) FROM documents WHERE owner_id = :owner AND deleted_at IS NOT NULL)
       - (SELECT count(*) FROM documents WHERE owner_id = :owner AND deleted_at IS NULL AND superseded) AS documents,
       j.working + a.running AS working, a.running AS analyses, j.comparing,
       CASE WHEN EXISTS (SELECT FROM paused_imports WHERE owner_id = :owner) THEN 'paused'
            WHEN EXISTS (SELECT FROM jobs WHERE owner_id = :owner AND status = 'queued' AND priority >= 10) THEN 'waiting'
            END AS imports,
       (SELECT email FROM users WHERE id = :person) AS email,
       (SELECT count(*) FROM notifications WHERE owner_id = :owner AND read_at IS NULL AND level = 'error') AS unread,
       ARRAY(SELECT ARRAY[id::text, name] FROM views WHERE owner_id = :owner ORDER BY lower(name) LIMIT 8) AS views,
       ARRAY(SELECT name FROM collections WHERE owner_id = :owner ORDER BY lower(name) LIMIT 8) AS collections,
       clock_timestamp() AS now
FROM (SELECT count(*) AS running FROM analyses WHERE owner_id = :owner AND status IN ('queued', 'analyzing')) a,
     (SELECT count(*) FILTER (WHERE (document_id IS NOT NULL OR kind = 'convert')
                                AND kind NOT IN ('embed_tags', 'improve_document', 'analyse_document')) AS working,
             count(*) FILTER (WHERE kind = 'detect_connections') AS comparing
      FROM unfinished_jobs WHERE owner_id = :owner) j;

-- name: dead_letters()
SELECT count(*) FROM jobs WHERE status = 'dead_letter';

-- name: dock(owner, most)
-- Running jobs first, then waiting ones, imports last, oldest first; comparisons after the others. Jobs that nobody waits for are omitted.
-- An analysis is one item, and so is a document: its comparison may wait while the document is still processed.
SELECT id, name FROM (
  SELECT j.id, coalesce(c.filename, nullif(d.title, ''), d.filename) AS name, j.status, j.kind, j.created_at, j.priority,
    row_number() OVER (PARTITION BY coalesce(c.id, d.id)
      ORDER BY j.status <> 'processing', j.kind = 'detect_connections', j.created_at, j.id) AS place
  FROM unfinished_jobs j LEFT JOIN documents d ON d.id = j.document_id LEFT JOIN conversions c ON c.id = j.id
  WHERE j.owner_id = :owner AND j.kind NOT IN ('embed_tags', 'improve_document', 'analyse_document')
    AND (c.id IS NOT NULL OR d.deleted_at IS NULL AND d.id IS NOT NULL)
) AS active
WHERE place = 1
ORDER BY status <> 'processing', kind = 'detect_connections', priority >= 10, created_at, id LIMIT :most;

-- name: tabs(owner)
-- The number of documents in each tab of the library. Every count reads an index that contains few other rows.
SELECT coalesce((SELECT documents FROM owner_usage WHERE owner_id = :owner), 0)
       - (SELECT count(*) FROM documents WHERE owner_id = :owner AND deleted_at IS NOT NULL)
       - (SELECT count(*) FROM documents WHERE owner_id = :owner AND deleted_at IS NULL AND superseded) AS everything,
       (SELECT count(*) FROM documents WHERE owner_id = :owner AND deleted_at IS NULL AND NOT superseded
           AND status = 'pending')
       - (SELECT count(*) FROM documents_held WHERE owner_id = :owner) AS working,
       (SELECT count(*) FROM documents WHERE owner_id = :owner AND deleted_at IS NULL AND NOT superseded AND status = 'completed'
           AND (needs_classification OR quality IN ('partial', 'empty')
               -- A photo needs no text. Other files without text need a person only if OCR has not read them, or if they could not
               -- be decoded.
               AND (quality = 'partial' AND NOT (source_type = 'image' AND kind IS NOT DISTINCT FROM 'photo') OR metadata ? 'pages_for_ocr'
                    OR metadata ? 'unreadable' AND metadata ->> 'unreadable_code' IS DISTINCT FROM 'TOO_LARGE')))
       + (SELECT count(*) FROM documents_held WHERE owner_id = :owner) AS needs_you,
       (SELECT count(*) FROM documents WHERE owner_id = :owner AND deleted_at IS NULL AND NOT superseded
           AND status = 'failed') AS failed,
       (SELECT count(*) FROM documents WHERE owner_id = :owner AND deleted_at IS NULL AND NOT superseded
           AND quality = 'stored_only')
           AS stored_only,
       (SELECT count(*) FROM uploads WHERE owner_id = :owner AND state = 'rejected') AS refused;

-- name: openings(documents, characters)
-- The first words of the current revision of documents.
SELECT c.document_id, left(c.content, :characters) AS opening
FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE d.id = ANY (:documents) AND c.index = 0;
