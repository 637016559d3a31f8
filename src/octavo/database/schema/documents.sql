-- documents

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
    edited               text[] NOT NULL DEFAULT '{}',
    described            text[] NOT NULL DEFAULT '{}',
    described_by         text,
    family_id            uuid NOT NULL,
    version              integer NOT NULL DEFAULT 1 CHECK (version > 0),
    superseded           boolean NOT NULL DEFAULT false
);

COMMENT ON COLUMN documents.process_id IS 'The job that processes it; its state is this document''s state.';
COMMENT ON COLUMN documents.revision IS 'The revision that is read; 0 while there is none.';
COMMENT ON COLUMN documents.last_revision IS 'The last revision that was begun.';
COMMENT ON COLUMN documents.deleted_at IS 'Set: it is in the trash.';
COMMENT ON COLUMN documents.edited IS 'Fields that a person wrote or emptied; nothing else ever changes them.';
COMMENT ON COLUMN documents.described IS 'Fields that neither a person nor the file gave; the next description may replace them.';
COMMENT ON COLUMN documents.described_by IS 'Who described it: `local`, or `provider:model`.';
COMMENT ON COLUMN documents.family_id IS 'The same for all versions; the id of the first, which may be gone.';
COMMENT ON COLUMN documents.superseded IS 'There is a newer version, and not in the trash.';

CREATE INDEX documents_owner_created ON documents (owner_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX documents_owner_content ON documents (owner_id, sha256);
CREATE INDEX documents_owner_status ON documents (owner_id, status, created_at) WHERE deleted_at IS NULL AND status <> 'completed';
CREATE INDEX documents_trash ON documents (owner_id, deleted_at, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX documents_collection ON documents (collection_id) WHERE collection_id IS NOT NULL;
CREATE INDEX documents_duplicate ON documents (duplicate_of) WHERE duplicate_of IS NOT NULL;
CREATE INDEX documents_process ON documents (process_id);
CREATE INDEX documents_owner_title ON documents (owner_id, lower(coalesce(nullif(title, ''), filename)), id)
    WHERE deleted_at IS NULL;
CREATE INDEX documents_need_somebody ON documents (owner_id, created_at, id)
    WHERE deleted_at IS NULL AND status = 'completed' AND (needs_classification OR quality IN ('partial', 'empty'));
CREATE INDEX documents_stored_only ON documents (owner_id, created_at, id)
    WHERE deleted_at IS NULL AND quality = 'stored_only';
CREATE UNIQUE INDEX documents_version ON documents (family_id, version);
CREATE INDEX documents_superseded ON documents (owner_id) WHERE superseded AND deleted_at IS NULL;

CREATE TABLE document_tags (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    tag_id      uuid NOT NULL REFERENCES tags ON DELETE CASCADE,
    made_by     text,
    PRIMARY KEY (document_id, tag_id)
);

COMMENT ON COLUMN document_tags.made_by IS 'NULL for a tag that a person gave.';

CREATE INDEX document_tags_tag ON document_tags (tag_id);

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
CREATE INDEX artifacts_page_pictures ON artifacts (created_at) WHERE kind = 'page_picture';

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

-- A document is as its job is, in the same transaction. Once its text is there in pieces it can be read, cited and found,
-- and then a job that fails leaves it complete: what it lacks is its description.
CREATE FUNCTION follow_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    readable boolean := NEW.status IN ('failed', 'dead_letter') AND EXISTS (
        SELECT FROM job_stages WHERE job_id = NEW.id AND stage = 'chunked');
BEGIN
    -- A dead letter that is discarded changes nothing about its document.
    UPDATE documents d SET updated_at = clock_timestamp(),
        needs_classification = readable OR kept.as_it_is,
        status = CASE
            WHEN NEW.status = 'complete' OR readable OR kept.as_it_is THEN 'completed'
            WHEN NEW.status IN ('failed', 'dead_letter', 'cancelled') THEN 'failed'
            ELSE 'pending' END
    FROM (SELECT id, NEW.status = 'cancelled' AND needs_classification AS as_it_is
          FROM documents WHERE process_id = NEW.id) AS kept
    WHERE d.id = kept.id;
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
    bookmarks   jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (document_id, revision, number)
);

COMMENT ON COLUMN pages.bookmarks IS 'What begins here by the file''s own table of contents and has no heading in the text, each as [level, title].';

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
    seconds      real CHECK (seconds >= 0),
    boxes        jsonb NOT NULL DEFAULT '[]',
    UNIQUE (document_id, revision, index)
);

COMMENT ON COLUMN chunks.char_start IS 'In characters of the markdown of the same revision.';
COMMENT ON COLUMN chunks.seconds IS 'Where in a recording the passage begins; NULL for what was not spoken.';
COMMENT ON COLUMN chunks.boxes IS 'Places on pages, each as [page, left, top, right, bottom] in points from the upper left corner.';

CREATE TABLE chunk_concepts (
    chunk_id   uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    concept    text NOT NULL,
    importance real NOT NULL,
    PRIMARY KEY (chunk_id, concept)
);
CREATE INDEX chunk_concepts_concept ON chunk_concepts (lower(concept));

-- Who is alone is a family, too.
CREATE FUNCTION begin_family() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.family_id := coalesce(NEW.family_id, NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER documents_begin_family BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION begin_family();

-- Which version stands for a family: the newest that is not in the trash. Whoever changes that holds the whole family.
CREATE FUNCTION settle_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents d SET superseded = NOT d.superseded
    WHERE d.family_id = coalesce(NEW.family_id, OLD.family_id) AND d.superseded <> EXISTS (
        SELECT FROM documents newer
        WHERE newer.family_id = d.family_id AND newer.version > d.version AND newer.deleted_at IS NULL);
    RETURN NULL;
END $$;
CREATE TRIGGER documents_version_came AFTER INSERT ON documents FOR EACH ROW
    WHEN (NEW.version > 1) EXECUTE FUNCTION settle_versions();
CREATE TRIGGER documents_version_moved AFTER UPDATE OF deleted_at ON documents FOR EACH ROW
    WHEN ((OLD.deleted_at IS NULL) <> (NEW.deleted_at IS NULL)) EXECUTE FUNCTION settle_versions();
CREATE TRIGGER documents_version_went AFTER DELETE ON documents FOR EACH ROW EXECUTE FUNCTION settle_versions();
