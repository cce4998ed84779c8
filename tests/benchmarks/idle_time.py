"""What a century costs in which jobs wait and nothing happens: hardly more than a year."""

from __future__ import annotations

import time

from harness.base.collector import seldom_collected
from harness.base.options import resolve
from harness.base.units import DAY, MINUTE, SECOND
from harness.engine import Engine
from harness.engine.events import NullRecorder
from harness.plugins import load
from harness.policy import Arrival, Job, PodSet

from .backlog import CORES, NODES, POLICIES, world

YEARS = (1, 100)


def arrivals(years: int) -> list[list[Arrival]]:
    """Jobs that fill all nodes for so long, five that wait meanwhile, and one at the end."""
    last = years * 365 * DAY
    times = [(0, CORES // NODES, last + 10 * SECOND)] * NODES
    times += [(at * SECOND, cores, MINUTE) for at, cores in ((7, 4), (44, 3), (97, 5), (131, 4), (222, 6))]
    times.append((last, 1, MINUTE))
    jobs: list[Arrival] = []
    for index, (submit, cores, duration) in enumerate(times):
        job = Job(
            index, f"job-{index}", submit, "q0", "default", "", 0, "", True, False, 0, f"{index:07}",
            (PodSet("main", 1, 1, {"cpu": 1000 * cores}),), 1,
        )  # fmt: skip
        jobs.append((job, duration, None))
    return [jobs]


class IdleTime:
    """A replay of sixteen jobs, of which all but one come at its beginning."""

    params = (POLICIES, YEARS)
    param_names = ("policy", "years")
    unit = "CPU-s"

    def setup(self, policy: str, years: int) -> None:
        """Make the jobs and the world; they are not part of what is measured."""
        self.chunks = arrivals(years)
        self.cluster = world(policy, 1, 1)
        self.spec = load().policy(policy)
        self.options = resolve(self.spec.options, {}, owner=policy)

    def track_cpu(self, policy: str, years: int) -> float:
        """At most 1 CPU-s for a century."""
        engine = Engine(self.chunks, self.cluster, NullRecorder())
        made = self.spec.factory(self.cluster, engine.view, self.options)
        with seldom_collected:  # as replays do it
            began = time.process_time()
            engine.run(made)
            return time.process_time() - began
