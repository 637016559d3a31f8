-- name: documents(owner, document, documents, id_part, status, tab, tag, collection, like, kind, sender, before, after, field, field_value, amount_min, amount_max, language, size_min, size_max, import_id, trashed, versions, sort, descending, after_at, after_text, after_id, most)
-- The only query that lists documents of an owner: newest first, oldest first, by title or by a fact. The planner removes unused
-- conditions, so that each order can use its index: also the latest dates and the highest amounts first. Sorted by a fact, documents
-- without it come last.
SELECT d.id, coalesce(nullif(d.title, ''), d.filename) AS title, d.filename, d.status, d.quality, d.text_ready,
       d.embeddings_ready, d.needs_classification, d.source_type, d.source_url, d.content_type, d.page_count, d.word_count,
       d.author, d.language, d.document_date, d.summary, d.described_by, c.name AS collection, encode(d.sha256, 'hex') AS sha256, d.bytes,
       d.duplicate_of, d.version, d.superseded, d.revision, d.metadata, d.download_count, d.first_downloaded_at, d.created_at, d.updated_at,
       d.deleted_at, d.expires_on, d.process_id, d.kind, d.sender, d.amount::float8 AS amount, d.currency, j.error_code, j.error_message,
       coalesce((SELECT spent_usd FROM ai_spending WHERE key = 'document:' || d.id), 0) AS cost_usd,
       CASE WHEN d.needs_classification THEN array_remove(ARRAY[
           CASE WHEN j.input ->> 'extraction' <> 'plain'
               AND NOT EXISTS (SELECT FROM job_stages WHERE job_id = j.id AND stage = 'rewritten') THEN 'text_by_model' END,
           CASE WHEN NOT EXISTS (SELECT FROM job_stages WHERE job_id = j.id AND stage = 'classified')
               AND (d.described_by IS NULL OR EXISTS (SELECT FROM job_stages WHERE job_id = j.id)) THEN 'description' END,
           CASE WHEN EXISTS (SELECT FROM chunks WHERE document_id = d.id AND revision = d.revision AND made_by IS NULL)
               THEN 'chunk_descriptions' END,
           CASE WHEN NOT d.embeddings_ready AND EXISTS (SELECT FROM chunks WHERE document_id = d.id AND revision = d.revision)
               THEN 'vectors' END], NULL) ELSE '{}' END AS missing,
       CASE WHEN :sort = 'title' THEN lower(coalesce(nullif(d.title, ''), d.filename)) ELSE o.key END AS order_text
FROM documents d
LEFT JOIN jobs j ON j.id = d.process_id
LEFT JOIN collections c ON c.id = d.collection_id
CROSS JOIN LATERAL (SELECT CASE :sort
    WHEN 'kind' THEN d.kind
    WHEN 'sender' THEN lower(d.sender)
    WHEN 'date' THEN to_char(d.document_date, 'YYYY-MM-DD')
    WHEN 'amount' THEN to_char(d.amount + 10::numeric ^ 15, 'FM0000000000000000.000000')
    WHEN 'language' THEN d.language
    WHEN 'collection' THEN lower(c.name)
    WHEN 'size' THEN to_char(d.bytes, 'FM0000000000000000000')
    WHEN 'state' THEN d.status END COLLATE "C" AS key) AS o
WHERE d.owner_id = :owner
  AND (d.deleted_at IS NOT NULL) = :trashed
  AND (:versions OR NOT d.superseded)
  AND (:document::uuid IS NULL OR d.id = :document)
  AND (:documents::uuid[] IS NULL OR d.id = ANY (:documents))
  AND (:id_part::text IS NULL OR starts_with(d.id::text, :id_part) OR right(d.id::text, length(:id_part)) = :id_part
      OR starts_with(right(d.id::text, 8), :id_part))
  AND (:status::text IS NULL OR d.status = :status)
  AND (:collection::text IS NULL OR lower(c.name) = lower(:collection))
  AND (:like::text IS NULL OR d.title ILIKE :like OR d.filename ILIKE :like OR d.author ILIKE :like)
  AND (:kind::text IS NULL OR d.kind = :kind)
  AND (:sender::text IS NULL OR d.sender ILIKE :sender)
  AND (:before::date IS NULL OR d.document_date < :before)
  AND (:after::date IS NULL OR d.document_date >= :after)
  AND (:amount_min::numeric IS NULL OR d.amount >= :amount_min)
  AND (:amount_max::numeric IS NULL OR d.amount <= :amount_max)
  AND (:language::text IS NULL OR d.language = :language OR starts_with(d.language, :language || '-'))
  AND (:size_min::bigint IS NULL OR d.bytes >= :size_min)
  AND (:size_max::bigint IS NULL OR d.bytes <= :size_max)
  AND (:import_id::uuid IS NULL OR d.import_id IN (SELECT i.id FROM imports i WHERE i.owner_id = :owner AND :import_id IN (i.id, i.key)))
  AND (:tag::text IS NULL OR EXISTS (
      SELECT FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
      WHERE dt.document_id = d.id AND t.owner_id = :owner AND lower(t.name) = lower(:tag)))
  AND (:field::text IS NULL OR EXISTS (
      SELECT FROM document_fields v JOIN fields f ON f.id = v.field_id
      WHERE v.document_id = d.id AND f.owner_id = :owner AND lower(f.name) = lower(:field)
        AND (:field_value::text IS NULL OR lower(v.value) = lower(:field_value))))
  AND (:tab::text IS NULL OR CASE :tab
      WHEN 'working' THEN d.status = 'pending' AND d.id <> ALL (ARRAY(SELECT id FROM documents_held WHERE owner_id = :owner))
      WHEN 'needs_you' THEN d.status = 'completed' AND (d.needs_classification OR d.quality IN ('partial', 'empty')
          -- As in the count of this tab.
          AND (d.quality = 'partial' AND NOT (d.source_type = 'image' AND d.kind IS NOT DISTINCT FROM 'photo') OR d.metadata ? 'pages_for_ocr'
               OR d.metadata ? 'unreadable' AND d.metadata ->> 'unreadable_code' IS DISTINCT FROM 'TOO_LARGE'))
          OR d.id = ANY (ARRAY(SELECT id FROM documents_held WHERE owner_id = :owner))
      WHEN 'failed' THEN d.status = 'failed'
      ELSE d.quality = 'stored_only' END)
  AND (:after_id::uuid IS NULL OR CASE :sort
      WHEN 'title' THEN (lower(coalesce(nullif(d.title, ''), d.filename)), d.id) > (:after_text::text, :after_id::uuid)
      WHEN 'oldest' THEN (d.created_at, d.id) > (:after_at::timestamptz, :after_id::uuid)
      WHEN 'newest' THEN (d.created_at, d.id) < (:after_at::timestamptz, :after_id::uuid)
      ELSE CASE WHEN :after_text::text IS NULL THEN o.key IS NULL AND d.id < :after_id::uuid
                ELSE o.key IS NULL OR (o.key = :after_text::text COLLATE "C" AND d.id < :after_id::uuid)
                     OR CASE WHEN :descending THEN o.key < :after_text::text COLLATE "C"
                             ELSE o.key > :after_text::text COLLATE "C" END END END)
ORDER BY CASE WHEN :sort = 'title' THEN lower(coalesce(nullif(d.title, ''), d.filename)) END,
         CASE WHEN :sort IN ('newest', 'oldest', 'title') OR :descending THEN NULL ELSE o.key END NULLS LAST,
         CASE WHEN :sort = 'date' AND :descending THEN d.document_date END DESC NULLS LAST,
         CASE WHEN :sort = 'amount' AND :descending THEN d.amount END DESC NULLS LAST,
         CASE WHEN :sort IN ('newest', 'oldest', 'title', 'date', 'amount') OR NOT :descending THEN NULL ELSE o.key END DESC NULLS LAST,
         CASE WHEN :sort = 'newest' THEN d.created_at END DESC,
         CASE WHEN :sort = 'oldest' THEN d.created_at END,
         CASE WHEN :sort IN ('oldest', 'title') THEN d.id END,
         d.id DESC
LIMIT :most;

-- name: count_kept(owner, name, value)
-- The number of documents of a kind or a language, as `documents` filters them.
SELECT coalesce(sum(documents), 0)::integer AS number FROM document_counts
WHERE owner_id = :owner AND name = :name AND (value = :value OR :name = 'language' AND starts_with(value, :value || '-'));

-- name: parts(owner, document, after, most)
-- The documents that are parts of this one, in the order of the file. A copy has the parts of the document with the same content.
SELECT p.number, p.document_id
FROM documents d
JOIN document_parts p ON p.parent_id IN (d.id, d.duplicate_of)
JOIN documents c ON c.id = p.document_id AND c.owner_id = :owner AND c.deleted_at IS NULL
WHERE d.id = :document AND d.owner_id = :owner AND p.number > :after
ORDER BY p.number, p.parent_id = d.id LIMIT :most;

-- name: parents(documents)
-- The archive or email that each document was first found in, if it is not in the trash.
SELECT DISTINCT ON (p.document_id) p.document_id, p.parent_id, p.name
FROM document_parts p JOIN documents o ON o.id = p.parent_id AND o.deleted_at IS NULL
WHERE p.document_id = ANY (:documents) ORDER BY p.document_id, p.added_at, p.parent_id;

-- name: unsure_pages(documents)
-- How many pages of each document may be wrong, and the first of them.
SELECT d.id, count(*) AS pages, min(p.number) AS first, (array_agg(p.unsure ORDER BY p.number))[1] AS reason
FROM documents d JOIN pages p ON p.document_id = d.id AND p.revision = d.revision
WHERE d.id = ANY (:documents) AND p.unsure IS NOT NULL GROUP BY d.id;

-- name: tags_of(documents)
SELECT dt.document_id, t.name FROM document_tags dt JOIN tags t ON t.id = dt.tag_id
WHERE dt.document_id = ANY (:documents) ORDER BY dt.document_id, lower(t.name);

-- name: jobs_of(documents)
SELECT document_id, id, kind, status FROM jobs WHERE document_id = ANY (:documents) ORDER BY document_id, created_at, id;

-- name: other_names(documents)
-- Names of uploads of the same bytes that were not stored again.
SELECT DISTINCT u.document_id, u.filename FROM uploads u JOIN documents d ON d.id = u.document_id
WHERE u.document_id = ANY (:documents) AND u.state = 'deduplicated' AND u.filename <> d.filename
ORDER BY u.document_id, u.filename;

-- name: artifact(owner, document, kind, name)
-- One file of a document's current revision.
SELECT a.key, a.content_type, o.bytes, encode(o.sha256, 'hex') AS sha256, d.filename, d.process_id
FROM documents d
JOIN artifacts a ON a.document_id = d.id AND a.revision IN (0, d.revision) AND a.kind = :kind AND a.name = :name
JOIN objects o ON o.key = a.key
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL
ORDER BY a.revision DESC LIMIT 1;

-- name: source_file(owner, document)
-- The source of a document: the fetched page if it is a link, otherwise the upload. Before the first revision is complete, it
-- is the page fetched for that revision.
SELECT a.key, a.content_type, o.bytes, encode(o.sha256, 'hex') AS sha256, d.filename, d.process_id
FROM documents d
JOIN artifacts a ON a.document_id = d.id AND a.kind IN ('source', 'page_raw', 'transcript_raw')
                AND (a.revision IN (0, d.revision) OR d.revision = 0)
JOIN objects o ON o.key = a.key
WHERE d.id = :document AND d.owner_id = :owner AND d.deleted_at IS NULL
ORDER BY a.kind = 'source', a.revision DESC LIMIT 1;

-- name: source_files(owner, documents)
-- The sources of many documents, as in `source_file`.
SELECT DISTINCT ON (d.id) a.key, a.content_type, o.bytes, encode(o.sha256, 'hex') AS sha256, d.filename, d.process_id
FROM documents d
JOIN artifacts a ON a.document_id = d.id AND a.kind IN ('source', 'page_raw', 'transcript_raw')
                AND (a.revision IN (0, d.revision) OR d.revision = 0)
JOIN objects o ON o.key = a.key
WHERE d.id = ANY (:documents) AND d.owner_id = :owner AND d.deleted_at IS NULL
ORDER BY d.id, a.kind = 'source', a.revision DESC;

-- name: count_downloads(owner, documents)!
-- Counts the download of many documents and records events.
WITH counted AS (
    UPDATE documents SET download_count = download_count + 1,
                         first_downloaded_at = coalesce(first_downloaded_at, clock_timestamp())
    WHERE id = ANY (:documents) AND owner_id = :owner AND deleted_at IS NULL RETURNING id, owner_id, process_id
)
INSERT INTO events (process_id, kind, owner_id, document_id, detail)
SELECT process_id, 'downloaded', owner_id, id, '{}' FROM counted;

-- name: count_download(document)!
-- Counts the download and records an event.
WITH counted AS (
    UPDATE documents SET download_count = download_count + 1,
                         first_downloaded_at = coalesce(first_downloaded_at, clock_timestamp())
    WHERE id = :document RETURNING id, owner_id, process_id
)
INSERT INTO events (process_id, kind, owner_id, document_id, detail)
SELECT process_id, 'downloaded', owner_id, id, '{}' FROM counted;

-- name: chunks(document, after, most)
SELECT c.id, c.index, c.content, c.char_start AS start, c.char_end AS "end", c.page_from, c.page_to, c.heading_path,
       c.themes, c.tone, c.importance, c.summary, c.made_by, c.seconds, c.boxes,
       coalesce((SELECT jsonb_agg(jsonb_build_object('text', k.concept, 'importance', k.importance)
                                  ORDER BY k.importance DESC, k.concept)
                 FROM chunk_concepts k WHERE k.chunk_id = c.id), '[]') AS concepts
FROM chunks c JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
WHERE d.id = :document AND c.index > :after
ORDER BY c.index LIMIT :most;

-- name: events_of(document, after, most)
-- All events of a document's jobs, oldest first.
SELECT e.id, e.at, e.kind, e.process_id, e.document_id, e.detail
FROM events e
WHERE e.process_id IN (SELECT id FROM jobs WHERE document_id = :document
                       UNION SELECT process_id FROM documents WHERE id = :document)
  AND e.id > :after
ORDER BY e.id LIMIT :most;

-- name: hold_owner(owner)!
-- Prevents a merge of this owner until the transaction ends. Always take this lock first, because a merge takes all others.
SELECT FROM owners WHERE id = :owner FOR SHARE;

-- name: lock_jobs_of(documents)!
-- Locked before their documents, in the same order as workers do, to avoid deadlocks.
SELECT FROM jobs WHERE document_id = ANY (:documents) OR parent_id IN (SELECT id FROM jobs WHERE document_id = ANY (:documents))
ORDER BY id FOR UPDATE;

-- name: lock_documents(owner, documents)
-- Locks documents until the transaction ends, always in the same order.
SELECT id, owner_id, process_id, status, quality, revision, last_revision, needs_classification, source_type, deleted_at,
       encode(sha256, 'hex') AS sha256
FROM documents WHERE id = ANY (:documents) AND owner_id = :owner
ORDER BY id FOR NO KEY UPDATE;

-- name: edit(documents, fields, set_collection, collection, set_expires_on, expires_on)!
UPDATE documents SET
    edited = ARRAY(SELECT DISTINCT unnest(edited || :fields::text[]) ORDER BY 1),
    collection_id = CASE WHEN :set_collection THEN :collection::uuid ELSE collection_id END,
    expires_on = CASE WHEN :set_expires_on THEN :expires_on::date ELSE expires_on END,
    updated_at = clock_timestamp()
WHERE id = ANY (:documents);

-- name: ensure_tags(owner, ids, names)
-- Tags by name, created if needed; the first spelling is kept.
WITH wanted AS (
    SELECT DISTINCT ON (lower(name)) id, name FROM unnest(:ids::uuid[], :names::text[]) AS w (id, name) ORDER BY lower(name)
), made AS (
    INSERT INTO tags (id, owner_id, name) SELECT id, :owner, name FROM wanted
    ON CONFLICT (owner_id, lower(name)) DO UPDATE SET name = tags.name
    RETURNING id
)
SELECT id FROM made;

-- name: set_tags(documents, tags)!
WITH gone AS (DELETE FROM document_tags WHERE document_id = ANY (:documents) AND NOT tag_id = ANY (:tags::uuid[]))
INSERT INTO document_tags (document_id, tag_id) SELECT d.id, t.id FROM unnest(:documents::uuid[]) AS d (id), unnest(:tags::uuid[]) AS t (id)
ON CONFLICT DO NOTHING;

-- name: add_tags(documents, tags)!
INSERT INTO document_tags (document_id, tag_id) SELECT d.id, t.id FROM unnest(:documents::uuid[]) AS d (id), unnest(:tags::uuid[]) AS t (id)
ON CONFLICT DO NOTHING;

-- name: remove_tags(owner, documents, names)!
DELETE FROM document_tags dt USING tags t
WHERE dt.document_id = ANY (:documents) AND t.id = dt.tag_id AND t.owner_id = :owner
  AND lower(t.name) IN (SELECT lower(name) FROM unnest(:names::text[]) AS n (name));

-- name: most_tagged(documents)
-- The largest number of tags that one of these documents has.
SELECT coalesce(max(number), 0) AS number
FROM (SELECT count(*) AS number FROM document_tags WHERE document_id = ANY (:documents) GROUP BY document_id) AS counted;

-- name: tags_without_vectors(tags)
SELECT t.id FROM tags t WHERE t.id = ANY (:tags) AND NOT EXISTS (SELECT FROM tag_embeddings e WHERE e.tag_id = t.id);

-- name: describe(document, summary, details, made_by)
-- Saves a description, and returns whether the tags can be set too.
UPDATE documents SET summary = nullif(:summary, ''), metadata = metadata || :details, described_by = :made_by,
                     updated_at = clock_timestamp()
WHERE id = :document RETURNING owner_id, NOT 'tags' = ANY (edited), revision;

-- name: forget_described_tags(document)!
DELETE FROM document_tags WHERE document_id = :document AND made_by IS NOT NULL;

-- name: add_described_tags(document, tags, made_by)!
INSERT INTO document_tags (document_id, tag_id, made_by) SELECT :document, unnest(:tags::uuid[]), :made_by
ON CONFLICT DO NOTHING;

-- name: ensure_collection(owner, id, name)
INSERT INTO collections (id, owner_id, name) VALUES (:id, :owner, :name)
ON CONFLICT (owner_id, lower(name)) DO UPDATE SET name = collections.name
RETURNING id, xmax = 0 AS is_new;

-- name: collections(owner)
SELECT c.id, c.name, c.created_at, c.keep_days, coalesce(n.documents, 0)::integer AS documents
FROM collections c LEFT JOIN (
    SELECT value, sum(documents) AS documents FROM document_counts WHERE owner_id = :owner AND name = 'collection' GROUP BY 1
) AS n ON n.value = c.id::text
WHERE c.owner_id = :owner ORDER BY lower(c.name);

-- name: rename_collection(owner, id, name)
UPDATE collections SET name = :name WHERE id = :id AND owner_id = :owner RETURNING id;

-- name: delete_collection(owner, id)
DELETE FROM collections WHERE id = :id AND owner_id = :owner RETURNING id;

-- name: tags(owner)
SELECT t.name, n.documents
FROM (SELECT value::uuid AS id, sum(documents)::integer AS documents FROM document_counts
      WHERE owner_id = :owner AND name = 'tag' GROUP BY 1 HAVING sum(documents) > 0) AS n
JOIN tags t ON t.id = n.id
WHERE t.owner_id = :owner ORDER BY n.documents DESC, lower(t.name);

-- name: record(kind, documents, detail)!
-- Records an action on documents as events of their jobs.
INSERT INTO events (process_id, kind, owner_id, document_id, detail)
SELECT process_id, :kind, owner_id, id, :detail FROM documents WHERE id = ANY (:documents);

-- name: trash(documents)!
UPDATE documents SET deleted_at = clock_timestamp(), updated_at = clock_timestamp() WHERE id = ANY (:documents);

-- name: release_uploads(documents)!
-- A deleted document no longer blocks its content.
UPDATE uploads SET state = 'deleted', is_canonical = false
WHERE document_id = ANY (:documents) AND state = 'uploaded';

-- name: settle_contents(documents)!
-- The oldest remaining document of a content becomes canonical, and the others its duplicates.
WITH left_over AS (
    SELECT d.id, u.id AS upload, a.key, u.is_canonical,
           row_number() OVER (PARTITION BY d.owner_id, d.sha256 ORDER BY u.is_canonical DESC, d.created_at, d.id) AS place,
           first_value(d.id) OVER (PARTITION BY d.owner_id, d.sha256 ORDER BY u.is_canonical DESC, d.created_at, d.id) AS first
    FROM (SELECT DISTINCT owner_id, sha256 FROM documents WHERE id = ANY (:documents)) AS c
    JOIN documents d ON d.owner_id = c.owner_id AND d.sha256 = c.sha256 AND d.deleted_at IS NULL AND d.id <> ALL (:documents)
    JOIN uploads u ON u.document_id = d.id AND u.state = 'uploaded'
    LEFT JOIN artifacts a ON a.document_id = d.id AND a.kind = 'source' AND a.revision = 0
), promoted AS (
    UPDATE uploads SET is_canonical = true, object_key = l.key
    FROM left_over l WHERE uploads.id = l.upload AND l.place = 1 AND NOT l.is_canonical
)
UPDATE documents SET duplicate_of = nullif(l.first, l.id), updated_at = clock_timestamp()
FROM left_over l WHERE documents.id = l.id AND documents.duplicate_of IS DISTINCT FROM nullif(l.first, l.id);

-- name: restore(documents)!
-- A day that has passed no longer counts. Otherwise, the document would be moved to the trash again.
UPDATE documents SET deleted_at = NULL, updated_at = clock_timestamp(),
    expires_on = CASE WHEN expires_on > (clock_timestamp() AT TIME ZONE 'UTC')::date THEN expires_on END
WHERE id = ANY (:documents);

-- name: reclaim_uploads(owner, documents)!
-- Restored from the trash: canonical again, or a duplicate if another document has the content now.
WITH mine AS (
    SELECT u.id, u.document_id,
           (SELECT key FROM artifacts a WHERE a.document_id = u.document_id AND a.kind = 'source' AND a.revision = 0) AS key,
           coalesce((SELECT other.document_id FROM uploads other
                     WHERE other.owner_id = u.owner_id AND other.sha256 = u.sha256 AND other.is_canonical),
                    nullif(first_value(u.document_id) OVER (PARTITION BY u.sha256 ORDER BY u.document_id), u.document_id)) AS other
    FROM uploads u WHERE u.document_id = ANY (:documents) AND u.owner_id = :owner AND u.state = 'deleted'
), claimed AS (
    UPDATE uploads SET state = 'uploaded', is_canonical = mine.other IS NULL,
                       object_key = CASE WHEN mine.other IS NULL THEN mine.key END
    FROM mine WHERE uploads.id = mine.id
)
UPDATE documents SET duplicate_of = mine.other FROM mine WHERE documents.id = mine.document_id;

-- name: resume_stopped(documents)
-- Queues the jobs again that were cancelled when their documents were deleted.
SELECT requeue_job(j.id, NULL) FROM documents d JOIN jobs j ON j.id = d.process_id
WHERE d.id = ANY (:documents) AND d.status = 'failed' AND j.status = 'cancelled' ORDER BY j.id;

-- name: stop_jobs(documents)!
SELECT stop_jobs(:documents);

-- name: purge(documents)
-- Permanent: deletes rows now and returns the keys to remove from the bucket afterwards.
WITH kept AS (
    SELECT DISTINCT a.key FROM artifacts a WHERE a.document_id = ANY (:documents)
), gone AS (
    DELETE FROM documents WHERE id = ANY (:documents) RETURNING id
)
SELECT key FROM kept WHERE EXISTS (SELECT FROM gone);

-- name: delete_jobs_of(documents)!
DELETE FROM jobs WHERE document_id = ANY (:documents);

-- name: delete_unused_objects(keys)
DELETE FROM objects WHERE key = ANY (:keys) AND refs = 0 RETURNING key;

-- name: delete_kept_objects()
-- Rows of objects that were not deleted because a backup was running.
DELETE FROM objects WHERE refs = 0 RETURNING key;

-- name: begin_revision(document, process)
-- The number of the next revision, taken while the document is locked.
UPDATE documents SET last_revision = last_revision + 1, process_id = :process, status = 'pending',
                     updated_at = clock_timestamp()
WHERE id = :document RETURNING last_revision;

-- name: inherit_stages(document, revision, job, before, before_revision, stage)
-- Copies the stages before the given one, with their files, from an earlier revision to a new one, which continues there. The times are
-- copied, too: they tell which files belong to which stages when a later revision continues from this one.
WITH first AS (
    SELECT min(finished_at) AS at FROM job_stages WHERE job_id = :before AND stage = :stage
), stages AS (
    INSERT INTO job_stages (job_id, stage, part, output, attempt, started_at, finished_at)
    SELECT :job, s.stage, s.part, s.output, s.attempt, s.started_at, s.finished_at
    FROM job_stages s, first WHERE s.job_id = :before AND s.finished_at < first.at
    RETURNING finished_at
), files AS (
    INSERT INTO artifacts (id, document_id, job_id, kind, name, revision, key, content_type, created_at)
    SELECT gen_random_uuid(), a.document_id, :job, a.kind, a.name, :revision, a.key, a.content_type, a.created_at
    FROM artifacts a
    WHERE a.document_id = :document AND a.revision = :before_revision
      AND a.created_at <= (SELECT max(finished_at) FROM stages)
), told AS (
    UPDATE jobs SET stage = 'inherited' WHERE id = :job
)
SELECT at IS NOT NULL FROM first;

-- name: has_source(document)
SELECT EXISTS (SELECT FROM artifacts WHERE document_id = :document AND kind = 'source' AND revision = 0);

-- name: old_trash(days, most)
SELECT id, owner_id FROM documents
WHERE deleted_at < clock_timestamp() - make_interval(days => :days) ORDER BY deleted_at LIMIT :most;

-- name: left_documents(days, most)
-- Documents of visitors whose last session ended this many days ago.
SELECT d.id, d.owner_id FROM owners o JOIN documents d ON d.owner_id = o.id
WHERE o.left_at < clock_timestamp() - make_interval(days => :days) ORDER BY o.left_at, d.id LIMIT :most;

-- name: delete_left_jobs(days)
-- Deletes the jobs and conversions of visitors whose last session ended this many days ago. Returns the keys of the files of the
-- conversions.
WITH gone AS (
    SELECT id FROM owners WHERE left_at < clock_timestamp() - make_interval(days => :days)
), files AS (
    SELECT f.key FROM conversion_files f JOIN conversions c ON c.id = f.conversion_id JOIN gone ON gone.id = c.owner_id
), deleted AS (
    DELETE FROM jobs j USING gone WHERE j.owner_id = gone.id AND j.status IN ('complete', 'failed', 'dead_letter', 'cancelled')
)
SELECT DISTINCT key FROM files;

-- name: expired_documents(most)
-- Documents whose collection keeps them for fewer days than have passed since their last change, and those whose own day has come.
SELECT d.id, d.owner_id FROM collections c JOIN documents d ON d.collection_id = c.id
WHERE c.keep_days IS NOT NULL AND d.deleted_at IS NULL AND d.status <> 'pending'
  AND d.updated_at < clock_timestamp() - make_interval(days => c.keep_days)
UNION
SELECT id, owner_id FROM documents
WHERE expires_on <= (clock_timestamp() AT TIME ZONE 'UTC')::date AND deleted_at IS NULL AND status <> 'pending'
ORDER BY id LIMIT :most;

-- name: keep_collection(owner, id, days)
UPDATE collections SET keep_days = :days WHERE id = :id AND owner_id = :owner RETURNING id;

-- name: known_keys(keys)
-- Which of these objects are referenced or being uploaded.
SELECT key FROM objects WHERE key = ANY (:keys)
UNION SELECT object_key FROM uploads WHERE object_key = ANY (:keys) AND state = 'pending'
UNION SELECT incoming_key FROM uploads WHERE incoming_key = ANY (:keys) AND state = 'pending';

-- name: last_stage(job)
-- The stage that a job finished last.
SELECT stage FROM job_stages WHERE job_id = :job ORDER BY finished_at DESC LIMIT 1;

-- name: job_status(job)
SELECT status FROM jobs WHERE id = :job;

-- name: job_extraction(job)
-- The extraction mode of a job.
SELECT coalesce(input ->> 'extraction', 'plain') FROM jobs WHERE id = :job;

-- name: lock_contents(owner, documents)!
-- Serialises decisions about the canonical document of a content, like `place_upload`; always in the same order.
SELECT pg_advisory_xact_lock(content) FROM (
    SELECT DISTINCT hashtextextended(owner_id::text || encode(sha256, 'hex'), 0) AS content
    FROM documents WHERE id = ANY (:documents) AND owner_id = :owner ORDER BY 1) AS contents;

-- name: documents_like(owner, documents)
-- These documents, and all others of the owner with the same content or in the same version family.
SELECT twin.id FROM documents d JOIN documents twin ON twin.owner_id = d.owner_id AND twin.sha256 = d.sha256
WHERE d.id = ANY (:documents) AND d.owner_id = :owner
UNION
SELECT other.id FROM documents d JOIN documents other ON other.owner_id = d.owner_id AND other.family_id = d.family_id
WHERE d.id = ANY (:documents) AND d.owner_id = :owner;
