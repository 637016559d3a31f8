-- name: known_parts(document)
-- The parts that were added before, with the checksums of their content.
SELECT p.number, encode(d.sha256, 'hex') AS sha256 FROM document_parts p JOIN documents d ON d.id = p.document_id
WHERE p.parent_id = :document;

-- name: depth(document, most)
-- How many documents contain this one, each inside the next, counted up to `most`.
WITH RECURSIVE containing AS (
    SELECT :document::uuid AS id, 0 AS depth
    UNION
    SELECT p.parent_id, c.depth + 1 FROM containing c JOIN document_parts p ON p.document_id = c.id WHERE c.depth < :most
)
SELECT max(depth) FROM containing;

-- name: is_visitor(owner)
SELECT kind = 'anonymous' FROM owners WHERE id = :owner;

-- name: add_part(parent, number, name, document)!
-- A document is never a part of itself, not even if an archive contains its own copy.
INSERT INTO document_parts (parent_id, number, name, document_id)
SELECT :parent, :number, :name, :document WHERE :parent::uuid <> :document::uuid
ON CONFLICT (parent_id, number) DO UPDATE SET name = excluded.name, document_id = excluded.document_id,
                                              added_at = clock_timestamp();

-- name: set_parts(document, left_out)!
-- The reason why some parts are missing; NULL if all were added.
UPDATE documents SET metadata = metadata - 'parts_left_out' || jsonb_strip_nulls(jsonb_build_object('parts_left_out', :left_out::text)),
                     updated_at = clock_timestamp()
WHERE id = :document;
