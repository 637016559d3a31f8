-- name: read(owner)
-- General budgets, and this month's spending of the owner and of all owners.
SELECT max(most_usd) FILTER (WHERE scope = 'document') AS document_usd,
       max(most_usd) FILTER (WHERE scope = 'owner') AS owner_usd, max(most_usd) FILTER (WHERE scope = 'month') AS month_usd,
       (SELECT coalesce(sum(reserved_usd + spent_usd), 0) FROM ai_spending
        WHERE key = ANY (spending_keys(:owner, NULL, engine_now())) AND starts_with(key, 'owner:')) AS spent_usd,
       (SELECT coalesce(sum(reserved_usd + spent_usd), 0) FROM ai_spending
        WHERE key = ANY (spending_keys(NULL, NULL, engine_now()))) AS everybody_usd
FROM budgets WHERE document_id IS NULL;

-- name: lock_ledger()!
SELECT take_ledger_turn();

-- name: set(scope, document, most)!
INSERT INTO budgets (scope, document_id, most_usd) VALUES (:scope, :document, :most)
ON CONFLICT (scope, document_id) DO UPDATE SET most_usd = excluded.most_usd, set_at = excluded.set_at;

-- name: unset(scope, document)!
DELETE FROM budgets WHERE scope = :scope AND document_id IS NOT DISTINCT FROM :document::uuid;

-- name: record_change(owner, detail)!
-- Budgets do not belong to a process, so the event uses the id of the user who changed them.
INSERT INTO events (process_id, kind, owner_id, detail) VALUES (:owner, 'budgets', :owner, :detail);

-- name: document(owner, document, usual)
-- A document's budget and spending, the amount its paused jobs need, and the budget that blocks the cheapest of them.
WITH refused AS (
    SELECT DISTINCT ON (c.job_id) c.estimate_usd FROM ai_calls c JOIN jobs j ON j.id = c.job_id
    WHERE c.document_id = :document AND c.fault = 'over_budget'
      AND j.status = 'paused' AND j.note #>> '{error,code}' = 'OVER_BUDGET'
    ORDER BY c.job_id, c.created_at DESC
), waiting AS (
    SELECT coalesce(sum(estimate_usd), 0) AS needed_usd, coalesce(min(estimate_usd), 0) AS least_usd, count(*) AS paused FROM refused
)
SELECT (SELECT most_usd FROM budgets WHERE document_id = :document) AS own_usd,
       general[1] AS usual_usd, general[2] AS most_usd,
       (SELECT coalesce(sum(reserved_usd + spent_usd), 0) FROM ai_spending WHERE key = 'document:' || :document::uuid) AS spent_usd,
       w.paused, w.needed_usd, passed.scope AS over
FROM waiting w CROSS JOIN budgets_in_force(NULL, :usual::numeric[]) AS general
LEFT JOIN LATERAL budget_passed(:owner, :document, engine_now(), w.least_usd, :usual::numeric[]) AS passed ON true;

-- name: resume(limits)
-- Resume paused jobs that fit into their budgets again: the budget must cover the refused call and those of all jobs
-- ahead of it in the queue that are resumed with it.
WITH paused AS MATERIALIZED (
    SELECT j.id, j.priority, j.virtual_time, refused.owner_id, refused.document_id, refused.estimate_usd
    FROM jobs j CROSS JOIN LATERAL (
        SELECT c.owner_id, c.document_id, c.estimate_usd FROM ai_calls c
        WHERE c.job_id = j.id AND c.fault = 'over_budget' ORDER BY c.created_at DESC LIMIT 1) AS refused
    WHERE j.status = 'paused' AND j.note #>> '{error,code}' = 'OVER_BUDGET'
    FOR UPDATE OF j SKIP LOCKED
), fitting AS (
    SELECT p.*, budgets_in_force(p.document_id, :limits::numeric[]) AS most,
           sum(estimate_usd) OVER (PARTITION BY document_id ORDER BY priority, virtual_time, id) AS of_document,
           sum(estimate_usd) OVER (PARTITION BY owner_id ORDER BY priority, virtual_time, id) AS of_owner,
           sum(estimate_usd) OVER (ORDER BY priority, virtual_time, id) AS of_all
    FROM paused p WHERE NOT EXISTS (
        SELECT FROM budget_passed(p.owner_id, p.document_id, engine_now(), p.estimate_usd, :limits::numeric[]))
), together AS MATERIALIZED (
    SELECT f.id FROM fitting f
    WHERE NOT EXISTS (
        SELECT FROM limit_passed(f.owner_id, f.document_id, engine_now(), f.of_document, ARRAY[f.most[1], NULL, NULL])
        UNION ALL
        SELECT FROM limit_passed(f.owner_id, f.document_id, engine_now(), f.of_owner, ARRAY[NULL, f.most[2], NULL])
        UNION ALL
        SELECT FROM limit_passed(f.owner_id, f.document_id, engine_now(), f.of_all, ARRAY[NULL, NULL, f.most[3]]))
)
SELECT requeue_job(id, NULL) FROM together;
