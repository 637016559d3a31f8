"""Defines the kinds of jobs and their stages. Only this package combines the other packages into jobs."""

from octavo.pipeline.registry import known_chores, known_kinds, known_schedules
from octavo.pipeline.tools import Tools

__all__ = ["Tools", "known_chores", "known_kinds", "known_schedules"]
