-- Every page counts the unfinished jobs of its account with an index. It read all jobs of all accounts before.
-- compatible-from: 40

CREATE INDEX jobs_owner_unfinished ON jobs (owner_id) WHERE status IN ('queued', 'processing', 'paused');
