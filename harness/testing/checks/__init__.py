"""An independent checker of runs, which checks that decisions are possible and that the tables agree.

from harness.testing.checks import check_run

assert check_run(run, cluster, trace) == []
"""

from harness.testing.checks.check import RULES, check_run
from harness.testing.checks.facts import Broken

__all__ = ["RULES", "Broken", "check_run"]
