"""The job kinds and their stages in order; the only place that joins the packages below."""

from octavo.pipeline.registry import known_chores, known_kinds, known_schedules
from octavo.pipeline.tools import Tools

__all__ = ["Tools", "known_chores", "known_kinds", "known_schedules"]
