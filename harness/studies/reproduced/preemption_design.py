"""Reproduces examples 1 to 4 of Kubernetes' design of preemption.

The design is in kubernetes/community, contributors/design-proposals/scheduling/pod-preemption.md, commit
43ce57ac. In this module, resources are in cores. Pods A and B have priority 100 and hold 5 cores each. The
grace period is 60 seconds for A and 30 seconds for B. After ten seconds, pods C (priority 1000, 10 cores) and
D (priority 50, 2 cores) arrive.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.base.options import resolve
from harness.base.units import SECOND
from harness.plugins import load
from harness.studies.reproduced.case import Row
from harness.testing.scripts import Decisions, Script, nodes, replayed

LONG = 10_000.0

_PUBLISHED = {
    1: ("C is bound once A and B are gone, and D waits", "10 s nominate C, 70 s bind C", ""),
    2: (
        "C is bound to E's node after E ends, and D gets B's resources",
        "10 s nominate C, 15 s bind C, 40 s bind D",
        "in the design nothing recreates B; in harness, B returns and is more important than D",
    ),
    3: ("D is immediately bound to the other node", "10 s bind D, 10 s nominate C, 70 s bind C", ""),
    4: (
        "F takes over C's nomination and is bound, and C waits",
        "10 s nominate C, 20 s nominate F, 20 s unnominate C, 70 s bind F",
        "Kubernetes' code removes C's nomination only when C is tried again",
    ),
}
"""Maps the number of an example to its subject, the design's result, and the reason for a difference."""


def rows(_files: Mapping[str, Path] | None = None) -> list[Row]:
    """Returns one row per example, with the published decisions and those of the replay.

    Only decisions from the arrival of C on count. Decisions about recreated pods of A are left out.
    """
    found = []
    for number, (about, theirs, reason) in _PUBLISHED.items():
        happened = [
            (row.time, f"{row.time / SECOND:.0f} s {row.action} {row.pod or row.job}")
            for row in example(number).of("bind", "nominate", "unnominate")
            if row.time >= 10 * SECOND and not (row.pod or "").startswith("A-r")
        ]
        ours = ", ".join(text for _, text in sorted(happened))
        found.append(Row(f"{number}: {about}", theirs, ours, "" if ours == theirs else reason))
    return found


def example(number: int) -> Decisions:
    """Returns the decisions of kube-scheduler in one of the examples."""
    jobs = Script()
    names = ["node-1"]
    if number in (2, 3):  # A second node has pod E. In example 2, E ends while the victims terminate.
        names.append("node-2")
        jobs.job(
            "E", priority=2000, cpu=10_000 if number == 2 else 8_000, seconds=15 if number == 2 else LONG
        )
    for name, grace in (("A", 60), ("B", 30)):
        jobs.job(name, at=1, priority=100, cpu=5_000, seconds=LONG, grace=grace)
    jobs.job("C", at=10, priority=1000, cpu=10_000, seconds=LONG)
    jobs.job("D", at=10, priority=50, cpu=2_000, seconds=LONG)
    if number == 4:  # A pod with a higher priority than C arrives while A and B terminate.
        jobs.job("F", at=20, priority=3000, cpu=10_000, seconds=LONG)
    (policy,) = (spec for spec in load().policies if spec.name == "default-preemption")
    options = resolve(policy.options, {"evictionLatency": "0s"}, owner=policy.name)
    cluster = nodes(**{name: {"cpu": 10_000, "pods": 110} for name in names})
    return replayed(policy.factory, jobs, cluster, options=options, until=200)
