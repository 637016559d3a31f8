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
