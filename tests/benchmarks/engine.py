"""The engine by itself: what an event costs before anything is read or written."""

from __future__ import annotations

import random
import time

from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.model import Cluster
from harness.engine import Engine
from harness.engine.events import NullRecorder
from harness.policy import Arrival, Job, PodSet
from harness.testing import pool
from harness_plugins.none import OPTIONS, JobQueue

JOBS = 50_000


def arrivals(count: int, seed: int = 1) -> list[list[Arrival]]:
    """Poisson arrivals of jobs of 1 to 64 cores that keep a pool of 1,024 cores 90 % busy."""
    draw = random.Random(seed)
    shapes = [(PodSet("main", 1, 1, {"cpu": 1000 << power}),) for power in range(7)]
    now, jobs = 0.0, []
    for index in range(count):
        now += draw.expovariate(1.0)
        shape = draw.choice(shapes)
        job = Job(
            index, f"job-{index}", int(now * SECOND), "default", "default", "", 0, "", True, False, 0,
            str(index), shape, 1,
        )  # fmt: skip
        jobs.append((job, int(draw.expovariate(1 / 50.8) * SECOND), None))
    return [jobs[at : at + 16384] for at in range(0, count, 16384)]


class Events:
    """Submissions and ends delivered in a CPU-second, with the plugin `none` deciding."""

    params = ("strict", "skip")
    param_names = ("blocking",)
    unit = "events/s"
    cluster: Cluster

    def setup(self, blocking: str) -> None:
        """Make the jobs; they are not part of what is measured."""
        self.cluster = pool(cpu=1_024_000)
        self.chunks = arrivals(JOBS)
        self.options = resolve(OPTIONS, {"order": "fifo", "blocking": blocking}, owner="none")

    def track_events_per_second(self, blocking: str) -> float:
        """Two events a job."""
        began = time.process_time()
        engine = Engine(self.chunks, self.cluster, NullRecorder())
        engine.run(JobQueue(self.cluster, engine.view, self.options))
        return 2 * JOBS / (time.process_time() - began)
