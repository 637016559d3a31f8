"""File systems of a test's own, in a name space of its own, for root and for ordinary users."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping


def run_apart(script: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A shell script that may mount; the account stays the one that the test runs under."""
    ours = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    command = ["unshare", "--mount", *ours, "sh", "-c", script]
    return subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)
