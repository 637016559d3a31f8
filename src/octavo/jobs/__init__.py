"""The job engine: claims, leases, stages, retries, caps, schedules and events. It does not depend on any job kind."""
