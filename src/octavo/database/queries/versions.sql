-- name: versions(owner, document)
-- All versions of a document that are not in the trash, newest first, and of which revisions the text is kept.
SELECT v.id AS document_id, v.version, coalesce(nullif(v.title, ''), v.filename) AS title, v.filename, v.status, v.bytes,
       encode(v.sha256, 'hex') AS sha256, v.created_at, NOT v.superseded AS newest, v.revision,
       ARRAY(SELECT a.revision FROM artifacts a
             WHERE a.document_id = v.id AND a.kind = 'markdown' AND a.name = '' ORDER BY a.revision DESC) AS revisions
FROM documents d JOIN documents v ON v.family_id = d.family_id AND v.owner_id = d.owner_id AND v.deleted_at IS NULL
WHERE d.id = :document AND d.owner_id = :owner
ORDER BY v.version DESC;

-- name: text_of(owner, document, revision)
-- Where the text of a revision is; without one, of the revision that is read.
SELECT a.revision, a.key, o.bytes
FROM documents d
JOIN artifacts a ON a.document_id = d.id AND a.kind = 'markdown' AND a.name = ''
                AND a.revision = coalesce(:revision, d.revision)
JOIN objects o ON o.key = a.key
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL;

-- name: page_starts(owner, document, revision)
-- Known of the revision that is read.
SELECT p.number, p.char_start FROM pages p JOIN documents d ON d.id = p.document_id
WHERE d.id = :document AND d.owner_id = :owner AND p.revision = :revision ORDER BY p.number;
