"""The job engine: claims, leases, stages, retries, caps, schedules and events. It does not know what the jobs do."""
