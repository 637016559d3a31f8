"""Runs an Octavo instance: logs, supervision, workers, health checks and `octavo doctor`."""
