-- name: circuits(gates)
-- The state of circuit breakers. A gate without failures may have no row.
SELECT g.name, coalesce(a.failures, 0) AS failures, a.open_until, a.open_until IS NOT NULL AND a.open_until <= engine_now() AS half_open
FROM unnest(:gates::text[]) WITH ORDINALITY AS g (name, place) LEFT JOIN ai_gates a ON a.name = g.name ORDER BY g.place;

-- name: try_now(gate)!
-- Ends the time for which a circuit breaker is open, so that the next call is sent as a test.
UPDATE ai_gates SET open_until = engine_now(), probe_until = NULL WHERE name = :gate AND open_until > engine_now();

-- name: wake_jobs(codes)!
-- Ends the back-off of jobs that wait because of an error whose code begins with `codes`. Other jobs keep their time.
UPDATE jobs SET run_after = engine_now()
WHERE status = 'queued' AND run_after > engine_now() AND run_after < 'infinity' AND starts_with(note #>> '{error,code}', :codes);
