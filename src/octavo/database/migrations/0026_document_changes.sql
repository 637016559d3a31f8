-- Earlier values of documents, so that an action on many of them can be undone.

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

CREATE OR REPLACE FUNCTION follow_facts(of_document uuid, names text[]) RETURNS void LANGUAGE sql AS $$
    SELECT follow_all_facts(ARRAY[of_document], names);
$$;
