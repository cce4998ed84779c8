"""Policies for tests: they start what fits, and preempt when a test says so."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from harness import Admit, Bind, Cluster, Decision, Job, Preempt, Reject, View, Wake, Why
from harness.base.units import SECOND
from harness.policy import PolicyFactory


class Greedy:
    """Starts waiting jobs in order of arrival as soon as they fit; subclasses preempt."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        self.cluster, self.view, self.options = cluster, view, options
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.heard: list[tuple[str, str, int]] = []

    def submit(self, job: Job, pods: range, now: int) -> None:
        self.heard.append(("submit", job.id, now))
        self.waiting.append(job)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        self.heard.append((why.value, job.id, now))
        if job in self.running:
            self.running.remove(job)

    def cycle(self, now: int) -> Iterator[Decision]:
        yield from self.preempt(now)
        for job in list(self.waiting):
            if self.view.fits(job):
                self.waiting.remove(job)
                self.running.append(job)
                yield Admit(job)

    def preempt(self, now: int) -> Iterator[Decision]:
        yield from ()


class Priority(Greedy):
    """Preempts the newest less important job for a job that does not fit."""

    def preempt(self, now: int) -> Iterator[Decision]:
        for job in sorted(self.waiting, key=lambda job: -job.priority):
            while not self.view.fits(job):
                victims = [each for each in self.running if each.priority < job.priority]
                if not victims:
                    break
                self.running.remove(victims[-1])
                yield Preempt(victims[-1], by=job, reason="Priority", detail={"priority": job.priority})
                if victims[-1].grace_period:
                    return  # what it held is not free yet


class AtRandom(Greedy):
    """Preempts jobs at random, on behalf of a waiting job or of nobody, and wakes itself now and then."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        super().__init__(cluster, view, options)
        self.random = random.Random(options.get("seed", 0))
        self.left = options.get("preemptions", 50)

    def preempt(self, now: int) -> Iterator[Decision]:
        for job in list(self.running):
            if self.left and self.random.random() < 0.3:
                self.left -= 1
                self.running.remove(job)
                yield Preempt(job, by=next(iter(self.waiting), None), reason="AtRandom")
        if self.left and self.running and self.random.random() < 0.5:
            yield Wake(now + self.random.randrange(1, 5_000_000))


class Eager(AtRandom):
    """As `AtRandom`, but admits jobs while those that it evicted are still leaving."""

    def cycle(self, now: int) -> Iterator[Decision]:
        yield from self.preempt(now)
        free = dict(self.view.capacity)
        for job in self.running:
            for resource, amount in job.requests_of(range(job.pods)).items():
                free[resource] -= amount
        for job in list(self.waiting):
            asks = job.requests_of(range(job.pods))
            if all(free[resource] >= amount for resource, amount in asks.items()):
                for resource, amount in asks.items():
                    free[resource] -= amount
                self.waiting.remove(job)
                self.running.append(job)
                yield Admit(job)


class PodByPod:
    """Binds every waiting pod on its own to the first node with room, and preempts pods at random."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        self.cluster, self.view = cluster, view
        self.random = random.Random(options.get("seed", 0))
        self.left = options.get("preemptions", 0)
        self.waiting: list[tuple[Job, int]] = []
        self.bound: list[tuple[Job, int]] = []

    def submit(self, job: Job, pods: range, now: int) -> None:
        self.waiting += [(job, pod) for pod in pods]

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        self.bound = [(each, pod) for each, pod in self.bound if each is not job or pod not in pods]

    def cycle(self, now: int) -> Iterator[Decision]:
        for job, pod in list(self.bound):
            if self.left and self.random.random() < 0.2:
                self.left -= 1
                self.bound.remove((job, pod))
                preemptor = next((each for each, _ in self.waiting if each is not job), None)
                yield Preempt(job, by=preemptor, reason="AtRandom", pods=range(pod, pod + 1))
        for job, pod in list(self.waiting):
            for node in self.cluster.nodes:
                free = self.view.free_on(node)
                if all(free.get(each, 0) >= amount for each, amount in job.pod_set_of(pod).requests.items()):
                    self.waiting.remove((job, pod))
                    self.bound.append((job, pod))
                    yield Bind(job, range(pod, pod + 1), node)
                    break
        if self.left and self.bound:
            yield Wake(now + self.random.randrange(1, 5_000_000))


def scripted(steps: Mapping[float, list[tuple[Any, ...]]]) -> PolicyFactory:
    """A policy that does at each second what it is told.

    A step is ("admit", job, counts, delay), ("bind", job, pod, node), ("reject", job) or ("preempt", job,
    preemptor or None, reason, pod or None, detail); the last two of an admission and three of a preemption
    may be left out.
    """

    class Scripted:
        def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
            self.jobs: dict[str, Job] = {}

        def submit(self, job: Job, pods: range, now: int) -> None:
            self.jobs[job.id] = job

        def release(self, job: Job, pods: range, now: int, why: Why) -> None:
            pass

        def cycle(self, now: int) -> Iterator[Decision]:
            for action, name, *rest in steps.get(now / SECOND, ()):
                job = self.jobs[name]
                if action == "admit":
                    counts, delay = [*rest, *({}, 0)[len(rest) :]]
                    yield Admit(job, counts=counts, delay=delay * SECOND)
                elif action == "bind":
                    yield Bind(job, range(rest[0], rest[0] + 1), rest[1])
                elif action == "reject":
                    yield Reject(job, "Rule")
                else:
                    by, reason, pod, detail = [*rest, *(None, "Rule", None, {})[len(rest) :]]
                    pods = None if pod is None else range(pod, pod + 1)
                    yield Preempt(job, self.jobs[by] if by else None, reason, pods, detail)
            later = [second * SECOND for second in steps if second * SECOND > now]
            if later:
                yield Wake(int(min(later)))

    return Scripted
