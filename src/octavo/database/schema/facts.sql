-- The facts of documents, saved views, which select documents by them, and earlier values for undo.

ALTER TABLE documents ADD COLUMN kind text;
ALTER TABLE documents ADD COLUMN sender text;
ALTER TABLE documents ADD COLUMN amount numeric;
ALTER TABLE documents ADD COLUMN currency text;
COMMENT ON COLUMN documents.kind IS 'This and title, sender, author, document_date, amount, currency and language follow the facts.';

CREATE INDEX documents_owner_kind ON documents (owner_id, kind) WHERE deleted_at IS NULL;
CREATE INDEX documents_owner_sender ON documents (owner_id, lower(sender)) WHERE deleted_at IS NULL;
CREATE INDEX documents_owner_date ON documents (owner_id, document_date DESC NULLS LAST, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX documents_owner_amount ON documents (owner_id, amount DESC NULLS LAST, id DESC) WHERE deleted_at IS NULL;

-- A document can have several facts with one name: from several sources, or several identifiers. `chosen_facts` has the best.
CREATE TABLE facts (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    made_by     text NOT NULL CHECK (made_by <> ''),
    name        text NOT NULL CHECK (name IN (
        'kind', 'title', 'sender', 'author', 'recipient', 'number', 'date', 'due_date', 'period', 'amount', 'currency',
        'language', 'iban', 'vat_id', 'doi', 'isbn', 'order_id', 'account_id', 'register_id', 'party')),
    number      integer NOT NULL DEFAULT 0 CHECK (number >= 0),
    value       text CHECK (value <> ''),
    normalized  text,
    page        integer CHECK (page > 0),
    box         jsonb,
    quote       text NOT NULL DEFAULT '',
    confidence  real NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    source      text NOT NULL CHECK (source IN ('metadata', 'layout', 'rule', 'mapping', 'model', 'person')),
    status      text NOT NULL CHECK (status IN ('found', 'checked', 'confirmed')),
    revision    integer NOT NULL DEFAULT 0,
    made_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (document_id, made_by, name, number),
    CONSTRAINT only_people_clear CHECK (value IS NOT NULL OR source = 'person')
);

COMMENT ON COLUMN facts.made_by IS 'What wrote it, and may replace it: `processing`, `description`, `mapping:<name>` or `person`.';
COMMENT ON COLUMN facts.value IS 'NULL if a person said that the document has no such fact.';
COMMENT ON COLUMN facts.normalized IS 'The form that is compared and sorted: an ISO date, a decimal number, a name in lower case.';
COMMENT ON COLUMN facts.revision IS 'The revision in which it was found.';

-- The order in which sources are believed: a person, print that a check supports, a mapping, a model, other print, metadata.
CREATE FUNCTION fact_rank(source text, status text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN source = 'person' THEN 0
                WHEN source <> 'metadata' AND status <> 'found' THEN 1
                WHEN source = 'mapping' THEN 2
                WHEN source = 'model' THEN 3
                WHEN source <> 'metadata' THEN 4
                ELSE 5 END;
$$;

CREATE VIEW chosen_facts AS
SELECT DISTINCT ON (document_id, name) *
FROM facts ORDER BY document_id, name, fact_rank(source, status), confidence DESC, number, made_by;

-- Copies the best facts with these names to the columns of their documents, by which documents are listed, filtered and sorted. In
-- plpgsql, because a session plans the statement once.
CREATE FUNCTION follow_all_facts(of_documents uuid[], names text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE documents d SET
        kind = CASE WHEN 'kind' = ANY (names) THEN f.kind ELSE d.kind END,
        title = CASE WHEN 'title' = ANY (names) THEN f.title ELSE d.title END,
        sender = CASE WHEN 'sender' = ANY (names) THEN f.sender ELSE d.sender END,
        author = CASE WHEN 'author' = ANY (names) THEN f.author ELSE d.author END,
        document_date = CASE WHEN 'date' = ANY (names) THEN f.day::date ELSE d.document_date END,
        amount = CASE WHEN 'amount' = ANY (names) THEN f.amount::numeric ELSE d.amount END,
        currency = CASE WHEN 'currency' = ANY (names) THEN f.currency ELSE d.currency END,
        language = CASE WHEN 'language' = ANY (names) THEN f.language ELSE d.language END,
        updated_at = clock_timestamp()
    FROM (SELECT o.id,
                 max(normalized) FILTER (WHERE name = 'kind') AS kind,
                 max(value) FILTER (WHERE name = 'title') AS title,
                 max(value) FILTER (WHERE name = 'sender') AS sender,
                 max(value) FILTER (WHERE name = 'author') AS author,
                 max(normalized) FILTER (WHERE name = 'date' AND normalized ~ '^\d{4}-\d{2}-\d{2}$') AS day,
                 max(normalized) FILTER (WHERE name = 'amount') AS amount,
                 max(normalized) FILTER (WHERE name = 'currency') AS currency,
                 max(normalized) FILTER (WHERE name = 'language') AS language
          FROM unnest(of_documents) AS o (id)
          LEFT JOIN (SELECT * FROM chosen_facts WHERE document_id = ANY (of_documents)) AS c ON c.document_id = o.id
          GROUP BY o.id) AS f
    WHERE d.id = f.id;
END $$;

CREATE FUNCTION follow_facts(of_document uuid, names text[]) RETURNS void LANGUAGE sql AS $$
    SELECT follow_all_facts(ARRAY[of_document], names);
$$;

-- A title and an author that were given with the upload are what a person said.
CREATE FUNCTION save_given_facts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO facts (document_id, made_by, name, value, normalized, confidence, source, status)
    SELECT NEW.id, 'person', given.name, given.value, lower(given.value), 1, 'person', 'confirmed'
    FROM (VALUES ('title', NEW.title), ('author', NEW.author)) AS given (name, value) WHERE given.value <> '';
    RETURN NULL;
END $$;
CREATE TRIGGER documents_given AFTER INSERT ON documents FOR EACH ROW
    WHEN (NEW.title IS NOT NULL OR NEW.author IS NOT NULL) EXECUTE FUNCTION save_given_facts();

-- Filters and orders of the library, saved under a name.
CREATE TABLE views (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    filter     jsonb NOT NULL,
    sort       text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE UNIQUE INDEX views_name ON views (owner_id, lower(name));

-- The values that documents had before an action on many of them, so that the action can be undone.
CREATE TABLE document_changes (
    change_id   uuid NOT NULL,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    action      text NOT NULL CHECK (action IN ('edit', 'delete')),
    before      jsonb NOT NULL,
    undone      boolean NOT NULL DEFAULT false,
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (change_id, document_id)
);

COMMENT ON COLUMN document_changes.before IS 'For an edit: `names` of the edited fields, the values of `fields`, the `tags`, and the `facts` by people.';

CREATE INDEX document_changes_document ON document_changes (document_id);
CREATE INDEX document_changes_at ON document_changes (changed_at);

-- Cancels the unfinished jobs of documents, including jobs that were started by a finished one, such as the items of an analysis.
-- A job that ended meanwhile, or that was cancelled with another job, is skipped.
CREATE FUNCTION stop_jobs(documents uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    job uuid;
BEGIN
    FOR job IN
        SELECT id FROM jobs
        WHERE (document_id = ANY (documents) OR parent_id IN (SELECT id FROM jobs WHERE document_id = ANY (documents)))
          AND status IN ('queued', 'processing', 'paused')
        ORDER BY cap_key NULLS FIRST, id
    LOOP
        BEGIN
            PERFORM cancel_job(job, NULL);
        EXCEPTION WHEN check_violation THEN
            NULL;
        END;
    END LOOP;
END $$;
