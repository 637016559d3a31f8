-- name: take_allowance(key, size, period, wanted)
SELECT granted, wait_seconds FROM take_allowance(:key, :size, :period, :wanted);

-- name: tokens_left(key)
SELECT tokens FROM allowances WHERE key = :key;

-- name: return_allowance(key, size)!
UPDATE allowances SET tokens = least(:size, tokens + 1) WHERE key = :key;

-- name: forget_allowances(seconds)!
-- Deletes buckets that were not used for so long that they are full again.
DELETE FROM allowances WHERE at < engine_now() - make_interval(secs => :seconds);

-- name: take_slot(key, process, most, silent_seconds)
SELECT take_slot(:key, :process, :most, :silent_seconds) AS taken;

-- name: keep_slots(keys, numbers, process)!
-- Writes how many slots a process really holds, and deletes those that it no longer holds.
WITH held AS (
    SELECT key, number FROM unnest(CAST(:keys AS text[]), CAST(:numbers AS integer[])) AS h (key, number)
), gone AS (
    DELETE FROM slots WHERE process = :process AND key NOT IN (SELECT key FROM held)
)
INSERT INTO slots AS s (key, process, number, seen_at) SELECT key, :process, number, clock_timestamp() FROM held
ON CONFLICT (key, process) DO UPDATE SET number = excluded.number, seen_at = excluded.seen_at;

-- name: return_slot(key, process)!
WITH left_over AS (UPDATE slots SET number = number - 1 WHERE key = :key AND process = :process AND number > 1)
DELETE FROM slots WHERE key = :key AND process = :process AND number = 1;

-- name: forget_slots(silent_seconds)!
DELETE FROM slots WHERE seen_at < clock_timestamp() - make_interval(secs => :silent_seconds);
