-- name: facts(document)
-- The facts of a document. What a person said hides all others with the same name; otherwise the best comes first.
SELECT f.name, f.value, f.normalized, f.page, f.box, f.quote, f.confidence, f.source, f.status
FROM facts f
WHERE f.document_id = :document AND f.value IS NOT NULL AND (f.made_by = 'person' OR NOT EXISTS (
    SELECT FROM facts p WHERE p.document_id = f.document_id AND p.name = f.name AND p.made_by = 'person'))
ORDER BY fact_rank(f.source, f.status), f.confidence DESC, f.number, f.made_by;

-- name: chosen(documents, names)
-- The best fact with each of these names, for several documents.
SELECT document_id, name, value, normalized, page, box, quote, confidence, source, status
FROM chosen_facts WHERE document_id = ANY (:documents) AND name = ANY (:names) AND value IS NOT NULL;

-- name: delete_facts(document, made_by)
DELETE FROM facts WHERE document_id = :document AND made_by = :made_by RETURNING name;

-- name: insert_facts(document, made_by, revision, facts)!
INSERT INTO facts (document_id, made_by, revision, name, number, value, normalized, page, box, quote, confidence, source, status)
SELECT :document, :made_by, :revision, f.name, f.number, f.value, f.normalized, f.page, nullif(f.box, 'null'), f.quote, f.confidence,
       f.source, f.status
FROM jsonb_to_recordset(:facts) AS f (name text, number integer, value text, normalized text, page integer, box jsonb,
                                      quote text, confidence real, source text, status text);

-- name: say(document, name, value, normalized)!
-- What a person says of a document; a value of NULL says that it has no such fact.
INSERT INTO facts (document_id, made_by, name, value, normalized, confidence, source, status)
VALUES (:document, 'person', :name, :value, :normalized, 1, 'person', 'confirmed')
ON CONFLICT (document_id, made_by, name, number) DO UPDATE
SET value = excluded.value, normalized = excluded.normalized, page = NULL, box = NULL, quote = '', made_at = clock_timestamp();

-- name: keep_place(document, name)!
-- A person who confirms or corrects a value does not move it: the place is that of the best fact that was found.
UPDATE facts p SET page = f.page, box = f.box, quote = f.quote
FROM (SELECT page, box, quote FROM facts
      WHERE document_id = :document AND name = :name AND made_by <> 'person' AND page IS NOT NULL
      ORDER BY fact_rank(source, status), confidence DESC, number LIMIT 1) AS f
WHERE p.document_id = :document AND p.name = :name AND p.made_by = 'person';

-- name: follow(document, names)!
SELECT follow_facts(:document, :names::text[]);
