-- Documents whose job waits for a person: it has made no progress for ten minutes, or is over budget.
CREATE VIEW documents_held AS
SELECT d.id, d.owner_id
FROM jobs j JOIN documents d ON d.process_id = j.id
WHERE d.status = 'pending' AND d.deleted_at IS NULL AND NOT d.superseded
  AND (j.status = 'processing'
           AND greatest(j.progressed_at, j.started_at, j.created_at) < clock_timestamp() - interval '10 minutes'
       OR j.status = 'paused' AND j.note -> 'error' ->> 'code' = 'OVER_BUDGET');
