"""An outside checker of runs: whether what a policy did could be, and is what the tables say.

from harness.testing.checks import check_run

assert check_run(run, cluster, trace) == []
"""

from __future__ import annotations

from harness.testing.checks.check import RULES, check_run
from harness.testing.checks.facts import Broken

__all__ = ["RULES", "Broken", "check_run"]
