-- name: highlights(owner, document, after_place, after_id, most)
-- The highlights of a document in the order of its text; those without a position come last.
SELECT id, document_id, title, chunk_id, page, start, "end", quote, text_before, text_after, colour, note, lost, user_id, created_at,
       updated_at
FROM placed_highlights
WHERE document_id = :document AND owner_id = :owner AND (coalesce(start, 2147483647), id) > (:after_place, :after_id)
ORDER BY coalesce(start, 2147483647), id LIMIT :most;

-- name: all_highlights(owner, words, after_at, after_id, most)
-- The highlights in the newest versions of an owner's documents that match all patterns, newest first.
SELECT id, document_id, title, chunk_id, page, start, "end", quote, text_before, text_after, colour, note, lost, user_id, created_at,
       updated_at
FROM placed_highlights
WHERE owner_id = :owner AND NOT superseded AND concat_ws(E'\n', quote, note) ILIKE ALL (:words::text[])
  AND (:after_at::timestamptz IS NULL OR (created_at, id) < (:after_at, :after_id::uuid))
ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: highlight(owner, id)
SELECT id, document_id, title, chunk_id, page, start, "end", quote, text_before, text_after, colour, note, lost, user_id, created_at,
       updated_at
FROM placed_highlights
WHERE owner_id = :owner AND id = :id;

-- name: count_highlights(document)
SELECT count(*)::integer AS number FROM highlights WHERE document_id = :document;

-- name: insert_highlight(id, document, user, quote, text_before, text_after, colour, note, start, end)!
INSERT INTO highlights (id, document_id, user_id, quote, text_before, text_after, colour, note, char_start, char_end)
VALUES (:id, :document, :user, :quote, :text_before, :text_after, :colour, :note, :start, :end);

-- name: edit_highlight(owner, id, note, colour)
UPDATE highlights h SET note = coalesce(:note, h.note), colour = coalesce(:colour, h.colour), updated_at = clock_timestamp()
FROM documents d WHERE h.id = :id AND d.id = h.document_id AND d.owner_id = :owner AND d.deleted_at IS NULL
RETURNING h.id;

-- name: delete_highlight(owner, id)
DELETE FROM highlights h USING documents d
WHERE h.id = :id AND d.id = h.document_id AND d.owner_id = :owner AND d.deleted_at IS NULL RETURNING h.id;

-- name: kept(document)
-- What identifies the highlights of a document in a new text; nothing before it has a text.
SELECT h.id, h.quote, h.text_before, h.text_after, h.char_start AS start
FROM highlights h JOIN documents d ON d.id = h.document_id AND d.revision > 0
WHERE d.id = :document ORDER BY h.id;

-- name: chunk_texts(document)
-- The current text of a document; there is only white space between chunks.
SELECT c.char_start AS start, c.content FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE d.id = :document ORDER BY c.index;

-- name: place_highlights(places)!
-- The text around a lost highlight is kept, so that it can be found again later.
UPDATE highlights h SET char_start = p.start, char_end = p."end", lost = p.start IS NULL,
                        text_before = coalesce(p.text_before, h.text_before), text_after = coalesce(p.text_after, h.text_after)
FROM jsonb_to_recordset(:places) AS p (id uuid, start integer, "end" integer, text_before text, text_after text)
WHERE h.id = p.id;

-- name: position(owner, document, user)
-- Where a person stopped reading; otherwise where the visitor stopped who became this person.
SELECT p.char_start AS start
FROM reading_positions p JOIN documents d ON d.id = p.document_id AND d.owner_id = :owner AND d.deleted_at IS NULL
WHERE p.document_id = :document AND (p.user_id = :user OR p.user_id IS NULL)
ORDER BY p.user_id NULLS LAST LIMIT 1;

-- name: keep_position(owner, document, user, start)
INSERT INTO reading_positions (document_id, user_id, char_start)
SELECT id, :user, :start FROM documents WHERE id = :document AND owner_id = :owner AND deleted_at IS NULL
ON CONFLICT (document_id, user_id)
DO UPDATE SET char_start = excluded.char_start, updated_at = excluded.updated_at
RETURNING document_id;
