"""Examples 1 to 4 of Kubernetes' design of preemption, replayed.

    python docs/examples/preemption_design.py 1

The design: kubernetes/community, contributors/design-proposals/scheduling/pod-preemption.md, commit 43ce57ac.
Units of resources are cores here. Pods A and B, of priority 100, hold 5 units each; A has a grace period of
60 seconds, B of 30. After ten seconds pods C (priority 1000, 10 units) and D (priority 50, 2 units) arrive.
"""

from __future__ import annotations

import sys

from harness.base.options import resolve
from harness.plugins import load
from harness.testing import Decisions, Script, nodes, replayed

LONG = 10_000.0


def example(number: int) -> Decisions:
    """What kube-scheduler decides in one of the examples."""
    jobs = Script()
    names = ["node-1"]
    if number in (2, 3):  # a second node with pod E, which ends while the victims are leaving in example 2
        names.append("node-2")
        jobs.job(
            "E", priority=2000, cpu=10_000 if number == 2 else 8_000, seconds=15 if number == 2 else LONG
        )
    for name, grace in (("A", 60), ("B", 30)):
        jobs.job(name, at=1, priority=100, cpu=5_000, seconds=LONG, grace=grace)
    jobs.job("C", at=10, priority=1000, cpu=10_000, seconds=LONG)
    jobs.job("D", at=10, priority=50, cpu=2_000, seconds=LONG)
    if number == 4:  # more important than C, while A and B are leaving
        jobs.job("F", at=20, priority=3000, cpu=10_000, seconds=LONG)
    (policy,) = (spec for spec in load().policies if spec.name == "default-preemption")
    options = resolve(policy.options, {"evictionLatency": "0s"}, owner=policy.name)
    cluster = nodes(**{name: {"cpu": 10_000, "pods": 110} for name in names})
    return replayed(policy.factory, jobs, cluster, options=options, until=200)


if __name__ == "__main__":
    for row in example(int(sys.argv[1])).of("bind", "preempt", "nominate", "unnominate", "gone", "finish"):
        of = f" for {row.by}" if row.by else ""
        print(f"{row.time / 1e6:6.0f} s  {row.action:10} {row.pod or row.job} {row.node or ''}{of}")
