"""Three policies that nobody would want: each decides as `none` does, but for one bad habit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness import Bind, Cluster, Decision, Job, Policy, Preempt, View, Why
from harness.base.units import HOUR
from harness.plugins import load
from harness.policy import Change


class LikeNone:
    """Decides as `none` does."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        spec = load(block=["metrics"]).policy("none")
        values = {option.name: option.default for option in spec.options}
        self.inner: Policy = spec.factory(cluster, view, values)
        self.running: dict[Job, None] = {}

    def submit(self, job: Job, pods: range, now: int) -> None:
        self.inner.submit(job, pods, now)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        self.running.pop(job, None)
        self.inner.release(job, pods, now, why)

    def changed(self, change: Change, now: int) -> Iterator[Decision]:
        yield from self.inner.changed(change, now) or ()  # type: ignore[attr-defined]

    def cycle(self, now: int) -> Iterator[Decision]:
        for decision in self.inner.cycle(now):
            if isinstance(decision, Bind):
                self.running[decision.job] = None
            yield decision


class StarvesLarge(LikeNone):
    """Never starts what asks for at least half of what a node has of anything."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        super().__init__(cluster, view, options)
        self.most: dict[str, int] = {}
        for node in cluster.nodes.values():
            for resource, amount in node.allocatable.items():
                self.most[resource] = max(amount, self.most.get(resource, 0))

    def submit(self, job: Job, pods: range, now: int) -> None:
        asks = job.requests_of(range(job.pods))
        if all(2 * amount < self.most.get(resource, 0) for resource, amount in asks.items()):
            super().submit(job, pods, now)


class PreemptsEverybody(LikeNone):
    """Preempts all that runs whenever a job arrives, once an hour at most."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        super().__init__(cluster, view, options)
        self.arrived: list[Job] = []
        self.last = -HOUR

    def submit(self, job: Job, pods: range, now: int) -> None:
        super().submit(job, pods, now)
        if job not in self.running:
            self.arrived.append(job)

    def cycle(self, now: int) -> Iterator[Decision]:
        if self.arrived and now - self.last >= HOUR:
            self.last, arrived = now, self.arrived[-1]
            for job in [job for job in self.running if job is not arrived]:
                del self.running[job]
                yield Preempt(job, by=arrived, reason="MakesRoomForAll")
        self.arrived.clear()
        yield from super().cycle(now)


class HalfGangs(LikeNone):
    """Never binds the last pod of a gang, so that the others hold what they have for nothing."""

    def cycle(self, now: int) -> Iterator[Decision]:
        for decision in super().cycle(now):
            job = decision.job if isinstance(decision, Bind) else None
            if job is not None and job.gang and job.pods > 1 and job.pods - 1 in decision.pods:
                continue
            yield decision


BAD = (StarvesLarge, PreemptsEverybody, HalfGangs)
