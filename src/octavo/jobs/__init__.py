"""The job engine: claims, leases, stages, retries, caps, schedules and events. It knows nothing about documents."""
