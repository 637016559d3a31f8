-- name: prompts(owner, id, most)
-- An owner's prompts and the built-in ones, in the order in which they run.
SELECT id, title, content, system, execution_order, active, version, owner_id IS NULL AS built_in, created_at, updated_at
FROM prompts
WHERE (owner_id = :owner OR owner_id IS NULL) AND (:id::uuid IS NULL OR id = :id)
ORDER BY execution_order, id LIMIT :most;

-- name: count_prompts(owner)
SELECT count(*) FROM prompts WHERE owner_id = :owner;

-- name: add_prompt(id, owner, title, content, system, execution_order, active)!
INSERT INTO prompts (id, owner_id, title, content, system, execution_order, active)
VALUES (:id, :owner, :title, :content, :system, :execution_order, :active);

-- name: change_prompt(id, owner, title, content, system, execution_order, active)!
-- NULL keeps the current value.
UPDATE prompts SET title = coalesce(:title, title), content = coalesce(:content, content),
                   system = coalesce(:system, system), execution_order = coalesce(:execution_order, execution_order),
                   active = coalesce(:active, active)
WHERE id = :id AND owner_id = :owner;

-- name: delete_prompt(id, owner)!
DELETE FROM prompts WHERE id = :id AND owner_id = :owner;

-- name: versions(id, owner)
SELECT v.version, v.title, v.content, v.system, v.created_at
FROM prompt_versions v JOIN prompts p ON p.id = v.prompt_id
WHERE p.id = :id AND (p.owner_id = :owner OR p.owner_id IS NULL) ORDER BY v.version DESC;
