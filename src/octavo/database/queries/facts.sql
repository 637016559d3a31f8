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

-- name: say(documents, name, value, normalized)!
-- A correction by a person; a value of NULL means that the documents have no such fact.
INSERT INTO facts (document_id, made_by, name, value, normalized, confidence, source, status)
SELECT unnest(:documents::uuid[]), 'person', :name, :value, :normalized, 1, 'person', 'confirmed'
ON CONFLICT (document_id, made_by, name, number) DO UPDATE
SET value = excluded.value, normalized = excluded.normalized, page = NULL, box = NULL, quote = '', made_at = clock_timestamp();

-- name: keep_place(documents, name)!
-- A person who confirms or corrects a value does not move it: the place is that of the best fact that was found.
UPDATE facts p SET page = f.page, box = f.box, quote = f.quote
FROM (SELECT DISTINCT ON (document_id) document_id, page, box, quote FROM facts
      WHERE document_id = ANY (:documents) AND name = :name AND made_by <> 'person' AND page IS NOT NULL
      ORDER BY document_id, fact_rank(source, status), confidence DESC, number) AS f
WHERE p.document_id = f.document_id AND p.name = :name AND p.made_by = 'person';

-- name: follow(documents, names)!
SELECT follow_all_facts(:documents::uuid[], :names::text[]);

-- name: replace_composed_titles(titles)
-- Only titles that processing composed from other facts have this source.
UPDATE facts f SET value = t.value, normalized = t.normalized
FROM jsonb_to_recordset(:titles) AS t (document uuid, value text, normalized text)
WHERE f.document_id = t.document AND f.name = 'title' AND f.made_by = 'processing' AND f.source = 'rule' AND f.value <> t.value
RETURNING f.document_id;

-- name: views(owner)
SELECT id, name, filter, sort, created_at FROM views WHERE owner_id = :owner ORDER BY lower(name);

-- name: save_view(id, owner, name, filter, sort)
-- A view with the same name is replaced.
INSERT INTO views (id, owner_id, name, filter, sort) VALUES (:id, :owner, :name, :filter, :sort)
ON CONFLICT (owner_id, lower(name)) DO UPDATE SET name = excluded.name, filter = excluded.filter, sort = excluded.sort
RETURNING id, name, filter, sort, created_at;

-- name: delete_view(owner, id)
DELETE FROM views WHERE id = :id AND owner_id = :owner RETURNING id;

-- name: facets(owner)
-- The kinds and languages of an owner's documents, the most frequent first.
SELECT name, value, sum(documents)::integer AS documents FROM document_counts
WHERE owner_id = :owner AND name IN ('kind', 'language') GROUP BY 1, 2 HAVING sum(documents) > 0
ORDER BY 1, 3 DESC, 2;
