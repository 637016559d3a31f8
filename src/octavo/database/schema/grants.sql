-- Groups of members, and the collections that limited members may read or change.

ALTER TABLE memberships ADD COLUMN limited boolean NOT NULL DEFAULT false;
-- The tables are small: one row per person and owner.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE memberships ADD CONSTRAINT memberships_limited CHECK (NOT limited OR role <> 'owner');
COMMENT ON COLUMN memberships.limited IS 'The member sees only the documents in collections that were granted to them.';

ALTER TABLE invitations ADD COLUMN limited boolean NOT NULL DEFAULT false;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE invitations ADD CONSTRAINT invitations_limited CHECK (NOT limited OR role <> 'owner');

CREATE TABLE groups (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE UNIQUE INDEX groups_name ON groups (owner_id, lower(name));

CREATE TABLE group_members (
    group_id uuid NOT NULL REFERENCES groups ON DELETE CASCADE,
    owner_id uuid NOT NULL,
    user_id  uuid NOT NULL,
    PRIMARY KEY (group_id, user_id),
    FOREIGN KEY (owner_id, user_id) REFERENCES memberships ON DELETE CASCADE
);

CREATE INDEX group_members_person ON group_members (owner_id, user_id);

CREATE TABLE grants (
    id            uuid PRIMARY KEY,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    collection_id uuid NOT NULL REFERENCES collections ON DELETE CASCADE,
    user_id       uuid,
    group_id      uuid REFERENCES groups ON DELETE CASCADE,
    access        text NOT NULL CHECK (access IN ('read', 'write')),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    FOREIGN KEY (owner_id, user_id) REFERENCES memberships ON DELETE CASCADE,
    CONSTRAINT grants_one_receiver CHECK ((user_id IS NULL) <> (group_id IS NULL)),
    CONSTRAINT grants_once UNIQUE NULLS NOT DISTINCT (collection_id, user_id, group_id)
);

COMMENT ON TABLE grants IS 'Collections that a limited member or a group may read, or also change. They mean nothing for members who see everything.';

CREATE INDEX grants_person ON grants (owner_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX grants_group ON grants (group_id) WHERE group_id IS NOT NULL;

-- The collections that a member may read or, if `wanted` is write, change.
CREATE FUNCTION granted_collections(of_owner uuid, of_user uuid, wanted text) RETURNS uuid[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(DISTINCT g.collection_id), '{}') FROM grants g
    WHERE g.owner_id = of_owner AND (wanted = 'read' OR g.access = wanted)
      AND (g.user_id = of_user OR g.group_id IN (
          SELECT m.group_id FROM group_members m WHERE m.owner_id = of_owner AND m.user_id = of_user))
$$;

-- The limited member for whom the transaction reads, and the collections that this member sees. Without a limited member both
-- are NULL, so that the views of the schema `limited` are empty.
CREATE FUNCTION current_viewer() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE RETURN
    nullif(current_setting('octavo.viewer', true), '')::uuid;
CREATE FUNCTION seen_collections() RETURNS uuid[] LANGUAGE sql STABLE PARALLEL SAFE RETURN
    nullif(current_setting('octavo.collections', true), '')::uuid[];

-- From now on, until the end of the transaction, every statement reads the views of the schema `limited` instead of the tables
-- with the same names.
CREATE FUNCTION limit_to(of_owner uuid, of_user uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('octavo.viewer', of_user::text, true),
            set_config('octavo.collections', granted_collections(of_owner, of_user, 'read')::text, true),
            set_config('search_path', 'limited, ' || current_setting('search_path'), true);
END $$;

-- A limited member changes documents only in collections that they may change, and puts documents only into these. The transaction
-- of such a change names the member (`octavo.writer`), and sees all tables.
CREATE FUNCTION refuse_other_collections() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.collection_id = ANY (granted_collections(NEW.owner_id, current_setting('octavo.writer')::uuid, 'write'))) IS NOT TRUE THEN
        RAISE EXCEPTION 'the member may not change documents of this collection' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER documents_stay_granted BEFORE UPDATE OF collection_id, deleted_at ON documents FOR EACH ROW
    WHEN (current_setting('octavo.writer', true) <> '') EXECUTE FUNCTION refuse_other_collections();

-- Threads of a limited member. Other members see them, too; the limited member sees only these.
-- squawk-ignore adding-foreign-key-constraint
ALTER TABLE threads ADD COLUMN viewer_id uuid REFERENCES users ON DELETE CASCADE;
ALTER TABLE threads ALTER COLUMN viewer_id SET DEFAULT current_viewer();
COMMENT ON COLUMN threads.viewer_id IS 'The limited member who asked; NULL for others.';
CREATE INDEX threads_viewer ON threads (viewer_id) WHERE viewer_id IS NOT NULL;
