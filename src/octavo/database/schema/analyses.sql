-- Analyses: prompts run over a long document, segment by segment, and their consolidated answers.

CREATE TABLE prompts (
    id              uuid PRIMARY KEY,
    owner_id        uuid REFERENCES owners ON DELETE CASCADE,
    title           text NOT NULL CHECK (title <> ''),
    content         text NOT NULL CHECK (content <> ''),
    system          text NOT NULL DEFAULT '',
    execution_order integer NOT NULL DEFAULT 100 CHECK (execution_order >= 0),
    active          boolean NOT NULL DEFAULT true,
    version         integer NOT NULL DEFAULT 1 CHECK (version > 0),
    created_at      timestamptz NOT NULL DEFAULT engine_now(),
    updated_at      timestamptz NOT NULL DEFAULT engine_now()
);

COMMENT ON COLUMN prompts.owner_id IS 'NULL for a built-in prompt, which everybody can use and nobody can change.';

CREATE INDEX prompts_owner ON prompts (owner_id, execution_order, id);

-- Every version of a prompt.
CREATE TABLE prompt_versions (
    prompt_id  uuid NOT NULL REFERENCES prompts ON DELETE CASCADE,
    version    integer NOT NULL,
    title      text NOT NULL,
    content    text NOT NULL,
    system     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT engine_now(),
    PRIMARY KEY (prompt_id, version)
);

CREATE FUNCTION keep_prompt_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        NEW.updated_at := engine_now();
        NEW.version := OLD.version + (CASE WHEN (NEW.content, NEW.system) IS DISTINCT FROM (OLD.content, OLD.system)
                                      THEN 1 ELSE 0 END);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER prompts_count_versions BEFORE UPDATE ON prompts FOR EACH ROW EXECUTE FUNCTION keep_prompt_version();

CREATE FUNCTION write_prompt_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO prompt_versions (prompt_id, version, title, content, system)
    VALUES (NEW.id, NEW.version, NEW.title, NEW.content, NEW.system) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER prompts_keep_versions AFTER INSERT OR UPDATE ON prompts
    FOR EACH ROW EXECUTE FUNCTION write_prompt_version();

INSERT INTO prompts (id, title, execution_order, content) VALUES
    ('00000000-0000-7000-8000-00000000a001', 'Summary', 10,
     'Summarise what these pages say: their subject, the main points in their order, and what they conclude.'),
    ('00000000-0000-7000-8000-00000000a002', 'People and organisations', 20,
     'Which people and organisations are named, and what is the role of each of them?'),
    ('00000000-0000-7000-8000-00000000a003', 'Dates and deadlines', 30,
     'Which dates, periods and deadlines are given, and what happens on each of them or until then?'),
    ('00000000-0000-7000-8000-00000000a004', 'Money', 40,
     'Which amounts of money are named, for what, who pays them and to whom?'),
    ('00000000-0000-7000-8000-00000000a005', 'Obligations and risks', 50,
     'Who has to do what? Which duties, conditions, penalties and risks are there?');

CREATE TABLE analyses (
    id            uuid PRIMARY KEY,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    document_id   uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    revision      integer NOT NULL,
    mode          text NOT NULL CHECK (mode IN ('parallel', 'sequential')),
    at_once       integer NOT NULL CHECK (at_once BETWEEN 1 AND 10),
    status        text NOT NULL CHECK (status IN ('created', 'queued', 'analyzing', 'completed', 'error', 'stopped')),
    phase         text NOT NULL DEFAULT 'initializing'
                  CHECK (phase IN ('initializing', 'uploading', 'processing', 'consolidating', 'completed', 'abandoned')),
    unit          text CHECK (unit IN ('pages', 'passages')),
    units         integer CHECK (units > 0),
    error_code    text,
    error_message text,
    created_at    timestamptz NOT NULL DEFAULT engine_now(),
    progressed_at timestamptz NOT NULL DEFAULT engine_now(),
    completed_at  timestamptz,
    CONSTRAINT completed_in_both CHECK ((status = 'completed') = (phase = 'completed')),
    CONSTRAINT completed_has_its_time CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT abandoned_is_an_error CHECK (phase <> 'abandoned' OR status = 'error'),
    CONSTRAINT error_has_its_code CHECK (CASE status WHEN 'error' THEN error_code IS NOT NULL WHEN 'completed' THEN true
                                         ELSE error_code IS NULL END),
    CONSTRAINT message_with_its_code CHECK ((error_code IS NULL) = (error_message IS NULL)),
    CONSTRAINT planned_before_asked CHECK (units IS NOT NULL OR phase IN ('initializing', 'abandoned'))
);

COMMENT ON TABLE analyses IS 'An analysis has the id of the job that prepares it, which is the parent of all its other jobs.';
COMMENT ON COLUMN analyses.error_code IS 'Also set on a completed analysis if some of its segments have no answer.';
COMMENT ON COLUMN analyses.units IS 'How many pages or chunks have to be covered; known when it is planned.';

CREATE INDEX analyses_owner ON analyses (owner_id, created_at, id);
CREATE INDEX analyses_document ON analyses (document_id);
CREATE INDEX analyses_open ON analyses (progressed_at) WHERE status IN ('created', 'queued', 'analyzing');

-- A segment covers the pages from first to last. The pages from context_first to first - 1 are shown as context.
CREATE TABLE segments (
    id            uuid PRIMARY KEY,
    analysis_id   uuid NOT NULL REFERENCES analyses ON DELETE CASCADE,
    parent_id     uuid REFERENCES segments ON DELETE CASCADE,
    first         integer NOT NULL,
    last          integer NOT NULL,
    context_first integer NOT NULL,
    tokens        integer NOT NULL CHECK (tokens >= 0),
    ready         boolean NOT NULL,
    CONSTRAINT pages_in_order CHECK (1 <= context_first AND context_first <= first AND first <= last)
);

COMMENT ON COLUMN segments.parent_id IS 'The segment that was too long for a model and of which this is a part.';
COMMENT ON COLUMN segments.ready IS 'It can be sent: as text, or as the artifact segment_file(…) of the document.';

CREATE UNIQUE INDEX segments_own ON segments (analysis_id, first) WHERE parent_id IS NULL;
CREATE UNIQUE INDEX segments_parts ON segments (parent_id, first) WHERE parent_id IS NOT NULL;
CREATE INDEX segments_analysis ON segments (analysis_id);

-- The kind under which the file of a segment is stored. The same pages are extracted once for all analyses of a document.
CREATE FUNCTION segment_file(segment segments) RETURNS text LANGUAGE sql IMMUTABLE
RETURN 'segment:' || segment.context_first || '-' || segment.last;

-- One row for each prompt: the exact question, and the consolidated answer.
CREATE TABLE analysis_results (
    analysis_id     uuid NOT NULL REFERENCES analyses ON DELETE CASCADE,
    prompt_id       uuid NOT NULL,
    version         integer NOT NULL,
    title           text NOT NULL,
    content         text NOT NULL,
    system          text NOT NULL,
    execution_order integer NOT NULL,
    status          text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'completed', 'failed')),
    generation      integer NOT NULL DEFAULT 0 CHECK (generation >= 0),
    job_id          uuid UNIQUE,
    answer          text,
    citations       jsonb NOT NULL DEFAULT '[]',
    made_by         text,
    failed_models   jsonb NOT NULL DEFAULT '[]',
    error_code      text,
    error_message   text,
    completed_at    timestamptz,
    gaps            jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (analysis_id, prompt_id),
    CONSTRAINT answer_when_completed CHECK ((status = 'completed') = (answer IS NOT NULL)),
    CONSTRAINT maker_with_answer CHECK ((answer IS NULL) = (made_by IS NULL)),
    CONSTRAINT time_with_answer CHECK ((answer IS NULL) = (completed_at IS NULL)),
    CONSTRAINT error_when_failed CHECK ((status = 'failed') = (error_code IS NOT NULL)),
    CONSTRAINT job_when_running CHECK (status <> 'running' OR job_id IS NOT NULL)
);

COMMENT ON COLUMN analysis_results.gaps IS 'The ranges of pages without an answer, with the error of each.';

-- One row for each prompt and segment.
CREATE TABLE analysis_items (
    id            uuid PRIMARY KEY,
    analysis_id   uuid NOT NULL,
    segment_id    uuid NOT NULL REFERENCES segments ON DELETE CASCADE,
    prompt_id     uuid NOT NULL,
    status        text NOT NULL DEFAULT 'planned' CHECK (status IN ('planned', 'done', 'split', 'failed')),
    generation    integer NOT NULL DEFAULT 0 CHECK (generation >= 0),
    job_id        uuid UNIQUE,
    answer        jsonb,
    made_by       text,
    failed_models jsonb NOT NULL DEFAULT '[]',
    error_code    text,
    error_message text,
    done_at       timestamptz,
    UNIQUE (segment_id, prompt_id),
    FOREIGN KEY (analysis_id, prompt_id) REFERENCES analysis_results ON DELETE CASCADE,
    CONSTRAINT answer_when_done CHECK ((status = 'done') = (answer IS NOT NULL)),
    CONSTRAINT maker_with_answer CHECK ((answer IS NULL) = (made_by IS NULL)),
    CONSTRAINT time_with_answer CHECK ((answer IS NULL) = (done_at IS NULL)),
    CONSTRAINT error_when_failed CHECK ((status = 'failed') = (error_code IS NOT NULL))
);

COMMENT ON COLUMN analysis_items.job_id IS 'NULL while it is not enqueued, because the segment before it has to be answered first.';
COMMENT ON COLUMN analysis_items.status IS 'split: its segment was too long, and the items of its parts replace it.';

CREATE INDEX analysis_items_of_prompt ON analysis_items (analysis_id, prompt_id, status);

-- The state machine of analyses: one row for each allowed transition, as for jobs.
CREATE TABLE analysis_transitions (
    before text NOT NULL,
    after  text NOT NULL,
    why    text NOT NULL,
    PRIMARY KEY (before, after)
);

INSERT INTO analysis_transitions (before, after, why) VALUES
    ('created',   'queued',    'its job is in line'),
    ('queued',    'analyzing', 'its segments are planned'),
    ('queued',    'error',     'it cannot be prepared, or nothing happens for two days'),
    ('queued',    'stopped',   'a person stops it'),
    ('analyzing', 'completed', 'all prompts are answered'),
    ('analyzing', 'error',     'a prompt cannot be answered, or nothing happens for two days'),
    ('analyzing', 'stopped',   'a person stops it'),
    ('stopped',   'queued',    'it is prepared again'),
    ('stopped',   'analyzing', 'the rest is asked'),
    ('error',     'queued',    'it is prepared again'),
    ('error',     'analyzing', 'what failed is asked again'),
    ('completed', 'analyzing', 'something is asked anew, or more is asked');

CREATE FUNCTION follow_analysis() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.status <> OLD.status AND NOT EXISTS (
        SELECT FROM analysis_transitions t WHERE t.before = OLD.status AND t.after = NEW.status) THEN
        RAISE EXCEPTION 'analysis % cannot go from % to %', NEW.id, OLD.status, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'analysis_transitions';
    END IF;
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    VALUES (NEW.id, 'analysis.' || CASE
                WHEN TG_OP = 'INSERT' THEN 'created'
                WHEN NEW.phase = 'abandoned' THEN 'abandoned'
                WHEN NEW.status <> OLD.status THEN CASE NEW.status WHEN 'error' THEN 'failed' ELSE NEW.status END
                ELSE NEW.phase END,
            NEW.owner_id, NEW.document_id, jsonb_strip_nulls(jsonb_build_object(
                'status', NEW.status, 'phase', NEW.phase, 'error', CASE WHEN NEW.error_code IS NOT NULL THEN
                    jsonb_build_object('code', NEW.error_code, 'message', NEW.error_message) END)));
    RETURN NULL;
END $$;
CREATE TRIGGER analyses_tell_beginning AFTER INSERT ON analyses FOR EACH ROW EXECUTE FUNCTION follow_analysis();
CREATE TRIGGER analyses_tell AFTER UPDATE ON analyses FOR EACH ROW
    WHEN ((OLD.status, OLD.phase) IS DISTINCT FROM (NEW.status, NEW.phase)) EXECUTE FUNCTION follow_analysis();

CREATE FUNCTION tell_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    SELECT a.id, 'analysis.item', a.owner_id, a.document_id,
           jsonb_build_object('item', n.id, 'segment', n.segment_id, 'prompt', n.prompt_id, 'status', n.status)
    FROM changed_to n JOIN changed_from o USING (id) JOIN analyses a ON a.id = n.analysis_id
    WHERE n.status <> o.status;
    RETURN NULL;
END $$;
CREATE TRIGGER items_tell AFTER UPDATE ON analysis_items REFERENCING OLD TABLE AS changed_from NEW TABLE AS changed_to
    FOR EACH STATEMENT EXECUTE FUNCTION tell_items();

CREATE FUNCTION tell_results() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (process_id, kind, owner_id, document_id, detail)
    SELECT a.id, 'analysis.result', a.owner_id, a.document_id,
           jsonb_build_object('prompt', n.prompt_id, 'status', n.status)
    FROM changed_to n JOIN changed_from o USING (analysis_id, prompt_id) JOIN analyses a ON a.id = n.analysis_id
    WHERE n.status <> o.status;
    RETURN NULL;
END $$;
CREATE TRIGGER results_tell AFTER UPDATE ON analysis_results REFERENCING OLD TABLE AS changed_from NEW TABLE AS changed_to
    FOR EACH STATEMENT EXECUTE FUNCTION tell_results();

-- Updates the status of an analysis. A prompt fails if all of its items failed; if only some failed, its answer has gaps. The
-- analysis is complete, failed or open depending on its prompts. The caller holds the lock of the analysis.
CREATE FUNCTION settle_analysis(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    held analyses;
    at timestamptz := engine_now();
BEGIN
    SELECT * INTO held FROM analyses WHERE id = wanted FOR UPDATE;
    IF held.status <> 'analyzing' OR held.phase NOT IN ('processing', 'consolidating') THEN
        RETURN;
    END IF;
    UPDATE analysis_results r SET status = 'failed', error_code = 'ANALYSIS_INCOMPLETE',
        error_message = 'No part of the document could be answered. ' || (
            SELECT coalesce(i.error_message, i.error_code) FROM analysis_items i
            WHERE i.analysis_id = wanted AND i.prompt_id = r.prompt_id AND i.status = 'failed' ORDER BY i.id LIMIT 1)
    WHERE r.analysis_id = wanted AND r.status = 'pending'
      AND EXISTS (SELECT FROM analysis_items i
                  WHERE i.analysis_id = wanted AND i.prompt_id = r.prompt_id AND i.status = 'failed')
      AND NOT EXISTS (SELECT FROM analysis_items i
                      WHERE i.analysis_id = wanted AND i.prompt_id = r.prompt_id AND i.status IN ('planned', 'done'));
    UPDATE analyses a SET
        progressed_at = at,
        status = n.status,
        phase = CASE WHEN n.status = 'completed' THEN 'completed' WHEN n.asking THEN 'processing' ELSE 'consolidating' END,
        completed_at = CASE WHEN n.status = 'completed' THEN at END,
        error_code = CASE n.status WHEN 'error' THEN n.code WHEN 'completed' THEN n.gap_code END,
        error_message = CASE n.status WHEN 'error' THEN n.message WHEN 'completed' THEN n.gap_message END
    FROM (SELECT CASE WHEN bool_or(r.status IN ('pending', 'running')) THEN 'analyzing'
                      WHEN bool_or(r.status = 'failed') THEN 'error' ELSE 'completed' END AS status,
                 (array_agg(r.error_code ORDER BY r.execution_order) FILTER (WHERE r.status = 'failed'))[1] AS code,
                 (array_agg(r.error_message ORDER BY r.execution_order) FILTER (WHERE r.status = 'failed'))[1] AS message,
                 CASE WHEN bool_or(r.gaps <> '[]') THEN 'ANALYSIS_INCOMPLETE' END AS gap_code,
                 CASE WHEN bool_or(r.gaps <> '[]') THEN 'Some parts of the document have no answer.' END AS gap_message,
                 EXISTS (SELECT FROM analysis_items i WHERE i.analysis_id = wanted AND i.status = 'planned') AS asking
          FROM analysis_results r WHERE r.analysis_id = wanted) AS n
    WHERE a.id = wanted;
END $$;

-- Opens an analysis again, because some of its items will run.
CREATE FUNCTION reopen_analysis(wanted uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE analyses SET status = 'analyzing', phase = 'processing', completed_at = NULL, error_code = NULL,
                        error_message = NULL, progressed_at = engine_now()
    WHERE id = wanted AND (status IN ('completed', 'error', 'stopped') OR phase = 'consolidating') AND units IS NOT NULL
      AND EXISTS (SELECT FROM analysis_items WHERE analysis_id = wanted)
$$;

-- Updates the state of an analysis in the transaction that changes one of its jobs. An analysis that a person stopped is not
-- changed: its items and results wait until it is resumed.
CREATE FUNCTION follow_analysis_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ended boolean := NEW.status IN ('failed', 'dead_letter', 'cancelled');
    stopped boolean := NEW.status = 'cancelled' AND NEW.error_code IS NULL;
    code text := coalesce(NEW.error_code, 'CANCELLED');
    message text := coalesce(NEW.error_message, 'Stopped by you.');
BEGIN
    IF NEW.kind = 'analyse_document' THEN
        UPDATE analyses SET progressed_at = engine_now(),
            status = CASE WHEN stopped THEN 'stopped' WHEN ended THEN 'error' ELSE 'queued' END,
            phase = CASE WHEN ended THEN phase ELSE 'initializing' END,
            error_code = CASE WHEN ended AND NOT stopped THEN code END,
            error_message = CASE WHEN ended AND NOT stopped THEN message END
        WHERE id = NEW.id AND CASE WHEN ended THEN status IN ('queued', 'analyzing') ELSE status IN ('error', 'stopped') END;
        RETURN NULL;
    END IF;
    PERFORM FROM analyses WHERE id = NEW.parent_id FOR UPDATE;
    IF stopped AND EXISTS (SELECT FROM analyses WHERE id = NEW.parent_id AND status = 'stopped') THEN
        UPDATE analysis_items SET job_id = NULL WHERE job_id = NEW.id AND status = 'planned';
        UPDATE analysis_results SET status = 'pending', job_id = NULL WHERE job_id = NEW.id AND status = 'running';
        RETURN NULL;
    END IF;
    IF NEW.kind = 'answer_segment' AND ended THEN
        UPDATE analysis_items SET status = 'failed', error_code = code, error_message = message
        WHERE job_id = NEW.id AND status = 'planned';
    ELSIF NEW.kind = 'answer_segment' THEN
        UPDATE analysis_items SET status = 'planned', error_code = NULL, error_message = NULL
        WHERE job_id = NEW.id AND status = 'failed';
        -- Also an answer that was made, or is being made, without this item.
        UPDATE analysis_results r SET status = 'pending', job_id = NULL, answer = NULL, citations = '[]', made_by = NULL,
            failed_models = '[]', completed_at = NULL, gaps = '[]', error_code = NULL, error_message = NULL
        FROM analysis_items i WHERE i.job_id = NEW.id AND r.analysis_id = i.analysis_id AND r.prompt_id = i.prompt_id
          AND i.status = 'planned' AND r.status <> 'pending';
    ELSIF ended THEN
        UPDATE analysis_results SET status = 'failed', error_code = code, error_message = message
        WHERE job_id = NEW.id AND status = 'running';
    ELSE
        UPDATE analysis_results SET status = 'running', error_code = NULL, error_message = NULL
        WHERE job_id = NEW.id AND status = 'failed';
    END IF;
    IF NOT ended THEN
        PERFORM reopen_analysis(NEW.parent_id);
    END IF;
    PERFORM settle_analysis(NEW.parent_id);
    RETURN NULL;
END $$;
CREATE TRIGGER analysis_follows AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (NEW.kind IN ('analyse_document', 'answer_segment', 'consolidate_answers')
          AND (NEW.status IN ('failed', 'dead_letter', 'cancelled')
               OR NEW.status = 'queued' AND OLD.status IN ('failed', 'dead_letter', 'cancelled')))
    EXECUTE FUNCTION follow_analysis_job();

-- Locks all unfinished jobs of an analysis. If that fails, it releases them all and tries again: a worker holds some jobs
-- while it waits for others, so waiting with some of them locked could deadlock.
CREATE FUNCTION hold_jobs_of(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR attempt IN 1..1000 LOOP
        BEGIN
            PERFORM FROM jobs WHERE (id = wanted OR parent_id = wanted) AND status <> 'complete' FOR UPDATE NOWAIT;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep(0.01);
        END;
    END LOOP;
    RAISE EXCEPTION 'the jobs of analysis % cannot be locked', wanted USING ERRCODE = 'lock_not_available';
END $$;

CREATE FUNCTION analyses_follow_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE analyses SET owner_id = NEW.owner_id WHERE document_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER analyses_follow AFTER UPDATE OF owner_id ON documents
    FOR EACH ROW WHEN (OLD.owner_id <> NEW.owner_id) EXECUTE FUNCTION analyses_follow_document();
