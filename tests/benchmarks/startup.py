"""What a process costs before it does anything: `--help` should feel immediate."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

PROCESSES = 5


class Help:
    """User and system time of the whole process, the best of a few."""

    unit = "CPU-s"
    params = ("--version", "-h", "replay -h", "trace -h")
    param_names = ("arguments",)

    def track_cpu(self, arguments: str) -> float:
        """One line of help; more than 0.2 s would be felt."""
        command = [Path(sys.executable).with_name("harness"), *arguments.split()]
        spent = []
        for _ in range(PROCESSES):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        return min(spent)
