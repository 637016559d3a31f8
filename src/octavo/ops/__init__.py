"""Running Octavo: logs, supervision, workers, health checks and the doctor."""
