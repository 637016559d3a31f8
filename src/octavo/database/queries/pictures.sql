-- name: page(owner, document, number, name)
-- The source file of a page image, and the stored image if there is one.
SELECT d.source_type, d.page_count, s.key, s.revision, p.width AS page_width, a.key AS picture_key,
       encode(o.sha256, 'hex') AS picture_sha256
FROM documents d
JOIN LATERAL (
    -- Of an image there is a copy for screens, which is far quicker to read; it has the first sheet only.
    SELECT key, revision FROM artifacts
    WHERE document_id = d.id AND (revision IN (0, d.revision) OR d.revision = 0)
      AND (kind IN ('source', 'unlocked', 'page_raw') OR kind = 'image_jpeg' AND d.page_count = 1)
    ORDER BY kind = 'source', revision DESC LIMIT 1
) AS s ON true
LEFT JOIN pages p ON p.document_id = d.id AND p.revision = d.revision AND p.number = :number
LEFT JOIN artifacts a ON a.document_id = d.id AND a.revision = s.revision AND a.kind = 'page_picture' AND a.name = :name
LEFT JOIN objects o ON o.key = a.key
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: figures(owner, document, after, most)
SELECT f.number, f.kind, f.char_start AS start, f.page, f.box, f.caption, f.alternative
FROM documents d JOIN figures f ON f.document_id = d.id AND f.revision = d.revision
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL AND f.number > :after
ORDER BY f.number LIMIT :most;

-- name: known_figures(owner, document, numbers)
SELECT f.number, f.caption
FROM documents d JOIN figures f ON f.document_id = d.id AND f.revision = d.revision
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL AND f.number = ANY (:numbers);

-- name: first_figures(documents)
-- The first figure of each document that is not a formula, to be shown where there is no page.
SELECT f.document_id, min(f.number) AS number
FROM documents d JOIN figures f ON f.document_id = d.id AND f.revision = d.revision
WHERE d.id = ANY (:documents) AND f.kind <> 'formula' GROUP BY f.document_id;

-- name: figure(owner, document, number, name)
-- The source file of a figure, and the stored picture if there is one.
SELECT d.source_type, d.revision, f.page, f.box, f.member, s.key, a.key AS picture_key,
       encode(o.sha256, 'hex') AS picture_sha256
FROM documents d
JOIN figures f ON f.document_id = d.id AND f.revision = d.revision AND f.number = :number
JOIN LATERAL (
    SELECT key FROM artifacts
    WHERE document_id = d.id AND revision IN (0, d.revision) AND kind IN ('source', 'unlocked', 'page_raw')
    ORDER BY kind = 'source', revision DESC LIMIT 1
) AS s ON true
LEFT JOIN artifacts a ON a.document_id = d.id AND a.revision = d.revision AND a.kind = 'figure' AND a.name = :name
LEFT JOIN objects o ON o.key = a.key
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: insert_figure(id, document, revision, name, key)!
-- No row if another request stored it first, or the text was replaced in the meantime.
INSERT INTO artifacts (id, document_id, kind, name, revision, key, content_type)
SELECT :id, d.id, 'figure', :name, :revision, :key, 'image/png'
FROM documents d WHERE d.id = :document AND d.revision = :revision FOR KEY SHARE
ON CONFLICT DO NOTHING;

-- name: pages(owner, document, after, most)
SELECT p.number, p.label, p.char_start AS start, p.char_end AS "end", p.width, p.height, p.unsure
FROM documents d JOIN pages p ON p.document_id = d.id AND p.revision = d.revision
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL AND p.number > :after
ORDER BY p.number LIMIT :most;

-- name: regions(owner, document, page)
SELECT r.kind, r.box, r."order", r.confidence, r.text
FROM documents d
JOIN pages p ON p.document_id = d.id AND p.revision = d.revision AND p.number = :page
CROSS JOIN LATERAL jsonb_to_recordset(p.regions)
    AS r (kind text, box jsonb, "order" integer, confidence double precision, text text)
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL
ORDER BY r."order";

-- name: insert_object(key, bytes, sha256)!
-- Pictures of figures are stored by their content, so that several figures can share one.
INSERT INTO objects (key, bytes, sha256) VALUES (:key, :bytes, decode(:sha256, 'hex')) ON CONFLICT DO NOTHING;

-- name: insert_picture(id, document, revision, name, key)!
-- No row if another request stored it first, or the document is gone.
INSERT INTO artifacts (id, document_id, kind, name, revision, key, content_type)
SELECT :id, d.id, 'page_picture', :name, :revision, :key, 'image/png'
FROM documents d WHERE d.id = :document FOR KEY SHARE
ON CONFLICT DO NOTHING;

-- name: delete_unused_objects(keys)
DELETE FROM objects WHERE key = ANY (:keys) AND refs = 0 RETURNING key;

-- name: boxes(owner, document, chunk)
SELECT c.boxes
FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE d.id = :document AND d.owner_id = :owner AND c.id = :chunk;

-- name: delete_old_pictures(days, most)
-- Images can be rendered again at any time, so unused ones are deleted.
DELETE FROM artifacts WHERE id IN (
    SELECT id FROM artifacts
    WHERE kind = 'page_picture' AND created_at < engine_now() - make_interval(days => :days) LIMIT :most)
RETURNING key;
