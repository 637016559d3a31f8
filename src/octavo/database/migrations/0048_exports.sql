-- Exports of libraries that a job prepares.
-- compatible-from: 40

INSERT INTO job_kinds (name, max_attempts, time_limit, limit_renewed_by_stage) VALUES
    ('export_library', 3, interval '1 hour', true)
ON CONFLICT (name) DO NOTHING;
