-- name: reuse(hash, owner, document, job)
-- The stored answer to an identical request. Records the reuse.
SELECT provider, model, response FROM reuse_answer(:hash, :owner, :document, :job);

-- name: reserve(call, hash, owner, document, job, token, purpose, provider, model, estimate, tokens, time_limit, request_rate, token_rate, max_wait, limits, allow_anonymous, failed)
-- Reserve budget before a call is sent.
SELECT verdict, seconds, scope, taken_usd, limit_usd
FROM reserve_call(:call, :hash, :owner, :document, :job, :token, :purpose, :provider, :model, :estimate, :tokens::integer,
                  :time_limit::float8, :request_rate::float8, :token_rate::float8, :max_wait::float8, :limits::numeric[],
                  :allow_anonymous, :failed);

-- name: settle(call, tokens_in, tokens_out, cost, seconds, response)
SELECT settle_call(:call, :tokens_in::integer, :tokens_out::integer, :cost::numeric, :seconds::float8, :response);

-- name: fail(call, fault, tokens_in, tokens_out, cost, seconds, trips_circuit, hold)
SELECT fail_call(:call, :fault, :tokens_in::integer, :tokens_out::integer, :cost::numeric, :seconds::float8, :trips_circuit,
                 :hold::float8);

-- name: maintain(kept_days)
-- Close abandoned calls and delete old answers.
SELECT tend_calls(make_interval(days => :kept_days));

-- name: wake_jobs()!
-- Ends the back-off of jobs that wait for a provider, if a provider has answered since they began to wait and is neither held
-- nor unavailable now. A job that fails again waits again, until the next answer.
WITH working AS (
    SELECT g.name, max(c.ended_at) AS answered_at
    FROM ai_gates g JOIN ai_calls c ON c.provider = g.name AND c.response IS NOT NULL
    WHERE g.open_until IS NULL AND g.failures = 0 AND c.ended_at > engine_now() - interval '1 hour' AND NOT EXISTS (
        SELECT FROM ai_gates held WHERE split_part(held.name, ':', 1) = g.name AND held.held_until > engine_now())
    GROUP BY g.name
), waiting AS (
    SELECT j.id FROM jobs j
    WHERE j.status = 'queued' AND j.run_after > engine_now() AND j.run_after < 'infinity' AND j.note #>> '{error,code}' = 'AI_UNAVAILABLE'
      AND j.queued_at < (SELECT max(answered_at) FROM working)
    ORDER BY j.id FOR UPDATE SKIP LOCKED
)
UPDATE jobs SET run_after = engine_now() FROM waiting WHERE jobs.id = waiting.id;

-- name: provider_file(provider, account, owner, sha256)
-- A file that the provider will keep long enough for another call.
SELECT name, uri FROM provider_files
WHERE provider = :provider AND account = :account AND owner_id = :owner AND sha256 = :sha256
  AND expires_at > engine_now() + interval '10 minutes';

-- name: keep_provider_file(provider, account, owner, sha256, name, uri, hours)!
INSERT INTO provider_files (provider, account, owner_id, sha256, name, uri, expires_at)
VALUES (:provider, :account, :owner, :sha256, :name, :uri, engine_now() + make_interval(hours => :hours))
ON CONFLICT (provider, account, owner_id, sha256) DO UPDATE SET name = excluded.name, uri = excluded.uri,
    expires_at = excluded.expires_at;

-- name: forget_provider_file(provider, account, owner, sha256)!
DELETE FROM provider_files
WHERE provider = :provider AND account = :account AND owner_id = :owner AND sha256 = :sha256;

-- name: usage_total(owner, month)
-- An owner's usage in a month.
WITH span AS (
    SELECT month AT TIME ZONE 'UTC' AS begins, (month + interval '1 month') AT TIME ZONE 'UTC' AS ends
    FROM (SELECT coalesce(to_date(:month::text, 'YYYY-MM'), date_trunc('month', engine_now() AT TIME ZONE 'UTC'))::timestamp
              AS month) AS m
)
SELECT to_char(s.begins AT TIME ZONE 'UTC', 'YYYY-MM') AS month,
       count(c.id) FILTER (WHERE c.state <> 'reserved' AND c.fault IS DISTINCT FROM 'over_budget') AS calls,
       coalesce(sum(c.tokens_in), 0) AS tokens_in, coalesce(sum(c.tokens_out), 0) AS tokens_out,
       coalesce(sum(c.cost_usd), 0) AS cost_usd,
       coalesce(sum(c.cost_usd) FILTER (WHERE c.is_estimated), 0) AS estimated_usd,
       coalesce(sum(c.estimate_usd) FILTER (WHERE c.state = 'reserved'), 0) AS reserved_usd,
       (SELECT count(*) FROM ai_reuses r WHERE r.owner_id = :owner AND r.at >= s.begins AND r.at < s.ends) AS reuses,
       (SELECT coalesce(sum(r.saved_usd), 0) FROM ai_reuses r WHERE r.owner_id = :owner AND r.at >= s.begins AND r.at < s.ends)
           AS saved_usd
FROM span s LEFT JOIN ai_calls c ON c.owner_id = :owner AND c.created_at >= s.begins AND c.created_at < s.ends
GROUP BY s.begins, s.ends;

-- name: usage_parts(owner, month)
-- The same month by purpose and model.
SELECT purpose, provider || ':' || model AS model, count(*) AS calls, count(*) FILTER (WHERE state = 'failed') AS failed,
       sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out, sum(cost_usd) AS cost_usd
FROM ai_calls
WHERE owner_id = :owner AND state <> 'reserved' AND fault IS DISTINCT FROM 'over_budget'
  AND created_at >= to_date(:month, 'YYYY-MM')::timestamp AT TIME ZONE 'UTC'
  AND created_at < (to_date(:month, 'YYYY-MM') + interval '1 month') AT TIME ZONE 'UTC'
GROUP BY purpose, provider, model ORDER BY cost_usd DESC, purpose, model;

-- name: usage_documents(owner, month, most)
-- The most expensive documents of the month.
SELECT d.id AS document_id, coalesce(nullif(d.title, ''), d.filename) AS title, count(*) AS calls, sum(c.cost_usd) AS cost_usd
FROM ai_calls c JOIN documents d ON d.id = c.document_id AND d.owner_id = :owner
WHERE c.owner_id = :owner AND c.state <> 'reserved' AND c.fault IS DISTINCT FROM 'over_budget'
  AND c.created_at >= to_date(:month, 'YYYY-MM')::timestamp AT TIME ZONE 'UTC'
  AND c.created_at < (to_date(:month, 'YYYY-MM') + interval '1 month') AT TIME ZONE 'UTC'
GROUP BY d.id, d.title, d.filename ORDER BY cost_usd DESC, d.id LIMIT :most;

-- name: usage_months(owner, most)
-- Cost of each of the latest months.
SELECT split_part(key, ':', 3) AS month, spent_usd AS cost_usd FROM ai_spending
WHERE key IN (SELECT 'owner:' || :owner || ':' || to_char(month - make_interval(months => ago), 'YYYY-MM')
              FROM generate_series(0, :most - 1) AS ago, date_trunc('month', engine_now() AT TIME ZONE 'UTC') AS month)
  AND spent_usd > 0
ORDER BY month DESC;

-- name: spent_by_all(month)
-- Cost of all owners together in a month.
SELECT coalesce(sum(spent_usd), 0) FROM ai_spending WHERE key = 'month:' || :month;
