-- How many documents of an owner have each kind, language, collection and tag: kept with every change, because counting all
-- documents for each page takes seconds in large accounts.
-- compatible-from: 40

-- Changes of the numbers: a number is the sum of its rows, as in `text_totals`. Kinds and languages are counted without older
-- versions. There is no foreign key, because it would lock the owner.
CREATE TABLE document_counts (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_id  uuid NOT NULL,
    name      text NOT NULL CHECK (name IN ('kind', 'language', 'collection', 'tag')),
    value     text NOT NULL,
    documents bigint NOT NULL
);

COMMENT ON COLUMN document_counts.value IS 'The kind or language, or the id of the collection or tag.';

CREATE INDEX document_counts_value ON document_counts (owner_id, name, value);

-- What a document counts as, apart from its tags.
CREATE FUNCTION counted_values(given documents) RETURNS TABLE (owner_id uuid, name text, value text) LANGUAGE sql IMMUTABLE AS $$
    SELECT given.owner_id, v.name, v.value
    FROM (VALUES ('kind', CASE WHEN NOT given.superseded THEN given.kind END),
                 ('language', CASE WHEN NOT given.superseded THEN given.language END),
                 ('collection', given.collection_id::text)) AS v (name, value)
    WHERE given.deleted_at IS NULL AND v.value IS NOT NULL
$$;

-- Replaces the rows of a number by their sum. Rows that another transaction is replacing are left to it.
CREATE FUNCTION sum_counts(of_owner uuid, of_name text, of_value text) RETURNS void LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM document_counts WHERE id IN (
            SELECT id FROM document_counts WHERE owner_id = of_owner AND name = of_name AND value = of_value FOR UPDATE SKIP LOCKED)
        RETURNING documents
    )
    INSERT INTO document_counts (owner_id, name, value, documents)
    SELECT of_owner, of_name, of_value, sum(documents) FROM gone HAVING sum(documents) <> 0
$$;

-- Adds changes to the numbers. A number is summed up after ten changes, on average.
CREATE FUNCTION change_counts(owners uuid[], names text[], of_values text[], changes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    made document_counts;
BEGIN
    FOR made IN
        INSERT INTO document_counts (owner_id, name, value, documents)
        SELECT c.owner_id, c.name, c.value, sum(c.change) FROM unnest(owners, names, of_values, changes) AS c (owner_id, name, value, change)
        WHERE EXISTS (SELECT FROM owners o WHERE o.id = c.owner_id) GROUP BY 1, 2, 3 HAVING sum(c.change) <> 0 ORDER BY 1, 2, 3
        RETURNING *
    LOOP
        IF made.id % 10 = 0 THEN
            PERFORM sum_counts(made.owner_id, made.name, made.value);
        END IF;
    END LOOP;
END $$;

-- The tags of a document change with it only if it moves to or from the trash, or to another owner, or is deleted.
CREATE FUNCTION counts_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM change_counts(array_agg(c.owner_id), array_agg(c.name), array_agg(c.value), array_agg(c.change)) FROM (
        SELECT v.*, -1 AS change FROM counted_values(OLD) AS v WHERE TG_OP <> 'INSERT'
        UNION ALL
        SELECT v.*, 1 FROM counted_values(NEW) AS v WHERE TG_OP <> 'DELETE'
        UNION ALL
        SELECT s.owner_id, 'tag', t.tag_id::text, s.change
        FROM (VALUES (OLD.id, OLD.owner_id, OLD.deleted_at, -1), (NEW.id, NEW.owner_id, NEW.deleted_at, 1))
            AS s (document_id, owner_id, deleted_at, change)
        JOIN document_tags t ON t.document_id = s.document_id
        WHERE s.deleted_at IS NULL AND (OLD.owner_id, OLD.deleted_at IS NULL) IS DISTINCT FROM (NEW.owner_id, NEW.deleted_at IS NULL)) AS c
    HAVING count(*) > 0;
    RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER counts_follow_insert AFTER INSERT ON documents FOR EACH ROW EXECUTE FUNCTION counts_follow_document();
CREATE TRIGGER counts_follow AFTER UPDATE OF kind, language, collection_id, deleted_at, superseded, owner_id ON documents FOR EACH ROW
    WHEN ((OLD.kind, OLD.language, OLD.collection_id, OLD.deleted_at IS NULL, OLD.superseded, OLD.owner_id)
          IS DISTINCT FROM (NEW.kind, NEW.language, NEW.collection_id, NEW.deleted_at IS NULL, NEW.superseded, NEW.owner_id))
    EXECUTE FUNCTION counts_follow_document();
-- Before, because the tags of the document are deleted with it.
CREATE TRIGGER counts_follow_delete BEFORE DELETE ON documents FOR EACH ROW EXECUTE FUNCTION counts_follow_document();

-- The documents that were given a tag, or lost one. A document that was deleted has been counted before.
CREATE FUNCTION counts_follow_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM change_counts(array_agg(c.owner_id), array_agg('tag'::text), array_agg(c.value), array_agg(c.change)) FROM (
        SELECT d.owner_id, t.tag_id::text AS value, CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END AS change
        FROM changed t JOIN documents d ON d.id = t.document_id WHERE d.deleted_at IS NULL GROUP BY 1, 2) AS c
    HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER counts_follow_tagging AFTER INSERT ON document_tags
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION counts_follow_tags();
CREATE TRIGGER counts_follow_untagging AFTER DELETE ON document_tags
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION counts_follow_tags();

-- A deleted owner has no numbers. Its documents are deleted after it, which changes no numbers any more.
CREATE FUNCTION counts_follow_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM document_counts WHERE owner_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER counts_follow AFTER DELETE ON owners FOR EACH ROW EXECUTE FUNCTION counts_follow_owner();

INSERT INTO document_counts (owner_id, name, value, documents)
SELECT c.owner_id, c.name, c.value, count(*) FROM (
    SELECT v.* FROM documents d CROSS JOIN LATERAL counted_values(d) AS v
    UNION ALL
    SELECT d.owner_id, 'tag', t.tag_id::text FROM document_tags t JOIN documents d ON d.id = t.document_id WHERE d.deleted_at IS NULL
) AS c GROUP BY 1, 2, 3;

CREATE OR REPLACE FUNCTION renew_limited_views() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    base CONSTANT text := current_setting('search_path');
    columns text;
    one record;
BEGIN
    DROP SCHEMA IF EXISTS limited CASCADE;
    CREATE SCHEMA limited;
    -- A document is in one collection. An older version is shown only if the newest one is shown, too. The document with the same
    -- content is named only if it is shown.
    SELECT string_agg(CASE attname WHEN 'duplicate_of' THEN
        'CASE WHEN EXISTS (SELECT FROM documents o WHERE o.id = d.duplicate_of AND o.collection_id = ANY (seen_collections()))
         THEN d.duplicate_of END AS duplicate_of' ELSE format('d.%I', attname) END, ', ' ORDER BY attnum)
    INTO columns FROM pg_attribute WHERE attrelid = 'documents'::regclass AND attnum > 0 AND NOT attisdropped;
    EXECUTE format('CREATE VIEW limited.documents AS SELECT %s FROM documents d WHERE d.collection_id = ANY (seen_collections())
        AND (NOT d.superseded OR EXISTS (
            SELECT FROM documents n WHERE n.family_id = d.family_id AND NOT n.superseded AND n.deleted_at IS NULL
              AND n.collection_id = ANY (seen_collections())))', columns);
    FOR one IN SELECT * FROM (VALUES
        -- Rows of documents.
        (1, 'artifacts', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'pages', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'figures', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'chunks', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'chunk_embeddings', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'document_passages', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'vocabulary', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'facts', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'document_fields', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'document_tags', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'document_changes', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'document_parts', 'document_id IN (SELECT id FROM limited.documents) AND parent_id IN (SELECT id FROM limited.documents)'),
        (1, 'highlights', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'reading_positions', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'replaced_models', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'analyses', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'conversions', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'corrections', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'jobs', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'events', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'notifications', 'document_id IN (SELECT id FROM limited.documents)'),
        (1, 'connections', 'source_document IN (SELECT id FROM limited.documents) AND target_document IN (SELECT id FROM limited.documents)'),
        -- Looked up row by row: a search reads few of many rows, by their index of words, and a join would read all documents first.
        (1, 'chunk_words', 'EXISTS (SELECT FROM limited.documents d WHERE d.id = chunk_words.document_id) IS TRUE'),
        (1, 'document_words', 'EXISTS (SELECT FROM limited.documents d WHERE d.id = document_words.document_id) IS TRUE'),
        -- An upload belongs to the member who began it, until it has a document.
        (1, 'uploads', 'document_id IN (SELECT id FROM limited.documents) OR given ->> ''by'' = current_viewer()::text'),
        -- Rows of such rows.
        (2, 'chunk_concepts', 'chunk_id IN (SELECT id FROM limited.chunks)'),
        (2, 'tags', 'id IN (SELECT tag_id FROM limited.document_tags)'),
        (2, 'fields', 'id IN (SELECT field_id FROM limited.document_fields)'),
        (2, 'connection_verdicts', 'digest IN (SELECT digest FROM limited.connections)'),
        (2, 'segments', 'analysis_id IN (SELECT id FROM limited.analyses)'),
        (2, 'analysis_results', 'analysis_id IN (SELECT id FROM limited.analyses)'),
        (2, 'analysis_items', 'analysis_id IN (SELECT id FROM limited.analyses)'),
        (2, 'revisions', 'conversion_id IN (SELECT id FROM limited.conversions)'),
        (2, 'conversion_files', 'conversion_id IN (SELECT id FROM limited.conversions)'),
        (2, 'mapping_texts', '(owner_id, sha256) IN (SELECT owner_id, mapping_sha256 FROM limited.conversions)'),
        (2, 'job_stages', 'job_id IN (SELECT id FROM limited.jobs)'),
        (2, 'job_traces', 'job_id IN (SELECT id FROM limited.jobs)'),
        (3, 'tag_embeddings', 'tag_id IN (SELECT id FROM limited.tags)'),
        -- Rows of the viewer, and rows that everybody has. A thread disappears if it quotes a document that is no longer shown.
        (1, 'collections', 'id = ANY (seen_collections())'),
        (1, 'prompts', 'owner_id IS NULL'),
        (2, 'prompt_versions', 'prompt_id IN (SELECT id FROM limited.prompts)'),
        (1, 'threads', 'viewer_id = current_viewer() AND NOT EXISTS (
             SELECT FROM turns u CROSS JOIN jsonb_array_elements(u.citations) AS c WHERE u.thread_id = threads.id
               AND NOT EXISTS (SELECT FROM limited.documents d WHERE d.id = (c ->> ''document_id'')::uuid))'),
        (2, 'turns', 'thread_id IN (SELECT id FROM limited.threads)'),
        (1, 'group_members', 'user_id = current_viewer()'),
        (2, 'groups', 'id IN (SELECT group_id FROM limited.group_members)'),
        (2, 'grants', 'user_id = current_viewer() OR group_id IN (SELECT group_id FROM limited.group_members)'),
        -- What only members see who see everything.
        (1, 'views', 'false'), (1, 'rules', 'false'), (1, 'rule_runs', 'false'), (1, 'rule_deliveries', 'false'), (1, 'sources', 'false'), (1, 'source_files', 'false'),
        (1, 'imports', 'false'), (1, 'mappings', 'false'), (1, 'conversion_batches', 'false'), (1, 'shares', 'false'),
        (1, 'subscribers', 'false'), (1, 'requesters', 'false'), (1, 'outgoing', 'false'), (1, 'deliveries', 'false')
    ) AS v (level, name, condition) ORDER BY level, name LOOP
        EXECUTE format('CREATE VIEW limited.%I AS SELECT * FROM %I WHERE %s', one.name, one.name, one.condition);
    END LOOP;
    -- Totals are computed from the documents that are shown.
    CREATE VIEW limited.owner_usage AS
        SELECT owner_id, sum(bytes)::bigint AS bytes, count(*)::integer AS documents FROM limited.documents GROUP BY owner_id;
    CREATE VIEW limited.text_totals AS
        SELECT 0::bigint AS id, owner_id, config, passages::bigint AS chunks, words FROM limited.document_passages WHERE owner_id IS NOT NULL;
    CREATE VIEW limited.document_counts AS
        SELECT 0::bigint AS id, d.owner_id, v.name, v.value, 1::bigint AS documents FROM limited.documents d
        CROSS JOIN LATERAL (VALUES ('kind', CASE WHEN NOT d.superseded THEN d.kind END),
                                   ('language', CASE WHEN NOT d.superseded THEN d.language END),
                                   ('collection', d.collection_id::text)) AS v (name, value)
        WHERE d.deleted_at IS NULL AND v.value IS NOT NULL
        UNION ALL
        SELECT 0, d.owner_id, 'tag', t.tag_id::text, 1 FROM limited.document_tags t JOIN limited.documents d ON d.id = t.document_id
        WHERE d.deleted_at IS NULL;
    -- Functions of a row, and views, again for the rows that are shown.
    EXECUTE format('CREATE FUNCTION limited.page_of(chunk limited.chunks, place integer) RETURNS integer LANGUAGE sql STABLE AS %L',
                   (SELECT prosrc FROM pg_proc WHERE proname = 'page_of' AND pronamespace = current_schema()::regnamespace));
    CREATE FUNCTION limited.segment_file(segment limited.segments) RETURNS text LANGUAGE sql IMMUTABLE AS
        'SELECT ''segment:'' || segment.context_first || ''-'' || segment.last';
    FOR one IN SELECT relname AS name, pg_get_viewdef(oid) AS definition FROM pg_class
               WHERE relnamespace = current_schema()::regnamespace AND relkind = 'v' AND relname <> 'job_waiting' ORDER BY relname LOOP
        PERFORM set_config('search_path', 'limited, ' || base, true);
        EXECUTE format('CREATE VIEW limited.%I AS %s', one.name, one.definition);
        PERFORM set_config('search_path', base, true);
    END LOOP;
END $$;

SELECT renew_limited_views();
