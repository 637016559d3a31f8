-- Members who see only some collections: groups, grants, and the views that such members read.
-- compatible-from: 40

ALTER TABLE memberships ADD COLUMN limited boolean NOT NULL DEFAULT false;
-- The tables are small: one row per person and owner.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE memberships ADD CONSTRAINT memberships_limited CHECK (NOT limited OR role <> 'owner');
COMMENT ON COLUMN memberships.limited IS 'The member sees only the documents in collections that were granted to them.';

ALTER TABLE invitations ADD COLUMN limited boolean NOT NULL DEFAULT false;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE invitations ADD CONSTRAINT invitations_limited CHECK (NOT limited OR role <> 'owner');

CREATE TABLE groups (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE UNIQUE INDEX groups_name ON groups (owner_id, lower(name));

CREATE TABLE group_members (
    group_id uuid NOT NULL REFERENCES groups ON DELETE CASCADE,
    owner_id uuid NOT NULL,
    user_id  uuid NOT NULL,
    PRIMARY KEY (group_id, user_id),
    FOREIGN KEY (owner_id, user_id) REFERENCES memberships ON DELETE CASCADE
);

CREATE INDEX group_members_person ON group_members (owner_id, user_id);

CREATE TABLE grants (
    id            uuid PRIMARY KEY,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    user_id       uuid,
    group_id      uuid REFERENCES groups ON DELETE CASCADE,
    access        text NOT NULL CHECK (access IN ('read', 'write')),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    FOREIGN KEY (owner_id, user_id) REFERENCES memberships ON DELETE CASCADE,
    CONSTRAINT grants_one_receiver CHECK ((user_id IS NULL) <> (group_id IS NULL)),
    CONSTRAINT grants_once UNIQUE NULLS NOT DISTINCT (collection_id, user_id, group_id)
);

COMMENT ON TABLE grants IS 'Collections that a limited member or a group may read, or also change. They mean nothing for members who see everything.';

CREATE INDEX grants_person ON grants (owner_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX grants_group ON grants (group_id) WHERE group_id IS NOT NULL;

-- The collections that a member may read or, if `wanted` is write, change.
CREATE FUNCTION granted_collections(of_owner uuid, of_user uuid, wanted text) RETURNS uuid[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(DISTINCT g.collection_id), '{}') FROM grants g
    WHERE g.owner_id = of_owner AND (wanted = 'read' OR g.access = wanted)
      AND (g.user_id = of_user OR g.group_id IN (
          SELECT m.group_id FROM group_members m WHERE m.owner_id = of_owner AND m.user_id = of_user))
$$;

-- The limited member for whom the transaction reads, and the collections that this member sees. Without a limited member both
-- are NULL, so that the views of the schema `limited` are empty.
CREATE FUNCTION current_viewer() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE RETURN
    nullif(current_setting('octavo.viewer', true), '')::uuid;
CREATE FUNCTION seen_collections() RETURNS uuid[] LANGUAGE sql STABLE PARALLEL SAFE RETURN
    nullif(current_setting('octavo.collections', true), '')::uuid[];

-- From now on, until the end of the transaction, every statement reads the views of the schema `limited` instead of the tables
-- with the same names.
CREATE FUNCTION limit_to(of_owner uuid, of_user uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('octavo.viewer', of_user::text, true),
            set_config('octavo.collections', granted_collections(of_owner, of_user, 'read')::text, true),
            set_config('search_path', 'limited, ' || current_setting('search_path'), true);
END $$;

-- A limited member changes documents only in collections that they may change, and puts documents only into these. The transaction
-- of such a change names the member (`octavo.writer`), and sees all tables.
CREATE FUNCTION refuse_other_collections() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.collection_id = ANY (granted_collections(NEW.owner_id, current_setting('octavo.writer')::uuid, 'write'))) IS NOT TRUE THEN
        RAISE EXCEPTION 'the member may not change documents of this collection' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER documents_stay_granted BEFORE UPDATE OF collection_id, deleted_at ON documents FOR EACH ROW
    WHEN (current_setting('octavo.writer', true) <> '') EXECUTE FUNCTION refuse_other_collections();

-- Threads of a limited member. Other members see them, too; the limited member sees only these.
-- squawk-ignore adding-foreign-key-constraint
ALTER TABLE threads ADD COLUMN viewer_id uuid REFERENCES users ON DELETE CASCADE;
ALTER TABLE threads ALTER COLUMN viewer_id SET DEFAULT current_viewer();
COMMENT ON COLUMN threads.viewer_id IS 'The limited member who asked; NULL for others.';
CREATE INDEX threads_viewer ON threads (viewer_id) WHERE viewer_id IS NOT NULL;

-- Creates the views again. A migration that adds a table, or changes the columns of one, ends with `SELECT renew_limited_views()`.
-- A test lists the tables that are neither here nor known to be without rows about documents.
CREATE FUNCTION renew_limited_views() RETURNS void LANGUAGE plpgsql AS $$
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
        (1, 'views', 'false'), (1, 'rules', 'false'), (1, 'rule_runs', 'false'), (1, 'sources', 'false'), (1, 'source_files', 'false'),
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
