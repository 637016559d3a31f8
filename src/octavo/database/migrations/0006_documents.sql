-- Documents: how bytes come in, what is kept of them, and what was made from them.

-- Objects of the bucket that rows refer to. What lies in the bucket and is not here belongs to nobody.
CREATE TABLE objects (
    key        text PRIMARY KEY,
    bytes      bigint NOT NULL CHECK (bytes >= 0),
    sha256     bytea NOT NULL CHECK (length(sha256) = 32),
    refs       integer NOT NULL DEFAULT 0 CHECK (refs >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX objects_unused ON objects (created_at) WHERE refs = 0;

CREATE TABLE collections (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX collections_name ON collections (owner_id, lower(name));

CREATE TABLE tags (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX tags_name ON tags (owner_id, lower(name));

CREATE TABLE documents (
    id                   uuid PRIMARY KEY,
    owner_id             uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    process_id           uuid NOT NULL,
    status               text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'completed', 'failed')),
    title                text,
    filename             text NOT NULL,
    content_type         text NOT NULL,
    source_type          text NOT NULL,
    source_url           text,
    sha256               bytea NOT NULL CHECK (length(sha256) = 32),
    bytes                bigint NOT NULL CHECK (bytes >= 0),
    quality              text CHECK (quality IN ('full', 'partial', 'ocr', 'stored_only', 'empty')),
    revision             integer NOT NULL DEFAULT 0,
    last_revision        integer NOT NULL DEFAULT 0 CHECK (last_revision >= revision),
    text_ready           boolean NOT NULL DEFAULT false,
    embeddings_ready     boolean NOT NULL DEFAULT false,
    needs_classification boolean NOT NULL DEFAULT false,
    page_count           integer,
    word_count           integer,
    author               text,
    language             text,
    document_date        date,
    summary              text,
    metadata             jsonb NOT NULL DEFAULT '{}',
    collection_id        uuid REFERENCES collections ON DELETE SET NULL,
    duplicate_of         uuid REFERENCES documents ON DELETE SET NULL,
    download_count       integer NOT NULL DEFAULT 0,
    first_downloaded_at  timestamptz,
    created_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    deleted_at           timestamptz,
    expires_at           timestamptz
);

COMMENT ON COLUMN documents.process_id IS 'The job that processes it; its state is this document''s state.';
COMMENT ON COLUMN documents.revision IS 'The revision that is read; 0 while there is none.';
COMMENT ON COLUMN documents.last_revision IS 'The last revision that was begun.';
COMMENT ON COLUMN documents.deleted_at IS 'Set: it is in the trash.';

CREATE INDEX documents_owner_created ON documents (owner_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX documents_owner_content ON documents (owner_id, sha256);
CREATE INDEX documents_owner_status ON documents (owner_id, status, created_at) WHERE deleted_at IS NULL AND status <> 'completed';
CREATE INDEX documents_trash ON documents (owner_id, deleted_at, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX documents_collection ON documents (collection_id) WHERE collection_id IS NOT NULL;
CREATE INDEX documents_duplicate ON documents (duplicate_of) WHERE duplicate_of IS NOT NULL;
CREATE INDEX documents_process ON documents (process_id);

CREATE TABLE document_tags (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    tag_id      uuid NOT NULL REFERENCES tags ON DELETE CASCADE,
    PRIMARY KEY (document_id, tag_id)
);
CREATE INDEX document_tags_tag ON document_tags (tag_id);

-- One attempt to bring bytes in. Its document exists only after it was finalized.
CREATE TABLE uploads (
    id             uuid PRIMARY KEY,
    owner_id       uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id    uuid NOT NULL,
    process_id     uuid NOT NULL,
    state          text NOT NULL DEFAULT 'pending'
                   CHECK (state IN ('pending', 'uploaded', 'deduplicated', 'rejected', 'failed', 'deleted')),
    is_canonical   boolean NOT NULL DEFAULT false,
    duplicates     text NOT NULL CHECK (duplicates IN ('reuse', 'new', 'reject')),
    filename       text NOT NULL,
    content_type   text NOT NULL,
    source_type    text NOT NULL,
    source_url     text,
    given          jsonb NOT NULL DEFAULT '{}',
    claimed_bytes  bigint CHECK (claimed_bytes >= 0),
    claimed_sha256 bytea CHECK (length(claimed_sha256) = 32),
    incoming_key   text,
    object_key     text,
    bytes          bigint CHECK (bytes >= 0),
    sha256         bytea CHECK (length(sha256) = 32),
    error_code     text,
    error_message  text,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    received_at    timestamptz,
    finalized_at   timestamptz,
    CONSTRAINT canonical_is_uploaded CHECK (NOT is_canonical OR state = 'uploaded'),
    CONSTRAINT error_when_refused CHECK ((error_code IS NOT NULL) = (state IN ('rejected', 'failed'))),
    CONSTRAINT bytes_when_kept CHECK (state NOT IN ('uploaded', 'deduplicated') OR (sha256 IS NOT NULL AND bytes > 0))
);

COMMENT ON COLUMN uploads.incoming_key IS 'Where a presigned link lets the client write; never read after finalize.';
COMMENT ON COLUMN uploads.object_key IS 'Where the received bytes are, written by the server alone.';
COMMENT ON COLUMN uploads.given IS 'What came with it: title, attribution, tags.';

-- Exactly one canonical upload for each content of an owner; a pending one claims nothing.
CREATE UNIQUE INDEX uploads_canonical ON uploads (owner_id, sha256) WHERE is_canonical;
CREATE INDEX uploads_pending ON uploads (owner_id, created_at) WHERE state = 'pending';
CREATE INDEX uploads_document ON uploads (document_id);

-- What is kept of a document: its source, its markdown, and what else is made from it.
CREATE TABLE artifacts (
    id           uuid PRIMARY KEY,
    document_id  uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    job_id       uuid,
    kind         text NOT NULL,
    name         text NOT NULL DEFAULT '',
    revision     integer NOT NULL DEFAULT 0,
    key          text NOT NULL REFERENCES objects,
    content_type text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT engine_now(),
    UNIQUE (document_id, revision, kind, name)
);

COMMENT ON COLUMN artifacts.revision IS '0 for what belongs to the document itself, as its source.';

CREATE INDEX artifacts_key ON artifacts (key);

-- Objects count who refers to them, so that twins can share one.
CREATE FUNCTION count_references() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE objects SET refs = refs + 1 WHERE key = NEW.key;
    ELSE
        UPDATE objects SET refs = refs - 1 WHERE key = OLD.key;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER artifacts_refer AFTER INSERT OR DELETE ON artifacts
    FOR EACH ROW EXECUTE FUNCTION count_references();

-- How much an owner keeps, also in the trash.
CREATE TABLE owner_usage (
    owner_id  uuid PRIMARY KEY REFERENCES owners ON DELETE CASCADE,
    bytes     bigint NOT NULL CHECK (bytes >= 0),
    documents integer NOT NULL CHECK (documents >= 0)
);

CREATE FUNCTION count_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('DELETE', 'UPDATE') THEN
        UPDATE owner_usage SET bytes = bytes - OLD.bytes, documents = documents - 1 WHERE owner_id = OLD.owner_id;
    END IF;
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        INSERT INTO owner_usage (owner_id, bytes, documents) VALUES (NEW.owner_id, NEW.bytes, 1)
        ON CONFLICT (owner_id) DO UPDATE SET bytes = owner_usage.bytes + excluded.bytes, documents = owner_usage.documents + 1;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER documents_count AFTER INSERT OR DELETE OR UPDATE OF owner_id ON documents
    FOR EACH ROW EXECUTE FUNCTION count_usage();

-- Known before the first worker ever started, so that documents can come in; workers write here what they know.
INSERT INTO job_kinds (name, max_attempts, time_limit, limit_renewed_by_stage)
VALUES ('process_document', 3, interval '10 minutes', true);

-- A document is as its job is, in the same transaction.
CREATE FUNCTION follow_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents SET updated_at = clock_timestamp(), status = CASE
        WHEN NEW.status = 'complete' THEN 'completed'
        WHEN NEW.status IN ('failed', 'dead_letter', 'cancelled') THEN 'failed'
        ELSE 'pending' END
    WHERE process_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER document_follows AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind = 'process_document' AND OLD.status <> NEW.status) EXECUTE FUNCTION follow_job();

CREATE TABLE pages (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision    integer NOT NULL,
    number      integer NOT NULL CHECK (number > 0),
    label       text,
    char_start  integer NOT NULL,
    char_end    integer NOT NULL CHECK (char_end >= char_start),
    width       real,
    height      real,
    PRIMARY KEY (document_id, revision, number)
);

CREATE TABLE chunks (
    id           uuid PRIMARY KEY,
    document_id  uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision     integer NOT NULL,
    index        integer NOT NULL CHECK (index >= 0),
    content      text NOT NULL,
    char_start   integer NOT NULL,
    char_end     integer NOT NULL CHECK (char_end > char_start),
    page_from    integer,
    page_to      integer,
    heading_path text[] NOT NULL DEFAULT '{}',
    word_count   integer NOT NULL,
    themes       text[] NOT NULL DEFAULT '{}',
    tone         jsonb,
    importance   real,
    summary      text,
    made_by      text,
    UNIQUE (document_id, revision, index)
);

COMMENT ON COLUMN chunks.char_start IS 'In characters of the markdown of the same revision.';

CREATE TABLE chunk_concepts (
    chunk_id   uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    concept    text NOT NULL,
    importance real NOT NULL,
    PRIMARY KEY (chunk_id, concept)
);

-- What a browser collected before somebody signed in becomes that person's. A document whose content is there already
-- stays a document of its own and says whose twin it is.
CREATE FUNCTION merge_owner(visitor uuid, person uuid) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    moved integer;
BEGIN
    PERFORM FROM owners WHERE id IN (visitor, person) ORDER BY id FOR UPDATE;
    IF NOT EXISTS (SELECT FROM owners WHERE id = visitor AND kind = 'anonymous') THEN
        RAISE EXCEPTION 'owner % is not a visitor', visitor USING ERRCODE = 'check_violation';
    END IF;
    -- Jobs before documents, as a job that ends does it.
    PERFORM FROM jobs WHERE owner_id = visitor ORDER BY id FOR UPDATE;
    UPDATE documents d SET duplicate_of = twin.document_id
    FROM uploads u JOIN uploads twin ON twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical
    WHERE u.owner_id = visitor AND u.is_canonical AND d.id = u.document_id;
    UPDATE uploads u SET is_canonical = false
    WHERE owner_id = visitor AND is_canonical AND EXISTS (
        SELECT FROM uploads twin WHERE twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical);
    UPDATE uploads SET owner_id = person WHERE owner_id = visitor;
    -- Names that both used become one.
    UPDATE documents d SET collection_id = theirs.id
    FROM collections mine JOIN collections theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor AND d.collection_id = mine.id;
    DELETE FROM collections mine USING collections theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE collections SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO document_tags (document_id, tag_id)
    SELECT dt.document_id, theirs.id FROM document_tags dt
    JOIN tags mine ON mine.id = dt.tag_id JOIN tags theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor
    ON CONFLICT DO NOTHING;
    DELETE FROM tags mine USING tags theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE tags SET owner_id = person WHERE owner_id = visitor;
    UPDATE jobs j SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM jobs same WHERE same.owner_id = person AND same.kind = j.kind AND same.key = j.key)
        THEN format('%s:%s', j.key, j.id) ELSE j.key END
    WHERE owner_id = visitor;
    UPDATE documents SET owner_id = person, updated_at = clock_timestamp() WHERE owner_id = visitor;
    GET DIAGNOSTICS moved = ROW_COUNT;
    DELETE FROM sessions WHERE owner_id = visitor;
    DELETE FROM owners WHERE id = visitor;
    RETURN moved;
END $$;

-- Give a document all that was made of its finished twin: the objects are shared, the rows are its own.
CREATE FUNCTION copy_results(twin uuid, copy uuid, process uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := engine_now();
    from_revision integer;
BEGIN
    UPDATE documents d SET
        quality = t.quality, revision = 1, text_ready = t.text_ready, embeddings_ready = t.embeddings_ready,
        needs_classification = t.needs_classification, page_count = t.page_count, word_count = t.word_count,
        author = coalesce(d.author, t.author), language = t.language, document_date = t.document_date,
        summary = t.summary, metadata = t.metadata || d.metadata, title = coalesce(d.title, t.title),
        source_type = t.source_type, status = 'completed'
    FROM documents t WHERE d.id = copy AND t.id = twin;
    SELECT revision INTO from_revision FROM documents WHERE id = twin;
    INSERT INTO artifacts (id, document_id, job_id, kind, name, revision, key, content_type)
    SELECT gen_random_uuid(), copy, process, kind, name, 1, key, content_type
    FROM artifacts WHERE document_id = twin AND revision = from_revision AND revision > 0;
    INSERT INTO pages (document_id, revision, number, label, char_start, char_end, width, height)
    SELECT copy, 1, number, label, char_start, char_end, width, height
    FROM pages WHERE document_id = twin AND revision = from_revision;
    WITH copied AS (
        SELECT gen_random_uuid() AS new_id, c.* FROM chunks c WHERE document_id = twin AND revision = from_revision
    ), inserted AS (
        INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, page_from, page_to,
                            heading_path, word_count, themes, tone, importance, summary, made_by)
        SELECT new_id, copy, 1, index, content, char_start, char_end, page_from, page_to, heading_path, word_count, themes,
               tone, importance, summary, made_by FROM copied
    )
    INSERT INTO chunk_concepts (chunk_id, concept, importance)
    SELECT copied.new_id, k.concept, k.importance FROM chunk_concepts k JOIN copied ON copied.id = k.chunk_id;
    INSERT INTO jobs (id, kind, owner_id, document_id, key, virtual_time, status, max_attempts, admitted, output,
                      created_at, queued_at, completed_at)
    SELECT process, k.name, d.owner_id, d.id, format('process:%s:1', d.id), 0, 'complete', k.max_attempts, false,
           jsonb_build_object('reused', twin), at, at, at
    FROM documents d, job_kinds k WHERE d.id = copy AND k.name = 'process_document';
END $$;
