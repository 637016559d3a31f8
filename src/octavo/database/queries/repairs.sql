-- Repairs of `octavo doctor --repair`: values that follow from other rows are computed again. Each returns the number of
-- changed rows, and runs in its own transaction.

-- name: lock_caps()!
-- A job takes or passes on a slot under this lock, so that nothing changes while the slots are counted.
SELECT FROM caps ORDER BY key FOR UPDATE;

-- name: count_caps()
WITH counted AS (
    SELECT caps.key, count(jobs.id) AS held FROM caps LEFT JOIN jobs ON jobs.cap_key = caps.key AND jobs.admitted GROUP BY caps.key
), changed AS (
    UPDATE caps SET taken = counted.held FROM counted WHERE caps.key = counted.key AND caps.taken <> counted.held RETURNING 1
)
SELECT count(*) FROM changed;

-- name: admit_waiting()
-- Gives free slots to waiting jobs; returns the number of caps that had both.
WITH idle AS (
    SELECT key FROM caps WHERE taken < most AND EXISTS (
        SELECT FROM jobs WHERE cap_key = caps.key AND status = 'queued' AND NOT admitted AND run_after IS NULL)
), admitted AS MATERIALIZED (
    SELECT admit_waiting(ARRAY(SELECT key FROM idle))
)
SELECT (SELECT count(*) FROM idle) FROM admitted;

-- name: take_over()
-- Jobs whose worker is gone are queued again.
SELECT pass_time(true);

-- name: lock_documents()!
-- Changes of documents wait until this transaction ends; reading does not.
LOCK TABLE documents, uploads, artifacts, conversion_files, objects, owner_usage IN SHARE ROW EXCLUSIVE MODE;

-- name: mirror_jobs()
-- The status of documents follows the status of their jobs.
WITH wanted AS (
    SELECT d.id, CASE WHEN j.status = 'complete' THEN 'completed'
                      WHEN j.status IN ('failed', 'dead_letter', 'cancelled') AND NOT d.needs_classification THEN 'failed'
                      WHEN j.status IN ('failed', 'dead_letter', 'cancelled') THEN 'completed' ELSE 'pending' END AS status
    FROM documents d JOIN jobs j ON j.id = d.process_id
), changed AS (
    UPDATE documents d SET status = wanted.status FROM wanted WHERE d.id = wanted.id AND d.status <> wanted.status RETURNING 1
)
SELECT count(*) FROM changed;

-- name: claim_contents()
-- A document that is neither canonical nor a duplicate becomes the one or the other.
WITH loose AS (
    SELECT DISTINCT ON (d.owner_id, d.sha256) u.id AS upload, d.id, d.owner_id, d.sha256
    FROM documents d JOIN uploads u ON u.document_id = d.id AND u.state = 'uploaded' AND u.owner_id = d.owner_id
    WHERE d.deleted_at IS NULL AND d.duplicate_of IS NULL AND NOT u.is_canonical
    ORDER BY d.owner_id, d.sha256, d.created_at, d.id
), claimed AS (
    UPDATE uploads SET is_canonical = true FROM loose
    WHERE uploads.id = loose.upload AND NOT EXISTS (
        SELECT FROM uploads c WHERE c.owner_id = loose.owner_id AND c.sha256 = loose.sha256 AND c.is_canonical)
    RETURNING 1
), marked AS (
    UPDATE documents d SET duplicate_of = c.document_id
    FROM loose JOIN uploads c ON c.owner_id = loose.owner_id AND c.sha256 = loose.sha256 AND c.is_canonical
    WHERE d.id = loose.id AND d.id <> c.document_id
    RETURNING 1
)
SELECT (SELECT count(*) FROM claimed) + (SELECT count(*) FROM marked);

-- name: order_versions()
WITH wanted AS (
    SELECT d.id, EXISTS (SELECT FROM documents newer WHERE newer.family_id = d.family_id AND newer.version > d.version
                             AND newer.deleted_at IS NULL) AS superseded
    FROM documents d
), changed AS (
    UPDATE documents d SET superseded = wanted.superseded FROM wanted WHERE d.id = wanted.id AND d.superseded <> wanted.superseded
    RETURNING 1
)
SELECT count(*) FROM changed;

-- name: count_references()
WITH counted AS (
    SELECT o.key, count(f.key) AS found
    FROM objects o LEFT JOIN (
        SELECT key FROM artifacts UNION ALL SELECT key FROM conversion_files UNION ALL SELECT key FROM archives) AS f ON f.key = o.key
    GROUP BY o.key
), changed AS (
    UPDATE objects SET refs = counted.found FROM counted WHERE objects.key = counted.key AND objects.refs <> counted.found
    RETURNING 1
)
SELECT count(*) FROM changed;

-- name: forget_unused_objects()
-- Rows of objects without a reference; the daily sweep removes the objects.
WITH gone AS (DELETE FROM objects WHERE refs = 0 RETURNING 1) SELECT count(*) FROM gone;

-- name: count_usage()
WITH counted AS (
    SELECT o.id AS owner_id, coalesce(sum(d.bytes), 0) AS bytes, count(d.id) AS documents
    FROM owners o LEFT JOIN documents d ON d.owner_id = o.id GROUP BY o.id
), changed AS (
    INSERT INTO owner_usage AS u (owner_id, bytes, documents)
    SELECT owner_id, bytes, documents FROM counted c
    WHERE documents > 0 OR EXISTS (SELECT FROM owner_usage WHERE owner_id = c.owner_id)
    ON CONFLICT (owner_id) DO UPDATE SET bytes = excluded.bytes, documents = excluded.documents
    WHERE (u.bytes, u.documents) IS DISTINCT FROM (excluded.bytes, excluded.documents)
    RETURNING 1
)
SELECT count(*) FROM changed;

-- name: forget_orphan_chunks()
WITH gone AS (
    DELETE FROM chunks c USING documents d
    WHERE d.id = c.document_id AND c.revision <> d.revision AND d.status <> 'pending' RETURNING 1
)
SELECT count(*) FROM gone;

-- name: lock_ledger()!
SELECT take_ledger_turn();

-- name: count_spending()
WITH counted AS (
    SELECT key, sum(CASE state WHEN 'reserved' THEN estimate_usd ELSE 0 END) AS reserved, sum(cost_usd) AS spent
    FROM ai_calls, unnest(spending_keys(owner_id, document_id, created_at)) AS key GROUP BY key
), every AS (
    SELECT key, coalesce(reserved, 0) AS reserved, coalesce(spent, 0) AS spent FROM counted FULL JOIN ai_spending USING (key)
), changed AS (
    INSERT INTO ai_spending AS s (key, reserved_usd, spent_usd) SELECT key, reserved, spent FROM every
    ON CONFLICT (key) DO UPDATE SET reserved_usd = excluded.reserved_usd, spent_usd = excluded.spent_usd
    WHERE (s.reserved_usd, s.spent_usd) <> (excluded.reserved_usd, excluded.spent_usd)
    RETURNING 1
)
SELECT count(*) FROM changed;
