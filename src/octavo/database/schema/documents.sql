-- Documents with their objects, artifacts, pages and chunks, and with tags, collections and versions.

-- Objects in the bucket that rows refer to. An object in the bucket without a row is an orphan.
CREATE TABLE objects (
    key        text PRIMARY KEY,
    bytes      bigint NOT NULL CHECK (bytes >= 0),
    sha256     bytea NOT NULL CHECK (length(sha256) = 32),
    refs       integer NOT NULL DEFAULT 0 CHECK (refs >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX objects_unused ON objects (created_at) WHERE refs = 0;

-- While a backup copies the objects that it saw, their rows are kept, and with them the objects: only the keys of deleted rows are
-- removed from the bucket. The backup, or the daily sweep, deletes rows without references later.
CREATE FUNCTION keep_during_backup() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE WHEN pg_try_advisory_xact_lock_shared(209321987, 0) THEN OLD END;
END $$;
CREATE TRIGGER objects_are_kept BEFORE DELETE ON objects FOR EACH ROW EXECUTE FUNCTION keep_during_backup();

CREATE TABLE collections (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    keep_days  integer CHECK (keep_days > 0)
);

COMMENT ON COLUMN collections.keep_days IS 'Days after their last change until its documents go to the trash; NULL keeps them.';

CREATE UNIQUE INDEX collections_name ON collections (owner_id, lower(name));
CREATE INDEX collections_expire ON collections (id) WHERE keep_days IS NOT NULL;

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
    described_by         text,
    family_id            uuid NOT NULL,
    version              integer NOT NULL DEFAULT 1 CHECK (version > 0),
    superseded           boolean NOT NULL DEFAULT false
);

COMMENT ON COLUMN documents.process_id IS 'The job that processes it. The status of the document follows the status of this job.';
COMMENT ON COLUMN documents.revision IS 'The current revision; 0 while there is none.';
COMMENT ON COLUMN documents.last_revision IS 'The last revision that was started.';
COMMENT ON COLUMN documents.deleted_at IS 'Set while it is in the trash.';
COMMENT ON COLUMN documents.edited IS '`tags`, if a person set or cleared them. They are then never overwritten.';
COMMENT ON COLUMN documents.described_by IS 'What described it: `local`, or `provider:model`.';
COMMENT ON COLUMN documents.family_id IS 'Shared by all versions: the id of the first one, which may be deleted.';
COMMENT ON COLUMN documents.superseded IS 'A newer version exists and is not in the trash.';

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

COMMENT ON COLUMN document_tags.made_by IS 'NULL for a tag that a person assigned.';

CREATE INDEX document_tags_tag ON document_tags (tag_id);

-- The files in an archive and the attachments of an email, each a document. A document can be part of several others, because a
-- file that exists is not stored again. Deleting a document deletes only the relation.
CREATE TABLE document_parts (
    parent_id   uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    number      integer NOT NULL CHECK (number >= 0),
    name        text NOT NULL,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    added_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (parent_id, number),
    CHECK (parent_id <> document_id)
);

COMMENT ON COLUMN document_parts.number IS 'The place in the file, from 0. It identifies the part if the file is processed again.';
COMMENT ON COLUMN document_parts.name IS 'The name in the file, including folders. It is only a label.';

CREATE INDEX document_parts_document ON document_parts (document_id);

-- The files of a document: its source, its Markdown, and all other files made from it.
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

COMMENT ON COLUMN artifacts.revision IS '0 for files of the document itself, such as its source.';

CREATE INDEX artifacts_key ON artifacts (key);
CREATE INDEX artifacts_page_pictures ON artifacts (created_at) WHERE kind = 'page_picture';

-- Counts the references to each object, so that duplicates can share it.
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

-- How much an owner stores, including the trash.
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

-- Updates the status of a document in the transaction that changes its job. A document with chunks can be read, cited and
-- found, so it is complete even if its job fails later: only its description is missing.
CREATE FUNCTION follow_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    readable boolean := NEW.status IN ('failed', 'dead_letter') AND EXISTS (
        SELECT FROM job_stages WHERE job_id = NEW.id AND stage = 'chunked');
BEGIN
    -- Discarding a dead letter does not change its document.
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

-- Documents whose job waits for a person: it has made no progress for ten minutes, or is over budget.
CREATE VIEW documents_held AS
SELECT d.id, d.owner_id
FROM jobs j JOIN documents d ON d.process_id = j.id
WHERE d.status = 'pending' AND d.deleted_at IS NULL AND NOT d.superseded
  AND (j.status = 'processing'
           AND greatest(j.progressed_at, j.started_at, j.created_at) < clock_timestamp() - interval '10 minutes'
       OR j.status = 'paused' AND j.note -> 'error' ->> 'code' = 'OVER_BUDGET');

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
    unsure      text,
    regions     jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (document_id, revision, number)
);

CREATE INDEX pages_unsure ON pages (document_id, revision, number) WHERE unsure IS NOT NULL;

COMMENT ON COLUMN pages.bookmarks IS 'Entries of the table of contents of the file that begin on this page and have no heading in the text, each as [level, title].';
COMMENT ON COLUMN pages.unsure IS 'Why the text of the page may be incomplete or wrong; null if it is sure.';
COMMENT ON COLUMN pages.regions IS 'The areas of the page in reading order, each as kind, box, order, confidence and text.';

-- The figures of the current text. Their pictures are artifacts of the kind `figure`, named by their number, made when they are
-- first requested.
CREATE TABLE figures (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision    integer NOT NULL,
    number      integer NOT NULL CHECK (number > 0),
    kind        text NOT NULL,
    char_start  integer NOT NULL,
    page        integer,
    box         jsonb,
    member      text,
    caption     text NOT NULL,
    alternative text NOT NULL,
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
    seconds      real CHECK (seconds >= 0),
    boxes        jsonb NOT NULL DEFAULT '[]',
    UNIQUE (document_id, revision, index)
);

COMMENT ON COLUMN chunks.char_start IS 'In characters of the Markdown of the same revision.';
COMMENT ON COLUMN chunks.seconds IS 'Where in a recording the chunk begins; NULL for text that was not spoken.';
COMMENT ON COLUMN chunks.boxes IS 'Boxes on pages, each as [page, left, top, right, bottom] in points from the upper left corner.';

CREATE TABLE chunk_concepts (
    chunk_id   uuid NOT NULL REFERENCES chunks ON DELETE CASCADE,
    concept    text NOT NULL,
    importance real NOT NULL,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    PRIMARY KEY (chunk_id, concept)
);

-- The chunks of one owner with a concept, the most important first. No more of them are read than are compared.
CREATE INDEX chunk_concepts_owner ON chunk_concepts (owner_id, lower(concept), importance DESC, chunk_id);

-- A document without other versions is a family of one.
CREATE FUNCTION begin_family() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.family_id := coalesce(NEW.family_id, NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER documents_begin_family BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION begin_family();

-- Keeps `superseded` up to date: it is false only for the newest version outside the trash. Callers must lock the whole family
-- first.
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
