-- name: threads(owner, after_at, after_id, most)
-- An owner's threads, the most recently used first.
SELECT t.id, t.title, t.scope, t.created_at, t.updated_at, (SELECT count(*) FROM turns u WHERE u.thread_id = t.id)::integer AS turns
FROM threads t
WHERE t.owner_id = :owner AND (:after_at::timestamptz IS NULL OR (t.updated_at, t.id) < (:after_at, :after_id::uuid))
ORDER BY t.updated_at DESC, t.id DESC LIMIT :most;

-- name: thread(owner, id)
SELECT t.id, t.title, t.scope, t.created_at, t.updated_at FROM threads t WHERE t.owner_id = :owner AND t.id = :id;

-- name: lock_thread(owner, id)
-- Locks a thread, so that its turns are numbered one after another.
SELECT t.id, t.scope, (SELECT count(*) FROM turns u WHERE u.thread_id = t.id)::integer AS turns
FROM threads t WHERE t.owner_id = :owner AND t.id = :id FOR NO KEY UPDATE;

-- name: turns(thread)
SELECT id, number, question, understood_as, status, answer, statements, citations, found, note, made_by,
       cost_usd::double precision, error, asked_at, answered_at
FROM turns WHERE thread_id = :thread ORDER BY number;

-- name: earlier_turns(thread, number, most)
-- The last answered turns before a turn, newest first.
SELECT question, understood_as, answer, statements, citations FROM turns
WHERE thread_id = :thread AND number < :number AND status = 'answered' ORDER BY number DESC LIMIT :most;

-- name: insert_thread(id, owner, title, scope)!
INSERT INTO threads (id, owner_id, title, scope) VALUES (:id, :owner, :title, :scope);

-- name: touch_thread(id, scope)!
UPDATE threads SET updated_at = clock_timestamp(), scope = :scope WHERE id = :id;

-- name: insert_turn(id, thread, question)
-- The caller has locked the thread, or has just created it.
INSERT INTO turns (id, thread_id, number, question)
SELECT :id, :thread, coalesce(max(number), 0) + 1, :question FROM turns WHERE thread_id = :thread
RETURNING id, number, attempt, question;

-- name: repeat_turn(thread, id)
-- Starts another attempt at the last turn. Its answer is kept until the new one is complete.
UPDATE turns SET attempt = attempt + 1 WHERE thread_id = :thread AND id = :id
  AND number = (SELECT max(number) FROM turns WHERE thread_id = :thread)
RETURNING id, number, attempt, question;

-- name: finish_turn(id, attempt, understood_as, answer, statements, citations, found, note, made_by, cost_usd)!
-- Stores an answer, unless a later attempt has started or the thread was deleted.
UPDATE turns SET status = 'answered', understood_as = :understood_as, answer = :answer, statements = :statements, citations = :citations,
                 found = :found, note = :note, made_by = :made_by, cost_usd = cost_usd + :cost_usd, error = NULL,
                 answered_at = clock_timestamp()
WHERE id = :id AND attempt = :attempt;

-- name: fail_turn(id, attempt, error)!
-- Stores why there is no answer. An answer of an earlier attempt is kept.
UPDATE turns SET status = 'failed', error = :error WHERE id = :id AND attempt = :attempt AND status <> 'answered';

-- name: delete_thread(owner, id)
DELETE FROM threads WHERE owner_id = :owner AND id = :id RETURNING id;

-- name: forget_threads(days)!
-- Threads without a new question for this many days.
DELETE FROM threads WHERE updated_at < clock_timestamp() - make_interval(days => :days);

-- name: cited_places(owner, cited)
-- Where citations are now: the chunk that contains the quote. No chunk: the text has changed. No row: the document was deleted.
SELECT c.place, coalesce(same.id, now.id) AS chunk_id, d.source_type, d.page_count
FROM jsonb_to_recordset(:cited) AS c (place integer, document_id uuid, chunk_id uuid, quote text)
JOIN documents d ON d.id = c.document_id AND d.owner_id = :owner AND d.deleted_at IS NULL
LEFT JOIN chunks same ON same.id = c.chunk_id AND same.document_id = d.id AND same.revision = d.revision
LEFT JOIN LATERAL (
    SELECT o.id FROM chunks o WHERE same.id IS NULL AND o.document_id = d.id AND o.revision = d.revision
      AND position(c.quote IN o.content) > 0 ORDER BY o.index LIMIT 1) AS now ON true;
