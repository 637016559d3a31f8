"""Running Octavo: logs, start and supervision, health, and the doctor."""
