-- Analyses: stopping is a normal end, and an answer can have gaps. The constraints are replaced by weaker ones, and the table has
-- one row for each analysis, so checking it takes no time.

-- squawk-ignore ban-drop-constraint
ALTER TABLE analyses DROP CONSTRAINT analyses_status_check;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE analyses ADD CONSTRAINT analyses_status_check
    CHECK (status IN ('created', 'queued', 'analyzing', 'completed', 'error', 'stopped'));
-- squawk-ignore ban-drop-constraint
ALTER TABLE analyses DROP CONSTRAINT error_has_its_code;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE analyses ADD CONSTRAINT error_has_its_code CHECK (CASE status WHEN 'error' THEN error_code IS NOT NULL
                                                              WHEN 'completed' THEN true ELSE error_code IS NULL END);
COMMENT ON COLUMN analyses.error_code IS 'Also set on a completed analysis if some of its segments have no answer.';
ALTER TABLE analysis_results ADD COLUMN gaps jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN analysis_results.gaps IS 'The ranges of pages without an answer, with the error of each.';

UPDATE analysis_transitions SET why = 'it cannot be prepared, or nothing happens for two days' WHERE (before, after) = ('queued', 'error');
UPDATE analysis_transitions SET why = 'a prompt cannot be answered, or nothing happens for two days'
WHERE (before, after) = ('analyzing', 'error');
INSERT INTO analysis_transitions (before, after, why) VALUES
    ('queued',    'stopped',   'a person stops it'),
    ('analyzing', 'stopped',   'a person stops it'),
    ('stopped',   'queued',    'it is prepared again'),
    ('stopped',   'analyzing', 'the rest is asked');

CREATE OR REPLACE FUNCTION settle_analysis(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION reopen_analysis(wanted uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE analyses SET status = 'analyzing', phase = 'processing', completed_at = NULL, error_code = NULL,
                        error_message = NULL, progressed_at = engine_now()
    WHERE id = wanted AND (status IN ('completed', 'error', 'stopped') OR phase = 'consolidating') AND units IS NOT NULL
      AND EXISTS (SELECT FROM analysis_items WHERE analysis_id = wanted)
$$;

CREATE OR REPLACE FUNCTION follow_analysis_job() RETURNS trigger LANGUAGE plpgsql AS $$
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
