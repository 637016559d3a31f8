-- The schema of Octavo: one file for each topic, in the order of their dependencies. Run it with `psql -f all.sql`.
-- This is the source. To change it, edit a file here and add a numbered migration that makes the same change to an existing
-- database; a test builds one database from these files and one from the migrations, and compares them.
\ir owners.sql
\ir jobs.sql
\ir limits.sql
\ir events.sql
\ir queue.sql
\ir monitoring.sql
\ir job_views.sql
\ir documents.sql
\ir uploads.sql
\ir embeddings.sql
\ir facts.sql
\ir fields.sql
\ir search.sql
\ir text_totals.sql
\ir document_counts.sql
\ir connections.sql
\ir highlights.sql
\ir threads.sql
\ir ai.sql
\ir imports.sql
\ir deliveries.sql
\ir conversions.sql
\ir analyses.sql
\ir rules.sql
\ir sources.sql
\ir shares.sql
\ir archives.sql
\ir grants.sql
\ir limited.sql
