-- People -------------------------------------------------------------------------------------------------------------

-- name: documents_to_analyse(owner, documents)
SELECT id, revision, text_ready FROM documents WHERE id = ANY (:documents) AND owner_id = :owner AND deleted_at IS NULL ORDER BY id;

-- name: long_document(document, pages, bytes)
-- A document to analyse automatically, with the number of active prompts; nothing if it is too short, too large, or was
-- analysed before.
SELECT d.owner_id, d.word_count, d.page_count, (SELECT o.kind FROM owners o WHERE o.id = d.owner_id) AS owner_kind,
       (SELECT count(*) FROM prompts p WHERE p.active AND (p.owner_id = d.owner_id OR p.owner_id IS NULL))::integer AS prompts
FROM documents d
WHERE id = :document AND page_count > :pages AND bytes <= :bytes AND text_ready AND deleted_at IS NULL
  AND NOT EXISTS (SELECT FROM analyses a WHERE a.document_id = d.id);

-- name: insert_analyses(ids, owner, documents, revisions, mode, at_once)!
INSERT INTO analyses (id, owner_id, document_id, revision, mode, at_once, status)
SELECT a.id, :owner, a.document_id, a.revision, :mode, :at_once, 'created'
FROM unnest(:ids::uuid[], :documents::uuid[], :revisions::integer[]) AS a (id, document_id, revision);

-- name: set_queued(analyses)!
UPDATE analyses SET status = 'queued' WHERE id = ANY (:analyses);

-- name: choose_prompts(owner, prompts)
-- The given prompts or, if none are given, all active prompts.
SELECT id FROM prompts
WHERE (owner_id = :owner OR owner_id IS NULL)
  AND CASE WHEN :prompts::uuid[] IS NULL THEN active ELSE id = ANY (:prompts::uuid[]) END
ORDER BY execution_order, id;

-- name: insert_results(analyses, owner, prompts)!
-- Copies the current text of each prompt.
INSERT INTO analysis_results (analysis_id, prompt_id, version, title, content, system, execution_order)
SELECT a.id, p.id, p.version, p.title, p.content, p.system, p.execution_order FROM unnest(:analyses::uuid[]) AS a (id), prompts p
WHERE p.id = ANY (:prompts) AND (owner_id = :owner OR owner_id IS NULL)
ON CONFLICT DO NOTHING;

-- name: hold_jobs(analysis, owner)
-- Locks jobs before the analysis, in the same order as workers.
SELECT hold_jobs_of(id) FROM analyses WHERE id = :analysis AND owner_id = :owner;

-- name: hold(analysis, owner)
SELECT id, status, phase NOT IN ('initializing', 'uploading') AND units IS NOT NULL AS asked
FROM analyses WHERE id = :analysis AND owner_id = :owner FOR UPDATE;

-- name: results_to_drop(analysis, prompts)
-- Prompts that are no longer selected, or whose text has changed.
SELECT r.prompt_id FROM analysis_results r
WHERE r.analysis_id = :analysis AND (NOT r.prompt_id = ANY (:prompts) OR EXISTS (
    SELECT FROM prompts p WHERE p.id = r.prompt_id AND p.version <> r.version));

-- name: jobs_of_prompts(analysis, prompts)
SELECT j.id FROM jobs j
WHERE j.parent_id = :analysis AND j.status IN ('queued', 'processing', 'paused', 'dead_letter') AND (
    EXISTS (SELECT FROM analysis_items i WHERE i.job_id = j.id AND i.prompt_id = ANY (:prompts))
    OR EXISTS (SELECT FROM analysis_results r WHERE r.job_id = j.id AND r.prompt_id = ANY (:prompts)))
ORDER BY j.cap_key, j.id;

-- name: delete_results(analysis, prompts)!
DELETE FROM analysis_results WHERE analysis_id = :analysis AND prompt_id = ANY (:prompts);

-- name: insert_items(analysis)!
-- Every prompt with every segment that has not been split.
INSERT INTO analysis_items (id, analysis_id, segment_id, prompt_id)
SELECT gen_random_uuid(), :analysis, s.id, r.prompt_id
FROM segments s CROSS JOIN analysis_results r
WHERE s.analysis_id = :analysis AND r.analysis_id = :analysis AND s.parent_id IS NULL
ON CONFLICT (segment_id, prompt_id) DO NOTHING;

-- name: take_due_items(analysis)
-- Assigns a job to each item that can run now and has none, in the order in which they run. The caller holds the lock of the
-- analysis and enqueues the jobs.
WITH due AS (
    SELECT i.id FROM analysis_items i JOIN analyses a ON a.id = i.analysis_id
    WHERE i.analysis_id = :analysis AND i.status = 'planned' AND i.job_id IS NULL
      AND (a.mode = 'parallel' OR i.id IN (
          SELECT DISTINCT ON (n.prompt_id) n.id FROM analysis_items n JOIN segments s ON s.id = n.segment_id
          WHERE n.analysis_id = :analysis AND n.status = 'planned' ORDER BY n.prompt_id, s.first))
), taken AS (
    UPDATE analysis_items i SET job_id = gen_random_uuid() FROM due WHERE i.id = due.id
    RETURNING i.id, i.job_id, i.prompt_id, i.segment_id
)
SELECT t.id AS item, t.job_id, a.owner_id, a.at_once
FROM taken t JOIN segments s ON s.id = t.segment_id JOIN analyses a ON a.id = s.analysis_id
JOIN analysis_results r ON r.analysis_id = :analysis AND r.prompt_id = t.prompt_id
ORDER BY r.execution_order, r.prompt_id, s.first;

-- name: take_answered_prompts(analysis)
-- Assigns a job to each prompt whose segments are all answered or failed and that is not consolidated. The caller holds the lock of the
-- analysis and enqueues the jobs.
WITH taken AS (
    UPDATE analysis_results r SET status = 'running', job_id = gen_random_uuid() FROM analyses a
    WHERE a.id = :analysis AND a.status = 'analyzing' AND a.phase IN ('processing', 'consolidating')
      AND r.analysis_id = a.id AND r.status = 'pending' AND NOT EXISTS (
          SELECT FROM analysis_items i WHERE i.analysis_id = a.id AND i.prompt_id = r.prompt_id AND i.status = 'planned')
      AND EXISTS (
          SELECT FROM analysis_items i WHERE i.analysis_id = a.id AND i.prompt_id = r.prompt_id AND i.status = 'done')
    RETURNING r.prompt_id, r.job_id, r.execution_order, a.owner_id, a.at_once
)
SELECT prompt_id, job_id, owner_id, at_once FROM taken ORDER BY execution_order, prompt_id;

-- name: settle(analysis)
SELECT settle_analysis(:analysis);

-- name: reopen(analysis)
SELECT reopen_analysis(:analysis);

-- name: set_stopped(analysis)!
UPDATE analyses SET status = 'stopped', progressed_at = engine_now()
WHERE id = :analysis AND status IN ('queued', 'analyzing');

-- name: set_abandoned(analysis, code, message)!
UPDATE analyses SET status = 'error', phase = 'abandoned', error_code = :code, error_message = :message
WHERE id = :analysis AND status IN ('queued', 'analyzing');

-- name: set_failed(analysis, code, message)!
UPDATE analyses SET status = 'error', error_code = :code, error_message = :message
WHERE id = :analysis AND status IN ('queued', 'analyzing');

-- name: is_preparing(analysis)
SELECT status IN ('queued', 'processing', 'paused') FROM jobs WHERE id = :analysis;

-- name: cancel_open_jobs(analysis)
-- In the lock order of their caps.
SELECT cancel_job(open.id, NULL) FROM (
    SELECT id FROM jobs WHERE parent_id = :analysis AND status IN ('queued', 'processing', 'paused')
    ORDER BY cap_key NULLS FIRST, id) AS open;

-- name: has_items(analysis)
SELECT EXISTS (SELECT FROM analysis_items WHERE analysis_id = :analysis);

-- name: requeue_preparation(analysis)
SELECT requeue_job(id, NULL) FROM jobs
WHERE id = :analysis AND status IN ('failed', 'dead_letter', 'cancelled', 'paused');

-- name: replan_items_without_job(analysis)!
-- Items that failed without a job that could be retried.
UPDATE analysis_items i SET status = 'planned', job_id = NULL, error_code = NULL, error_message = NULL
WHERE analysis_id = :analysis AND status = 'failed' AND NOT EXISTS (
    SELECT FROM jobs j WHERE j.id = i.job_id AND j.status IN ('failed', 'dead_letter', 'cancelled'));

-- name: requeue_failed_jobs(analysis)
-- In the order in which the prompts run.
SELECT requeue_job(failed.id, NULL) FROM (
    SELECT j.id FROM jobs j LEFT JOIN analysis_items i ON i.job_id = j.id
    LEFT JOIN analysis_results r ON r.job_id = j.id
    LEFT JOIN segments s ON s.id = i.segment_id
    LEFT JOIN analysis_results p ON p.analysis_id = i.analysis_id AND p.prompt_id = i.prompt_id
    WHERE j.parent_id = :analysis AND j.status IN ('failed', 'dead_letter', 'cancelled', 'paused')
      AND (i.id IS NOT NULL OR r.prompt_id IS NOT NULL)
    ORDER BY p.execution_order, p.prompt_id, s.first) AS failed;

-- name: reset_failed_results(analysis)!
-- Results that failed, and answers with gaps that are asked again.
UPDATE analysis_results r SET status = 'pending', job_id = NULL, answer = NULL, citations = '[]', made_by = NULL,
    failed_models = '[]', completed_at = NULL, gaps = '[]', error_code = NULL, error_message = NULL
WHERE analysis_id = :analysis AND (status = 'failed' OR status = 'completed' AND EXISTS (
    SELECT FROM analysis_items i
    WHERE i.analysis_id = r.analysis_id AND i.prompt_id = r.prompt_id AND i.status = 'planned'));

-- name: has_open_work(analysis)
-- Whether something failed, or was never asked because the analysis was stopped.
SELECT EXISTS (SELECT FROM analysis_items WHERE analysis_id = :analysis AND status IN ('planned', 'failed'))
    OR EXISTS (SELECT FROM analysis_results WHERE analysis_id = :analysis AND status <> 'completed');

-- name: items_to_ask(analysis, item, prompt)
-- All items, those of a prompt, or one; a split item is represented by its parts.
SELECT id FROM analysis_items
WHERE analysis_id = :analysis AND status <> 'split' AND (:item::uuid IS NULL OR id = :item)
  AND (:prompt::uuid IS NULL OR prompt_id = :prompt);

-- name: discard_dead_items(analysis, items)
-- Dead letters of these items. They are discarded, so that they are not retried in addition to the new jobs.
SELECT cancel_job(dead.id, 'discarded') FROM (
    SELECT j.id FROM analysis_items i JOIN jobs j ON j.id = i.job_id
    WHERE i.id = ANY (:items) AND i.analysis_id = :analysis AND j.status = 'dead_letter' ORDER BY j.cap_key, j.id) AS dead;

-- name: replan_items(analysis, items)!
UPDATE analysis_items SET status = 'planned', generation = generation + 1, job_id = NULL, answer = NULL, made_by = NULL,
                          failed_models = '[]', done_at = NULL, error_code = NULL, error_message = NULL
WHERE id = ANY (:items) AND analysis_id = :analysis AND status IN ('done', 'failed');

-- name: consolidations_of_items(analysis, items)
-- Unfinished consolidation jobs of the prompts of these items, which will run again.
SELECT j.id FROM analysis_results r JOIN jobs j ON j.id = r.job_id
WHERE r.analysis_id = :analysis AND j.status IN ('queued', 'processing', 'paused', 'dead_letter') AND EXISTS (
    SELECT FROM analysis_items i WHERE i.id = ANY (:items) AND i.prompt_id = r.prompt_id AND i.status = 'planned')
ORDER BY j.cap_key, j.id;

-- name: detach_result(job)!
UPDATE analysis_results SET job_id = NULL, status = 'pending', error_code = NULL, error_message = NULL WHERE job_id = :job;

-- name: forget_results(analysis, items)!
-- The consolidated answers of the prompts of these items, which will run again.
UPDATE analysis_results r SET status = 'pending', generation = generation + 1, job_id = NULL, answer = NULL,
                              citations = '[]', made_by = NULL, failed_models = '[]', completed_at = NULL, gaps = '[]',
                              error_code = NULL, error_message = NULL
WHERE analysis_id = :analysis AND EXISTS (
    SELECT FROM analysis_items i WHERE i.id = ANY (:items) AND i.prompt_id = r.prompt_id AND i.status = 'planned');

-- name: open_analyses()
SELECT id FROM analyses WHERE status IN ('created', 'queued', 'analyzing') ORDER BY id;

-- name: hold_jobs_of(analysis)
SELECT hold_jobs_of(:analysis);

-- name: hold_open(analysis)
-- Locks an analysis that has not ended. `asks`: whether its items are planned.
SELECT phase IN ('processing', 'consolidating') AS asks FROM analyses
WHERE id = :analysis AND status IN ('created', 'queued', 'analyzing') FOR UPDATE;

-- name: detach_items_without_job(analysis)!
UPDATE analysis_items i SET job_id = NULL
WHERE analysis_id = :analysis AND status = 'planned' AND job_id IS NOT NULL AND NOT EXISTS (
    SELECT FROM jobs j WHERE j.id = i.job_id AND j.status IN ('queued', 'processing', 'paused'));

-- name: detach_results_without_job(analysis)!
UPDATE analysis_results r SET status = 'pending', job_id = NULL
WHERE analysis_id = :analysis AND status = 'running' AND NOT EXISTS (
    SELECT FROM jobs j WHERE j.id = r.job_id AND j.status IN ('queued', 'processing', 'paused'));

-- name: open_jobs(analysis)
-- Whether jobs started by an analysis are unfinished, whether any of its jobs is running, queued or paused, and whether it can
-- be abandoned. A paused job waits for its budget, however long that takes.
SELECT EXISTS (SELECT FROM jobs WHERE parent_id = :analysis AND status IN ('queued', 'processing', 'paused')) AS open,
       EXISTS (SELECT FROM jobs WHERE (id = :analysis OR parent_id = :analysis)
                 AND status IN ('queued', 'processing', 'paused')) AS active,
       EXISTS (SELECT FROM analyses WHERE id = :analysis AND status IN ('queued', 'analyzing')
                 AND progressed_at < engine_now() - interval '48 hours') AS idle_for_days;

-- name: report_stalled(analysis, seconds)!
-- Reports an analysis without progress, once until it makes progress again. Not while one of its jobs runs, is next in the queue, is
-- over budget or belongs to a paused import.
INSERT INTO events (process_id, kind, owner_id, document_id, detail)
SELECT a.id, 'analysis.stalled', a.owner_id, a.document_id, jsonb_strip_nulls(jsonb_build_object('reason', (
    SELECT j.note #>> '{error,message}' FROM jobs j WHERE j.parent_id = a.id AND j.status = 'queued' AND j.note ? 'error'
    ORDER BY j.queued_at DESC LIMIT 1)))
FROM analyses a
WHERE a.id = :analysis AND a.status = 'analyzing' AND a.progressed_at < engine_now() - make_interval(secs => :seconds)
  AND NOT EXISTS (SELECT FROM jobs j WHERE (j.id = a.id OR j.parent_id = a.id) AND (
      j.status IN ('processing', 'paused') OR j.status = 'queued' AND (j.run_after = 'infinity' OR j.admitted AND EXISTS (
          SELECT FROM workers w WHERE w.expires_at > engine_now()))))
  AND NOT EXISTS (SELECT FROM events e WHERE e.process_id = a.id AND e.kind = 'analysis.stalled' AND e.at > a.progressed_at);

-- name: delete_segment_files(analysis)!
-- Files that no other analysis of the document uses.
DELETE FROM artifacts f USING analyses a, segments s
WHERE a.id = :analysis AND s.analysis_id = a.id AND f.document_id = a.document_id AND f.revision = 0
  AND f.kind = segment_file(s) AND NOT EXISTS (
      SELECT FROM analyses b JOIN segments o ON o.analysis_id = b.id
      WHERE b.document_id = a.document_id AND b.id <> a.id AND segment_file(o) = f.kind);

-- name: delete_analysis(analysis)!
DELETE FROM analyses WHERE id = :analysis;

-- Views --------------------------------------------------------------------------------------------------------------

-- name: analyses(owner, id, id_part, document, running, after_at, after_id, most)
-- Analyses with their counts, newest first.
SELECT a.id, a.document_id, coalesce(d.title, d.filename) AS title, a.mode, a.at_once, a.status, a.phase, a.unit, a.units,
       a.error_code, a.error_message, a.created_at, a.completed_at, a.progressed_at,
       extract(epoch FROM coalesce(a.completed_at, engine_now()) - a.created_at)::double precision AS elapsed_seconds,
       extract(epoch FROM engine_now() - a.progressed_at)::double precision AS idle_seconds,
       (SELECT count(*) FROM workers w WHERE w.expires_at > engine_now()) AS live_workers,
       s.*, i.*, r.*, j.*, m.*, t.*
FROM analyses a JOIN documents d ON d.id = a.document_id
CROSS JOIN LATERAL (
    SELECT count(*) AS segments, count(*) FILTER (WHERE ready) AS segments_ready FROM segments o
    WHERE o.analysis_id = a.id AND NOT EXISTS (SELECT FROM segments part WHERE part.parent_id = o.id)) AS s
CROSS JOIN LATERAL (
    SELECT count(*) AS items, count(*) FILTER (WHERE status = 'done') AS items_done,
           count(*) FILTER (WHERE status = 'failed') AS items_failed,
           coalesce(bool_and(made_by = 'local') FILTER (WHERE status = 'done'), false) AS offline
    FROM analysis_items WHERE analysis_id = a.id AND status <> 'split') AS i
CROSS JOIN LATERAL (
    SELECT count(*) AS results, count(*) FILTER (WHERE status = 'completed') AS results_completed
    FROM analysis_results WHERE analysis_id = a.id) AS r
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE status = 'processing') AS running, count(*) FILTER (WHERE status = 'queued') AS waiting,
           count(*) FILTER (WHERE status = 'paused') AS paused,
           count(DISTINCT leased_by) AS workers, coalesce(sum(greatest(attempt - 1, 0)), 0) AS retries,
           -- The last heartbeat: progress of a job, or a heartbeat of a worker that runs one.
           greatest(max(o.progressed_at), max(w.heartbeat_at)) AS heartbeat_at
    FROM jobs o LEFT JOIN workers w ON w.id = o.leased_by WHERE o.parent_id = a.id OR o.id = a.id) AS j
CROSS JOIN LATERAL (
    SELECT count(*) AS samples, avg(seconds) AS mean_seconds,
           (percentile_cont(0.25) WITHIN GROUP (ORDER BY seconds)) AS low_seconds,
           (percentile_cont(0.75) WITHIN GROUP (ORDER BY seconds)) AS high_seconds
    FROM (SELECT extract(epoch FROM g.finished_at - g.started_at)::double precision AS seconds
          FROM analysis_items x JOIN job_stages g ON g.job_id = x.job_id AND g.stage = 'answered'
          WHERE x.analysis_id = a.id ORDER BY g.finished_at DESC LIMIT 50) AS last_ones) AS m
CROSS JOIN LATERAL (
    SELECT coalesce(sum(c.tokens_in + c.tokens_out), 0)::bigint AS tokens, coalesce(sum(c.cost_usd), 0) AS cost_usd
    FROM jobs q JOIN ai_calls c ON c.job_id = q.id WHERE q.parent_id = a.id) AS t
WHERE a.owner_id = :owner AND (:id::uuid IS NULL OR a.id = :id)
  AND (:id_part::text IS NULL OR starts_with(a.id::text, :id_part) OR right(a.id::text, length(:id_part)) = :id_part
      OR starts_with(right(a.id::text, 8), :id_part))
  AND (:document::uuid IS NULL OR a.document_id = :document)
  AND (:after_at::timestamptz IS NULL OR (a.created_at, a.id) < (:after_at, :after_id::uuid)) AND d.deleted_at IS NULL
  AND (NOT :running::boolean OR a.status IN ('queued', 'analyzing'))
ORDER BY a.created_at DESC, a.id DESC LIMIT :most;

-- name: is_owned(owner, analysis)
SELECT 1 FROM analyses a JOIN documents d ON d.id = a.document_id
WHERE a.id = :analysis AND a.owner_id = :owner AND d.deleted_at IS NULL;

-- name: errors(analysis, most)
-- The latest errors, including those that were resolved since.
SELECT e.at, e.detail #>> '{error,code}' AS code, e.detail #>> '{error,message}' AS message, e.process_id AS job_id
FROM jobs j JOIN events e ON e.process_id = j.id
WHERE (j.parent_id = :analysis OR j.id = :analysis) AND e.detail ? 'error'
ORDER BY e.id DESC LIMIT :most;

-- name: segments(analysis)
-- In page order; a split segment comes before its parts.
SELECT s.id, s.parent_id, s.first, s.last, s.first - s.context_first AS context, s.tokens, s.ready,
       EXISTS (SELECT FROM segments part WHERE part.parent_id = s.id) AS split,
       ARRAY(SELECT DISTINCT i.made_by FROM analysis_items i
             WHERE i.segment_id = s.id AND i.made_by IS NOT NULL ORDER BY 1) AS answered_by
FROM segments s WHERE s.analysis_id = :analysis ORDER BY s.first, s.last DESC, s.id;

-- name: cells(analysis)
-- The cells of the grid of segments and prompts.
SELECT i.id, i.segment_id, i.prompt_id,
       CASE WHEN i.status <> 'planned' THEN i.status WHEN j.status = 'processing' THEN 'running'
            WHEN j.status = 'paused' THEN 'paused' WHEN j.attempt > 0 THEN 'retrying' ELSE 'planned' END AS status,
       i.error_code, i.error_message, i.made_by = 'local' AS offline
FROM analysis_items i LEFT JOIN jobs j ON j.id = i.job_id WHERE i.analysis_id = :analysis;

-- name: items(analysis, id, after_order, after_prompt, after_first, after_id, most)
-- In the order in which they run. A planned item has the status of its job.
SELECT i.id, i.segment_id, i.prompt_id, r.title AS prompt_title, r.execution_order, s.first, s.last, i.generation, i.job_id,
       CASE WHEN i.status <> 'planned' THEN i.status WHEN j.status = 'processing' THEN 'running'
            WHEN j.status = 'paused' THEN 'paused' WHEN j.attempt > 0 THEN 'retrying' ELSE 'planned' END AS status,
       i.answer, i.made_by, i.failed_models, i.error_code, i.error_message, i.done_at, coalesce(j.attempt, 0) AS attempts,
       c.tokens, c.cost_usd, extract(epoch FROM g.finished_at - g.started_at)::double precision AS seconds
FROM analysis_items i JOIN segments s ON s.id = i.segment_id
JOIN analysis_results r ON r.analysis_id = i.analysis_id AND r.prompt_id = i.prompt_id
LEFT JOIN jobs j ON j.id = i.job_id
LEFT JOIN job_stages g ON g.job_id = i.job_id AND g.stage = 'answered' AND g.part = ''
CROSS JOIN LATERAL (
    SELECT coalesce(sum(tokens_in + tokens_out), 0)::bigint AS tokens, coalesce(sum(cost_usd), 0) AS cost_usd
    FROM ai_calls WHERE job_id = i.job_id) AS c
WHERE i.analysis_id = :analysis AND (:id::uuid IS NULL OR i.id = :id)
  AND (:after_id::uuid IS NULL
       OR (r.execution_order, r.prompt_id, s.first, i.id) > (:after_order, :after_prompt::uuid, :after_first, :after_id))
ORDER BY r.execution_order, r.prompt_id, s.first, i.id LIMIT :most;

-- name: results(analysis)
SELECT r.prompt_id, r.title, r.content AS prompt, r.system, r.version, r.execution_order, r.status, r.answer, r.citations,
       r.made_by, r.failed_models, r.error_code, r.error_message, r.completed_at, r.gaps, coalesce(j.attempt, 0) AS attempts,
       c.tokens, c.cost_usd, extract(epoch FROM r.completed_at - j.started_at)::double precision AS seconds,
       n.items, n.items_done, n.parts
FROM analysis_results r LEFT JOIN jobs j ON j.id = r.job_id
CROSS JOIN LATERAL (
    SELECT count(*) AS items, count(*) FILTER (WHERE i.status = 'done') AS items_done,
           coalesce(jsonb_agg(jsonb_build_object('first', s.first, 'last', s.last, 'answered_by', i.made_by)
                              ORDER BY s.first) FILTER (WHERE i.status = 'done'), '[]') AS parts
    FROM analysis_items i JOIN segments s ON s.id = i.segment_id
    WHERE i.analysis_id = r.analysis_id AND i.prompt_id = r.prompt_id AND i.status <> 'split') AS n
CROSS JOIN LATERAL (
    SELECT coalesce(sum(tokens_in + tokens_out), 0)::bigint AS tokens, coalesce(sum(cost_usd), 0) AS cost_usd
    FROM ai_calls WHERE job_id = r.job_id
        OR job_id IN (SELECT i.job_id FROM analysis_items i
                      WHERE i.analysis_id = r.analysis_id AND i.prompt_id = r.prompt_id)) AS c
WHERE r.analysis_id = :analysis ORDER BY r.execution_order, r.prompt_id;

-- Work ---------------------------------------------------------------------------------------------------------------

-- name: analysis(analysis)
-- The document of an analysis; nothing if it was deleted.
SELECT a.id, a.owner_id, a.document_id, a.revision, a.mode, a.unit, a.units, d.source_type, d.bytes, d.deleted_at IS NOT NULL
       AS deleted, coalesce(u.key, f.key) AS source_key, m.key AS markdown_key
FROM analyses a JOIN documents d ON d.id = a.document_id
LEFT JOIN artifacts f ON f.document_id = d.id AND f.kind = 'source' AND f.revision = 0
LEFT JOIN artifacts u ON u.document_id = d.id AND u.kind = 'unlocked' AND u.revision = 0
LEFT JOIN artifacts m ON m.document_id = d.id AND m.kind = 'markdown' AND m.revision = a.revision
WHERE a.id = :analysis;

-- name: page_lengths(document, revision)
SELECT number, char_end - char_start AS characters FROM pages
WHERE document_id = :document AND revision = :revision ORDER BY number;

-- name: page_ranges(document, revision, first, last)
SELECT number, char_start, char_end FROM pages
WHERE document_id = :document AND revision = :revision AND number BETWEEN :first AND :last ORDER BY number;

-- name: chunk_lengths(document, revision)
SELECT index + 1 AS number, length(content) AS characters FROM chunks
WHERE document_id = :document AND revision = :revision ORDER BY index;

-- name: chunk_texts(document, revision, first, last)
SELECT index + 1 AS number, content FROM chunks
WHERE document_id = :document AND revision = :revision AND index + 1 BETWEEN :first AND :last ORDER BY index;

-- name: set_planned(analysis, unit, units)!
UPDATE analyses SET status = 'analyzing', phase = 'uploading', unit = :unit, units = :units, progressed_at = engine_now()
WHERE id = :analysis;

-- name: insert_segments(analysis, parent, segments)!
INSERT INTO segments (id, analysis_id, parent_id, first, last, context_first, tokens, ready)
SELECT s.id, :analysis, :parent, s.first, s.last, s.context_first, s.tokens, s.ready
FROM jsonb_to_recordset(:segments) AS s (id uuid, first integer, last integer, context_first integer, tokens integer,
                                         ready boolean);

-- name: segments_to_cut(analysis)
SELECT id, first, last, context_first FROM segments WHERE analysis_id = :analysis AND NOT ready ORDER BY first;

-- name: set_ready(segment)!
UPDATE segments SET ready = true WHERE id = :segment;

-- name: lock_segment_files(document)!
-- Analyses of one document share its files, and the first to store one wins.
SELECT FROM documents WHERE id = :document FOR NO KEY UPDATE;

-- name: segment_file(document, kind)
SELECT key FROM artifacts WHERE document_id = :document AND revision = 0 AND kind = :kind;

-- name: note_progress(analysis)!
UPDATE analyses SET progressed_at = engine_now() WHERE id = :analysis;

-- name: set_processing(analysis)!
UPDATE analyses SET status = 'analyzing', phase = 'processing', progressed_at = engine_now() WHERE id = :analysis;

-- name: item(job)
-- The item of a job; nothing if it is no longer needed.
SELECT i.id, i.analysis_id, i.segment_id, i.prompt_id, i.generation, r.content AS question, r.system, s.first, s.last,
       s.context_first, encode(o.sha256, 'hex') AS sha256, f.key AS file_key,
       EXISTS (SELECT FROM segments part WHERE part.parent_id = s.id) AS is_cut
FROM analysis_items i JOIN segments s ON s.id = i.segment_id
JOIN analysis_results r ON r.analysis_id = i.analysis_id AND r.prompt_id = i.prompt_id
JOIN analyses a ON a.id = i.analysis_id
LEFT JOIN artifacts f ON f.document_id = a.document_id AND f.kind = segment_file(s) AND f.revision = 0
LEFT JOIN objects o ON o.key = f.key
WHERE i.job_id = :job AND i.status = 'planned';

-- name: summary_before(analysis, prompt, first)
-- The answer for the previous segment, if it already exists.
SELECT i.answer ->> 'summary' AS summary FROM analysis_items i JOIN segments s ON s.id = i.segment_id
WHERE i.analysis_id = :analysis AND i.prompt_id = :prompt AND i.status = 'done' AND s.last = :first - 1 LIMIT 1;

-- name: hold_analysis(analysis)
-- Locks the analysis before its items; every transaction that changes an item does so.
SELECT FROM analyses WHERE id = :analysis FOR UPDATE;

-- name: save_answer(item, job, answer, made_by, failed_models)!
UPDATE analysis_items SET status = 'done', answer = :answer, made_by = :made_by, failed_models = :failed_models,
                          done_at = engine_now()
WHERE id = :item AND job_id = :job AND status = 'planned';

-- name: hold_segment(segment)
-- Locks a segment, because only one transaction at a time can split it. Returns whether it is already split.
SELECT EXISTS (SELECT FROM segments part WHERE part.parent_id = s.id) FROM segments s WHERE s.id = :segment FOR UPDATE;

-- name: set_split(item, job)!
UPDATE analysis_items SET status = 'split' WHERE id = :item AND job_id = :job AND status = 'planned';

-- name: insert_parts(item)!
-- The parts of an item's segment, with the same prompt.
INSERT INTO analysis_items (id, analysis_id, segment_id, prompt_id, generation)
SELECT gen_random_uuid(), i.analysis_id, s.id, i.prompt_id, i.generation
FROM analysis_items i JOIN segments s ON s.parent_id = i.segment_id WHERE i.id = :item
ON CONFLICT (segment_id, prompt_id) DO NOTHING;

-- name: result(job)
SELECT r.analysis_id, r.prompt_id, r.content AS question, r.system, r.generation
FROM analysis_results r WHERE r.job_id = :job AND r.status = 'running';

-- name: answers(analysis, prompt)
SELECT s.first, s.last, i.answer, i.made_by, i.failed_models
FROM analysis_items i JOIN segments s ON s.id = i.segment_id
WHERE i.analysis_id = :analysis AND i.prompt_id = :prompt AND i.status = 'done' ORDER BY s.first;

-- name: has_failed(job)
SELECT 1 FROM analysis_items WHERE job_id = :job AND status = 'failed';

-- name: failed_items(analysis, prompt)
SELECT s.first, s.last, i.error_code AS code, i.error_message AS message
FROM analysis_items i JOIN segments s ON s.id = i.segment_id
WHERE i.analysis_id = :analysis AND i.prompt_id = :prompt AND i.status = 'failed' ORDER BY s.first;

-- name: save_result(analysis, prompt, job, answer, citations, made_by, failed_models, gaps)!
UPDATE analysis_results SET status = 'completed', answer = :answer, citations = :citations, made_by = :made_by,
                            failed_models = :failed_models, gaps = :gaps, completed_at = engine_now()
WHERE analysis_id = :analysis AND prompt_id = :prompt AND job_id = :job AND status = 'running';
