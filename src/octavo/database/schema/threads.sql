-- Threads: questions to documents, their follow-up questions, and the answers.

CREATE TABLE threads (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    title      text NOT NULL CHECK (title <> ''),
    scope      jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN threads.title IS 'The first question.';
COMMENT ON COLUMN threads.scope IS 'The documents that the last question was asked about: a collection, a query or document_ids; {} for all.';

CREATE INDEX threads_owner ON threads (owner_id, updated_at DESC, id DESC);
CREATE INDEX threads_updated ON threads (updated_at);

-- A turn is stored when its question is asked, and its answer in one statement when it is complete. If answering is interrupted, the
-- turn stays unfinished.
CREATE TABLE turns (
    id            uuid PRIMARY KEY,
    thread_id     uuid NOT NULL REFERENCES threads ON DELETE CASCADE,
    number        integer NOT NULL CHECK (number > 0),
    question      text NOT NULL CHECK (question <> ''),
    understood_as text,
    status        text NOT NULL DEFAULT 'unfinished' CHECK (status IN ('unfinished', 'answered', 'failed', 'removed')),
    attempt       integer NOT NULL DEFAULT 1 CHECK (attempt > 0),
    answer        text,
    statements    jsonb NOT NULL DEFAULT '[]',
    citations     jsonb NOT NULL DEFAULT '[]',
    found         boolean,
    note          text,
    made_by       text,
    cost_usd      numeric(12, 6) NOT NULL DEFAULT 0,
    error         jsonb,
    asked_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    answered_at   timestamptz,
    UNIQUE (thread_id, number),
    CONSTRAINT answered_with_result CHECK ((status = 'answered') = (found IS NOT NULL)),
    CONSTRAINT failed_with_error CHECK ((status = 'failed') = (error IS NOT NULL))
);

COMMENT ON COLUMN turns.understood_as IS 'The follow-up question with its subject, if it was rewritten.';
COMMENT ON COLUMN turns.attempt IS 'Counts how often the question was answered. Only the latest attempt stores its answer.';
COMMENT ON COLUMN turns.status IS 'unfinished: being answered, stopped or interrupted. removed: the answer quoted a document that was deleted permanently.';

CREATE INDEX turns_citations ON turns USING gin (citations jsonb_path_ops);

-- Removes the answers that quote permanently deleted documents, because the quotes are text of these documents.
CREATE FUNCTION remove_quoting_answers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE turns t SET status = 'removed', attempt = attempt + 1, answer = NULL, statements = '[]', citations = '[]', found = NULL, note = NULL
    FROM deleted d
    WHERE t.citations @> jsonb_build_array(jsonb_build_object('document_id', d.id));
    RETURN NULL;
END $$;

CREATE TRIGGER remove_quoting_answers AFTER DELETE ON documents REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION remove_quoting_answers();
