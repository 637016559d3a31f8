-- name: text(owner, document)
-- The current text of a document: its revision and storage key.
SELECT d.revision, a.key, o.bytes
FROM documents d
JOIN artifacts a ON a.document_id = d.id AND a.revision = d.revision AND a.kind = 'markdown' AND a.name = ''
JOIN objects o ON o.key = a.key
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: sheets(owner, document, revision)
SELECT p.number, p.label, p.char_start AS start, p.char_end AS "end", p.width, p.height, p.bookmarks, p.unsure
FROM pages p JOIN documents d ON d.id = p.document_id
WHERE d.id = :document AND d.owner_id = :owner AND p.revision = :revision
ORDER BY p.number;

-- name: places(owner, document, revision, first, last)
-- The chunks that overlap a part of the text.
SELECT c.id, c.char_start AS start, c.char_end AS "end", c.seconds, c.boxes, c.made_by IS NOT NULL AS described
FROM chunks c JOIN documents d ON d.id = c.document_id
WHERE d.id = :document AND d.owner_id = :owner AND c.revision = :revision
  AND c.char_start < :last AND c.char_end > :first
ORDER BY c.index;

-- name: chunk_starts(owner, document, revision, first, last)
-- The chunks that overlap a part of the text, without their boxes.
SELECT c.id, c.char_start AS start, c.char_end AS "end"
FROM chunks c JOIN documents d ON d.id = c.document_id
WHERE d.id = :document AND d.owner_id = :owner AND c.revision = :revision
  AND c.char_start < :last AND c.char_end > :first
ORDER BY c.index;

-- name: place_of(owner, document, passage)
-- A chunk of the current text.
SELECT c.id, c.char_start AS start, c.char_end AS "end", c.seconds, c.boxes
FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE d.id = :document AND d.owner_id = :owner AND c.id = :passage;

-- name: insight(owner, document, passage)
-- The description of a chunk of the current text.
SELECT c.id, c.summary, c.themes, (c.tone ->> 'polarity')::double precision AS polarity, c.tone ->> 'primary_emotion' AS emotion,
       c.importance, c.made_by,
       ARRAY(SELECT k.concept FROM chunk_concepts k WHERE k.chunk_id = c.id ORDER BY k.importance DESC, k.concept) AS concepts
FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE d.id = :document AND d.owner_id = :owner AND c.id = :passage AND c.made_by IS NOT NULL;

-- name: happened(owner, document, before, most)
-- The events of a document, newest first, with the kinds of their jobs; without progress, parts of stages, and jobs for tags.
SELECT e.id, e.at, e.kind, e.process_id, e.document_id, e.detail, (SELECT j.kind FROM jobs j WHERE j.id = e.process_id) AS job_kind
FROM events e
WHERE (e.process_id IN (SELECT id FROM jobs WHERE document_id = :document AND owner_id = :owner
                            AND kind NOT IN ('embed_tags', 'improve_document')
                        UNION SELECT process_id FROM documents WHERE id = :document AND owner_id = :owner)
       OR e.process_id IN (SELECT id FROM jobs WHERE document_id = :document AND owner_id = :owner AND kind = 'improve_document')
          AND (e.detail ->> 'stage' = 'improved' OR e.kind = 'try_now'))
  AND e.kind NOT IN ('progress', 'analysis.item', 'analysis.result') AND e.detail ->> 'part' IS NULL
  AND (e.document_id IS NULL OR e.document_id = :document)
  AND (:before::bigint IS NULL OR e.id < :before)
ORDER BY e.id DESC LIMIT :most;

-- name: skipped_analysis(owner, document)
-- The estimated cost of an automatic analysis that was not started because of its budget, while there is no other analysis.
SELECT (s.output ->> 'estimated_usd')::double precision AS estimated_usd
FROM documents d JOIN jobs j ON j.document_id = d.id JOIN job_stages s ON s.job_id = j.id AND s.stage = 'analysis_asked'
WHERE d.id = :document AND d.owner_id = :owner AND d.text_ready AND d.deleted_at IS NULL AND s.output @> '{"started": false}'
  AND NOT EXISTS (SELECT FROM analyses a WHERE a.document_id = d.id)
ORDER BY s.finished_at DESC LIMIT 1;
