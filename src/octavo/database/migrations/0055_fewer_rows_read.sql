-- Pages no longer read all jobs to count the unfinished ones of an account, and the search page no longer reads all documents to list
-- their source types.
-- compatible-from: 40

-- Jobs that are not finished yet. Each part reads an index that contains few other jobs; an index for all three would change with each
-- step of each job.
CREATE VIEW unfinished_jobs AS
SELECT id, kind, owner_id, document_id, status, priority, created_at FROM jobs WHERE status = 'queued'
UNION ALL
SELECT id, kind, owner_id, document_id, status, priority, created_at FROM jobs WHERE status = 'processing'
UNION ALL
SELECT id, kind, owner_id, document_id, status, priority, created_at FROM jobs WHERE status = 'paused';

-- squawk-ignore ban-drop-constraint
ALTER TABLE document_counts DROP CONSTRAINT document_counts_name_check;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE document_counts ADD CONSTRAINT document_counts_name_check CHECK (name IN ('kind', 'language', 'source_type', 'collection', 'tag'));

COMMENT ON COLUMN document_counts.value IS 'The kind, language or source type, or the id of the collection or tag.';

CREATE OR REPLACE FUNCTION counted_values(given documents) RETURNS TABLE (owner_id uuid, name text, value text) LANGUAGE sql IMMUTABLE AS $$
    SELECT given.owner_id, v.name, v.value
    FROM (VALUES ('kind', CASE WHEN NOT given.superseded THEN given.kind END),
                 ('language', CASE WHEN NOT given.superseded THEN given.language END),
                 ('source_type', given.source_type),
                 ('collection', given.collection_id::text)) AS v (name, value)
    WHERE given.deleted_at IS NULL AND v.value IS NOT NULL
$$;

CREATE OR REPLACE TRIGGER counts_follow AFTER UPDATE OF kind, language, source_type, collection_id, deleted_at, superseded, owner_id
ON documents FOR EACH ROW
    WHEN ((OLD.kind, OLD.language, OLD.source_type, OLD.collection_id, OLD.deleted_at IS NULL, OLD.superseded, OLD.owner_id)
          IS DISTINCT FROM (NEW.kind, NEW.language, NEW.source_type, NEW.collection_id, NEW.deleted_at IS NULL, NEW.superseded, NEW.owner_id))
    EXECUTE FUNCTION counts_follow_document();

INSERT INTO document_counts (owner_id, name, value, documents)
SELECT owner_id, 'source_type', source_type, count(*) FROM documents WHERE deleted_at IS NULL AND source_type IS NOT NULL GROUP BY 1, 3;

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
                                   ('source_type', d.source_type),
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
