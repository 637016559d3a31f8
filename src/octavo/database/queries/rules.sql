-- name: list_rules(owner)
SELECT id, name, position, conditions, actions, enabled, created_at, updated_at FROM rules
WHERE owner_id = :owner ORDER BY position, id;

-- name: has_enabled(owner)
SELECT EXISTS (SELECT FROM rules WHERE owner_id = :owner AND enabled);

-- name: insert_rule(id, owner, name, conditions, actions, enabled)!
INSERT INTO rules (id, owner_id, name, position, conditions, actions, enabled)
SELECT :id, :owner, :name, coalesce(max(position), 0) + 1, :conditions, :actions, :enabled FROM rules WHERE owner_id = :owner;

-- name: edit_rule(id, owner, name, conditions, actions, enabled)
UPDATE rules SET name = coalesce(:name, name), conditions = coalesce(:conditions::jsonb, conditions),
                 actions = coalesce(:actions::jsonb, actions), enabled = coalesce(:enabled, enabled), updated_at = clock_timestamp()
WHERE id = :id AND owner_id = :owner RETURNING id;

-- name: order_rules(owner, rules)!
UPDATE rules SET position = o.place FROM unnest(:rules::uuid[]) WITH ORDINALITY AS o (id, place)
WHERE rules.id = o.id AND rules.owner_id = :owner AND position <> o.place;

-- name: delete_rule(id, owner)
DELETE FROM rules WHERE id = :id AND owner_id = :owner RETURNING id;

-- name: lock_owner(owner)!
SELECT FROM owners WHERE id = :owner FOR NO KEY UPDATE;

-- name: matching(owner, documents, source, kind, sender, tag, fields, amount_min, amount_max, currency, phrase, pattern, by_words, most)
-- Documents that match all conditions, with the values that rules can change. A phrase is first looked up by its words, in the
-- languages of the owner's documents, and then compared exactly. If it has only words that are not indexed, or is written
-- without spaces (`by_words` is false), all texts are compared.
WITH configs AS MATERIALIZED (
    SELECT config, CASE WHEN :by_words THEN phraseto_tsquery(config, search_text(:phrase)) ELSE ''::tsquery END AS query
    FROM (SELECT DISTINCT search_config(language) AS config FROM documents WHERE owner_id = :owner AND :pattern::text IS NOT NULL) AS c
), words AS (
    SELECT string_agg('(' || query::text || ')', ' | ')::tsquery AS query FROM configs WHERE numnode(query) > 0
), containing AS (
    SELECT c.document_id FROM chunk_words w
    JOIN chunks c ON c.id = w.chunk_id JOIN documents d ON d.id = w.document_id AND d.revision = w.revision
    WHERE w.words @@ (SELECT query FROM words) AND d.owner_id = :owner AND c.content ~* :pattern
      AND (:documents::uuid[] IS NULL OR w.document_id = ANY (:documents))
    UNION
    SELECT c.document_id FROM documents d
    JOIN configs k ON k.config = search_config(d.language) AND numnode(k.query) = 0
    JOIN chunks c ON c.document_id = d.id AND c.revision = d.revision
    WHERE d.owner_id = :owner AND c.content ~* :pattern AND (:documents::uuid[] IS NULL OR d.id = ANY (:documents))
)
SELECT d.id, d.filename, coalesce(nullif(d.title, ''), d.filename) AS title, c.name AS collection, d.kind, d.sender, d.author,
       d.document_date, (d.created_at AT TIME ZONE 'UTC')::date AS added_on, d.expires_on::text AS expires_on, trim_scale(d.amount)::text AS amount, d.currency, d.version > 1 AS is_version, 'tags' = ANY (d.edited) AS has_tags,
       EXISTS (SELECT FROM facts p WHERE p.document_id = d.id AND p.name = 'title' AND p.made_by = 'person') AS has_title,
       ARRAY(SELECT t.name FROM document_tags dt JOIN tags t ON t.id = dt.tag_id WHERE dt.document_id = d.id ORDER BY lower(t.name)) AS tags,
       (SELECT coalesce(jsonb_object_agg(lower(f.name), v.value), '{}') FROM document_fields v JOIN fields f ON f.id = v.field_id
        WHERE v.document_id = d.id) AS fields
FROM documents d LEFT JOIN collections c ON c.id = d.collection_id
WHERE d.owner_id = :owner AND d.deleted_at IS NULL AND NOT d.superseded
  AND (:documents::uuid[] IS NULL OR d.id = ANY (:documents))
  AND (:pattern::text IS NULL OR d.id IN (SELECT document_id FROM containing))
  AND (:kind::text IS NULL OR lower(d.kind) = lower(:kind))
  AND (:sender::text IS NULL OR d.sender ILIKE :sender)
  AND (:amount_min::numeric IS NULL OR d.amount >= :amount_min)
  AND (:amount_max::numeric IS NULL OR d.amount <= :amount_max)
  AND (:currency::text IS NULL OR lower(d.currency) = lower(:currency))
  AND (:tag::text IS NULL OR EXISTS (
      SELECT FROM document_tags dt JOIN tags t ON t.id = dt.tag_id WHERE dt.document_id = d.id AND lower(t.name) = lower(:tag)))
  AND (:source::text IS NULL OR EXISTS (
      SELECT FROM source_files sf JOIN sources s ON s.id = sf.source_id
      WHERE sf.document_id = d.id AND s.owner_id = :owner AND (s.id::text = lower(:source) OR lower(s.name) = lower(:source))))
  AND NOT EXISTS (
      SELECT FROM jsonb_each_text(:fields) AS w (name, value) WHERE NOT EXISTS (
          SELECT FROM document_fields v JOIN fields f ON f.id = v.field_id
          WHERE v.document_id = d.id AND lower(f.name) = lower(w.name) AND (w.value IS NULL OR lower(v.value) = lower(w.value))))
ORDER BY d.id LIMIT :most;

-- name: insert_run(id, rule, automatic)!
INSERT INTO rule_runs (id, rule_id, automatic) VALUES (:id, :rule, :automatic);

-- name: count_run(id, documents, deliveries, conflicts)!
UPDATE rule_runs SET documents = documents + :documents, deliveries = deliveries + :deliveries,
                     conflicts = conflicts || ARRAY(SELECT text FROM unnest(:conflicts::text[]) AS text WHERE text <> ALL (conflicts))
WHERE id = :id;

-- name: recipients(owner, ids)
-- Recipients that a rule can send documents to. The addresses of chats and extensions are secrets.
SELECT id, channel, CASE WHEN channel IN ('webhook', 'mail') THEN address ELSE '…' || right(address, 4) END AS address, active FROM subscribers
WHERE owner_id = :owner AND NOT everybodys AND user_id IS NULL AND (:ids::uuid[] IS NULL OR id = ANY (:ids))
ORDER BY created_at, id;

-- name: sent(rule, documents)
SELECT document_id, subscriber_id FROM rule_deliveries WHERE rule_id = :rule AND document_id = ANY (:documents);

-- name: send(rule, documents, subscribers)
-- Writes one event for each document, with the recipients that did not get it from this rule before. It does not name the rule,
-- because limited members can read events of their documents, but no rules.
WITH wanted AS (
    SELECT * FROM unnest(:documents::uuid[], :subscribers::uuid[]) AS w (document, subscriber)
), new AS (
    INSERT INTO rule_deliveries (rule_id, document_id, subscriber_id)
    SELECT :rule, w.document, s.id FROM wanted w JOIN subscribers s ON s.id = w.subscriber FOR KEY SHARE OF s
    ON CONFLICT (rule_id, document_id, subscriber_id) DO NOTHING RETURNING document_id, subscriber_id
), put AS (
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    SELECT d.process_id, 'matched', d.owner_id, d.id, jsonb_build_object('rule_id', :rule::uuid, 'recipients', n.recipients)
    FROM (SELECT document_id, jsonb_agg(subscriber_id ORDER BY subscriber_id) AS recipients FROM new GROUP BY document_id) AS n
    JOIN documents d ON d.id = n.document_id ORDER BY d.id
)
SELECT count(*) AS number FROM new;

-- name: runs(owner, rule, after_at, after_id, most)
SELECT r.id, r.rule_id, r.automatic, r.documents, r.deliveries, r.conflicts, r.created_at, r.undone_at
FROM rule_runs r JOIN rules ON rules.id = r.rule_id
WHERE rules.owner_id = :owner AND r.rule_id = :rule
  AND (:after_id::uuid IS NULL OR (r.created_at, r.id) < (:after_at::timestamptz, :after_id::uuid))
ORDER BY r.created_at DESC, r.id DESC LIMIT :most;

-- name: run_to_undo(owner, rule, run)
-- The given run, or the last one that is not undone.
SELECT r.id, r.documents, r.deliveries FROM rule_runs r JOIN rules ON rules.id = r.rule_id
WHERE rules.owner_id = :owner AND r.rule_id = :rule AND (r.id = :run OR :run::uuid IS NULL AND r.undone_at IS NULL AND r.documents > 0)
ORDER BY r.created_at DESC, r.id DESC LIMIT 1;

-- name: mark_run_undone(run)
UPDATE rule_runs SET undone_at = coalesce(undone_at, clock_timestamp()) WHERE id = :run
RETURNING id, rule_id, automatic, documents, deliveries, conflicts, created_at, undone_at;

-- name: show_run(run)
SELECT id, rule_id, automatic, documents, deliveries, conflicts, created_at, undone_at FROM rule_runs WHERE id = :run;

-- name: tag_spellings(owner, names)
-- The tags with these names, as they are written.
SELECT name FROM tags WHERE owner_id = :owner AND lower(name) IN (SELECT lower(n) FROM unnest(:names::text[]) AS n);
