-- Owners, the people who act for them, the sessions, links and keys with which they sign in, and the answers to repeated requests.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE owners (
    id         uuid PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('local', 'anonymous', 'user')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    left_at    timestamptz,
    language   text
);

COMMENT ON COLUMN owners.language IS 'As for a user, for the administrator, who signs in without being a user.';

COMMENT ON COLUMN owners.left_at IS 'When it was found that a visitor has no session left. Nobody can reach these documents any more.';
COMMENT ON TABLE owners IS 'Every row that belongs to somebody refers to one of these.';

-- The local owner: the person who runs this installation, and its administrator.
CREATE UNIQUE INDEX owners_one_local ON owners (kind) WHERE kind = 'local';
CREATE INDEX owners_left ON owners (left_at) WHERE left_at IS NOT NULL;

CREATE TABLE users (
    id            uuid PRIMARY KEY,
    email         text NOT NULL CHECK (email = lower(email)),
    password_hash text,
    owner_id      uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    language      text
);

COMMENT ON COLUMN users.language IS 'The language of pages and mails, such as `de`. NULL: that of the browser.';
COMMENT ON COLUMN users.password_hash IS 'NULL if the person signs in with a provider only.';
COMMENT ON COLUMN users.owner_id IS 'The personal owner of this person.';

CREATE UNIQUE INDEX users_email ON users (email);
CREATE INDEX users_owner ON users (owner_id);

CREATE TABLE memberships (
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    role       text NOT NULL CHECK (role IN ('owner', 'member', 'reader')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    granted_by text NOT NULL DEFAULT 'person' CONSTRAINT memberships_granted_by CHECK (granted_by IN ('person', 'claims')),
    PRIMARY KEY (owner_id, user_id)
);

COMMENT ON TABLE memberships IS 'People who may act for an owner, including the person whose own it is.';
COMMENT ON COLUMN memberships.granted_by IS 'claims: a provider granted the role when the person signed in, and can take it away again.';

CREATE INDEX memberships_user ON memberships (user_id);

CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    user_id    uuid REFERENCES users ON DELETE CASCADE,
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    browser    text DEFAULT nullif(current_setting('octavo.browser', true), ''),
    is_fixed   boolean NOT NULL DEFAULT false
);

COMMENT ON TABLE sessions IS 'Browsers that act for an owner. Only the hash of the cookie is stored. user_id is NULL for visitors and for the local owner.';

COMMENT ON COLUMN sessions.id IS 'The name of the session in lists; it grants nothing.';
COMMENT ON COLUMN sessions.browser IS 'The User-Agent of the browser that signed in.';
COMMENT ON COLUMN sessions.is_fixed IS 'Whether using the session does not extend it, because the person must sign in with the provider again.';

CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE INDEX sessions_owner ON sessions (owner_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_user ON sessions (user_id);

CREATE TABLE sign_in_links (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);

COMMENT ON TABLE sign_in_links IS 'One-time links that sign a browser in.';

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    owner_id     uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    user_id      uuid REFERENCES users ON DELETE CASCADE,
    name         text NOT NULL,
    start        text NOT NULL,
    key_hash     bytea NOT NULL CHECK (length(key_hash) = 32),
    scope        text NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz
);

COMMENT ON COLUMN api_keys.start IS 'The first characters of the key, to recognise it by. The rest is not stored.';
COMMENT ON COLUMN api_keys.user_id IS 'The person who created the key. The key never grants more than this person may do.';

CREATE UNIQUE INDEX api_keys_hash ON api_keys (key_hash);
CREATE INDEX api_keys_owner ON api_keys (owner_id, created_at);
CREATE INDEX api_keys_user ON api_keys (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE identities (
    issuer       text NOT NULL,
    subject      text NOT NULL,
    user_id      uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz,
    PRIMARY KEY (issuer, subject)
);

COMMENT ON TABLE identities IS 'How people are known to OpenID Connect providers. A person is found by issuer and subject only, never by address.';

CREATE INDEX identities_user ON identities (user_id);

CREATE TABLE provider_sign_ins (
    state_hash   bytea PRIMARY KEY CHECK (length(state_hash) = 32),
    browser_hash bytea NOT NULL CHECK (length(browser_hash) = 32),
    nonce        text NOT NULL,
    verifier     text NOT NULL,
    back         text NOT NULL,
    user_id      uuid REFERENCES users ON DELETE CASCADE,
    expires_at   timestamptz NOT NULL
);

COMMENT ON TABLE provider_sign_ins IS 'Browsers that were sent to a provider and have not come back yet.';
COMMENT ON COLUMN provider_sign_ins.verifier IS 'The secret of PKCE, with which only this server can use the code of the provider.';
COMMENT ON COLUMN provider_sign_ins.user_id IS 'The signed-in person who connects an identity to their account; NULL to sign in.';

CREATE INDEX provider_sign_ins_expiry ON provider_sign_ins (expires_at);
CREATE INDEX provider_sign_ins_user ON provider_sign_ins (user_id) WHERE user_id IS NOT NULL;

CREATE TABLE invitations (
    id         uuid PRIMARY KEY,
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    email      text NOT NULL CHECK (email = lower(email)),
    role       text NOT NULL CHECK (role IN ('owner', 'member', 'reader')),
    token_hash bytea NOT NULL CHECK (length(token_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);

COMMENT ON TABLE invitations IS 'One-time links with which a person becomes a member. A row is deleted when its link is used.';

CREATE UNIQUE INDEX invitations_token ON invitations (token_hash);
CREATE INDEX invitations_owner ON invitations (owner_id, created_at);

CREATE TABLE account_links (
    token_hash           bytea PRIMARY KEY CHECK (length(token_hash) = 32),
    purpose              text NOT NULL CHECK (purpose IN ('password', 'code')),
    user_id              uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    clears_second_factor boolean NOT NULL DEFAULT false,
    expires_at           timestamptz NOT NULL
);

COMMENT ON TABLE account_links IS 'password: one-time links that set a new password. code: sign-ins that wait for the code of the second factor. A row is deleted when it is used.';

CREATE INDEX account_links_user ON account_links (user_id);
CREATE INDEX account_links_expiry ON account_links (expires_at);

CREATE TABLE second_factors (
    user_id      uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    secret       text NOT NULL,
    confirmed_at timestamptz,
    last_step    bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE second_factors IS 'Secrets of authenticator apps (TOTP). They count once confirmed with a code.';
COMMENT ON COLUMN second_factors.secret IS 'Encrypted with the secret of the installation, which is not in the database.';
COMMENT ON COLUMN second_factors.last_step IS 'The time step of the last code that was used. A code works once, and older ones no longer.';

CREATE TABLE recovery_codes (
    user_id   uuid NOT NULL REFERENCES second_factors ON DELETE CASCADE,
    code_hash bytea NOT NULL CHECK (length(code_hash) = 32),
    PRIMARY KEY (user_id, code_hash)
);

COMMENT ON TABLE recovery_codes IS 'Codes that replace the authenticator app once each. A row is deleted when its code is used.';

CREATE TABLE idempotency_keys (
    owner_id   uuid NOT NULL REFERENCES owners ON DELETE CASCADE,
    key_hash   bytea NOT NULL CHECK (length(key_hash) = 32),
    request    bytea NOT NULL CHECK (length(request) = 32),
    body_bytes bigint NOT NULL CHECK (body_bytes >= 0),
    status     smallint NOT NULL CHECK (status BETWEEN 200 AND 299),
    salt       bytea NOT NULL CHECK (length(salt) = 16),
    answer     bytea CHECK (length(answer) <= 524288),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (owner_id, key_hash)
);

COMMENT ON TABLE idempotency_keys IS 'Answers to requests with an Idempotency-Key, for 24 hours. Each is written in the transaction of the request itself.';
COMMENT ON COLUMN idempotency_keys.request IS 'SHA-256 of the route, the query and the body.';
COMMENT ON COLUMN idempotency_keys.answer IS 'Sealed with the key, which is not stored. NULL if the answer was too long.';

CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);

-- Moves the mappings of a visitor to a person. If the person has another mapping with the same name, both are kept: that of the
-- visitor gets a new name, such as invoice_2_v1. Conversions keep the text of the mapping they were made with.
CREATE FUNCTION merge_mappings(visitor uuid, person uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    m record;
    stem text;
    version text;
    new_name text;
    number integer;
BEGIN
    INSERT INTO mapping_texts (owner_id, sha256, file, text)
    SELECT person, t.sha256, t.file, t.text FROM mapping_texts t WHERE t.owner_id = visitor
    ON CONFLICT DO NOTHING;
    FOR m IN SELECT * FROM mappings WHERE owner_id = visitor ORDER BY name LOOP
        CONTINUE WHEN EXISTS (SELECT FROM mappings o WHERE o.owner_id = person AND o.name = m.name AND o.text = m.text);
        new_name := m.name;
        number := 2;
        stem := regexp_replace(m.name, '_v\d+$', '');
        version := substr(m.name, length(stem) + 1);
        WHILE EXISTS (SELECT FROM mappings o WHERE o.owner_id = person AND o.name = new_name) LOOP
            new_name := format('%s_%s%s', stem, number, version);
            number := number + 1;
        END LOOP;
        UPDATE mappings SET owner_id = person, name = new_name,
            text = CASE WHEN new_name = m.name THEN m.text ELSE regexp_replace(m.text, '(^|\n)name:[^\n]*', '\1name: ' || new_name) END,
            summary = CASE WHEN m.summary IS NULL THEN NULL ELSE m.summary || jsonb_build_object('name', new_name) END
        WHERE id = m.id;
    END LOOP;
END $$;

-- The name of an owner for administrators.
CREATE FUNCTION owner_name(owner owners) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT string_agg(u.email, ', ' ORDER BY u.email) FROM memberships m JOIN users u ON u.id = m.user_id
                     WHERE m.owner_id = owner.id AND m.role = 'owner'),
                    CASE owner.kind WHEN 'anonymous' THEN 'visitor ' || owner.id ELSE owner.kind || ' account' END)
$$;

-- Moves everything of a visitor to the person who signed in, and deletes the visitor. If the person already has the content of a
-- document, the document becomes a duplicate. Returns the moved documents, so that the caller can compare them with the
-- others. Visitors have no recipients.
CREATE FUNCTION merge_owner(visitor uuid, person uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moved uuid[];
BEGIN
    PERFORM FROM owners WHERE id IN (visitor, person) ORDER BY id FOR UPDATE;
    IF NOT EXISTS (SELECT FROM owners WHERE id = visitor AND kind = 'anonymous') THEN
        RAISE EXCEPTION 'owner % is not a visitor', visitor USING ERRCODE = 'check_violation';
    END IF;
    -- Jobs before documents: the order in which a job that ends locks them.
    PERFORM FROM jobs WHERE owner_id = visitor ORDER BY id FOR UPDATE;
    PERFORM resume_imports(visitor);
    UPDATE prompts SET owner_id = person WHERE owner_id = visitor;
    PERFORM merge_mappings(visitor, person);
    UPDATE conversions c SET live = false WHERE owner_id = visitor AND live AND EXISTS (
        SELECT FROM conversions o WHERE o.live AND o.owner_id = person AND o.sha256 = c.sha256 AND o.mapping = c.mapping
        AND o.mapping_sha256 = c.mapping_sha256 AND o.bytes = c.bytes);
    UPDATE conversion_batches SET owner_id = person WHERE owner_id = visitor;
    UPDATE conversions SET owner_id = person WHERE owner_id = visitor;
    UPDATE corrections SET owner_id = person WHERE owner_id = visitor;
    UPDATE documents d SET duplicate_of = twin.document_id
    FROM uploads u JOIN uploads twin ON twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical
    WHERE u.owner_id = visitor AND u.is_canonical AND d.id = u.document_id;
    UPDATE uploads u SET is_canonical = false
    WHERE owner_id = visitor AND is_canonical AND EXISTS (
        SELECT FROM uploads twin WHERE twin.owner_id = person AND twin.sha256 = u.sha256 AND twin.is_canonical);
    UPDATE uploads SET owner_id = person WHERE owner_id = visitor;
    -- Collections and tags with the same name are merged.
    UPDATE documents d SET collection_id = theirs.id
    FROM collections mine JOIN collections theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor AND d.collection_id = mine.id;
    DELETE FROM collections mine USING collections theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE collections SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO document_tags (document_id, tag_id, made_by)
    SELECT dt.document_id, theirs.id, dt.made_by FROM document_tags dt
    JOIN tags mine ON mine.id = dt.tag_id JOIN tags theirs ON theirs.owner_id = person AND lower(theirs.name) = lower(mine.name)
    WHERE mine.owner_id = visitor
    ON CONFLICT DO NOTHING;
    DELETE FROM tags mine USING tags theirs
    WHERE mine.owner_id = visitor AND theirs.owner_id = person AND lower(theirs.name) = lower(mine.name);
    UPDATE tags SET owner_id = person WHERE owner_id = visitor;
    UPDATE views mine SET owner_id = person WHERE owner_id = visitor
        AND NOT EXISTS (SELECT FROM views theirs WHERE theirs.owner_id = person AND lower(theirs.name) = lower(mine.name));
    UPDATE threads SET owner_id = person WHERE owner_id = visitor;
    PERFORM merge_fields(visitor, person);
    PERFORM merge_rules(visitor, person);
    UPDATE jobs j SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM jobs same WHERE same.owner_id = person AND same.kind = j.kind AND same.key = j.key)
        THEN format('%s:%s', j.key, j.id) ELSE j.key END
    WHERE owner_id = visitor;
    UPDATE imports mine SET owner_id = person, key = CASE WHEN EXISTS (
        SELECT FROM imports same WHERE same.owner_id = person AND same.key = mine.key) THEN NULL ELSE key END
    WHERE owner_id = visitor;
    WITH moving AS (
        UPDATE documents SET owner_id = person, updated_at = clock_timestamp() WHERE owner_id = visitor RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO moved FROM moving;
    UPDATE notifications SET owner_id = person WHERE owner_id = visitor;
    INSERT INTO connection_verdicts (owner_id, digest, verdict, decided_at)
    SELECT person, digest, verdict, decided_at FROM connection_verdicts WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    INSERT INTO connection_weights (owner_id, semantic_similarity, contradiction_detection, thematic_bridge)
    SELECT person, semantic_similarity, contradiction_detection, thematic_bridge FROM connection_weights
    WHERE owner_id = visitor
    ON CONFLICT DO NOTHING;
    DELETE FROM sessions WHERE owner_id = visitor;
    DELETE FROM owners WHERE id = visitor;
    RETURN moved;
END $$;
