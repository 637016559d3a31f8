-- The sum of all migrations, written by `make docs`; a test compares it with a migrated database.

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';
CREATE TABLE public.owners (
    id uuid NOT NULL,
    kind text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT owners_kind_check CHECK ((kind = ANY (ARRAY['local'::text, 'anonymous'::text, 'user'::text])))
);
COMMENT ON TABLE public.owners IS 'Everything that is kept belongs to one of these.';
CREATE TABLE public.schema_migrations (
    number integer NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.sessions (
    token_hash bytea NOT NULL,
    owner_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT sessions_token_hash_check CHECK ((length(token_hash) = 32))
);
COMMENT ON TABLE public.sessions IS 'Browsers that act for an owner; only the hash of the cookie is known here.';
CREATE TABLE public.sign_in_links (
    token_hash bytea NOT NULL,
    owner_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT sign_in_links_token_hash_check CHECK ((length(token_hash) = 32))
);
COMMENT ON TABLE public.sign_in_links IS 'Links that turn one browser, once, into the owner''s.';
ALTER TABLE ONLY public.owners
    ADD CONSTRAINT owners_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token_hash);
ALTER TABLE ONLY public.sign_in_links
    ADD CONSTRAINT sign_in_links_pkey PRIMARY KEY (token_hash);
CREATE UNIQUE INDEX owners_one_local ON public.owners USING btree (kind) WHERE (kind = 'local'::text);
CREATE INDEX sessions_expiry ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_owner ON public.sessions USING btree (owner_id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.owners(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sign_in_links
    ADD CONSTRAINT sign_in_links_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.owners(id) ON DELETE CASCADE;
