"""Determines why jobs wait, minute by minute during a replay. The metrics `idle.*` use these causes.

An observer between the engine and the policy forwards every call and decision unchanged. At each full minute
after the first arrival, the observer determines the causes after all events of that time, unless nothing has
changed. Jobs in equal situations share one result.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import final

import numpy as np

from harness.analysis.metrics.idle import FRAGMENTED, POLICY, QUOTA, RESERVED, Judged
from harness.base.units import MINUTE
from harness.cluster.model import Cluster
from harness.engine.sources import ObservedTimers
from harness.models.kube.room import Ask, Room
from harness.policy import (
    Admit,
    Bind,
    Change,
    Decision,
    Job,
    Nominate,
    Policy,
    Preempt,
    Refuse,
    Reject,
    Unnominate,
    Wake,
    Why,
)

_FURTHER = ("ready", "standing", "skip")
"""Optional methods of policies, which the engine calls if a policy has them."""

_NO_FLAVORS: Mapping[str, Mapping[str, str]] = {}


@final
class _Waiting:
    """A job that has waiting pods or that was admitted as a whole.

    Attributes:
        pods, nominated: the numbers of the waiting pods, and of those that are nominated to a node.
        until: the earliest time at which the admitted job may start.
        awaited: the number of pods that were evicted for the job but are not gone yet.
        alike: the group with which the job is judged; None while resources are reserved for the job.
    """

    __slots__ = ("admitted", "alike", "awaited", "flavors", "job", "nominated", "pods", "until")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.pods: set[int] = set()
        self.nominated: set[int] = set()
        self.admitted = False
        self.until = -1
        self.flavors = _NO_FLAVORS
        self.awaited = 0
        self.alike: _Alike | None = None


@final
class _Alike:
    """Jobs in equal situations, which are judged together.

    Attributes:
        key: the properties that these jobs have in common.
        jobs: the jobs by index. The first job is judged for all of them.
        new: the jobs that have joined since the last judgement.
        cause: the last judged cause; -1 before the first judgement.
        ask: the requests of the jobs to nodes; None before they are computed.
    """

    __slots__ = ("ask", "cause", "jobs", "key", "new")

    def __init__(self, key: object) -> None:
        self.key = key
        self.jobs: dict[int, _Waiting] = {}
        self.new: dict[int, None] = {}
        self.cause = -1
        self.ask: Ask | None = None


class Causes:
    """A policy that delegates all decisions to another policy, and records the causes of waits.

    Args:
        policy: the policy that decides. If it has no method `within_quota`, quota is never a cause.
        cluster: the cluster with the nodes, if any.
    """

    def __init__(self, policy: Policy, cluster: Cluster) -> None:
        self._policy = policy
        for name in _FURTHER:
            method = getattr(policy, name, None)
            if method is not None:
                setattr(self, name, method)
        changed = getattr(policy, "changed", None)
        if changed is not None:
            self._tell_changed = changed
            self.changed = self._alter
        timers = getattr(policy, "timers", None)
        if timers is not None:
            self.timers = ObservedTimers(timers, self._decided)
        self._within_quota = getattr(policy, "within_quota", None)
        self._room = Room(cluster) if cluster.nodes or cluster.nodes_change else None
        self._begin: int | None = None
        self._now = 0
        self._due: list[int] = []  # a heap of the minutes to judge
        self._changed = -1  # the time of the last change
        self._delays: list[tuple[int, int]] = []  # a heap of (start time, job) for admitted jobs
        self._waiting: dict[int, _Waiting] = {}
        self._moved: dict[int, None] = {}  # jobs whose situation may have changed
        self._alike: dict[object, _Alike] = {}
        self._held: dict[int, set[int]] = {}  # pods that hold resources or may soon hold them
        self._leaving: dict[tuple[int, int], int] = {}  # evicted pods -> the preemptor
        self._told: dict[int, int] = {}
        self._minutes, self._jobs, self._causes = array("q"), array("q"), array("b")

    def judged(self, end: int) -> Judged:
        """Returns all judgements, including those for the end of the run."""
        self._reach(end + 1)
        columns = self._minutes, self._jobs, self._causes
        minutes, jobs, causes = (np.array(column, dtype=np.int64) for column in columns)
        return Judged(minutes, jobs, causes)

    # --- calls to the policy, and its decisions ----------------------------------------------------------

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Notes that pods wait, and submits them to the policy; see `Policy`."""
        self._reach(now)
        if self._begin is None:
            self._begin = now
        self._gone(job, pods)
        waiting = self._waiting.get(job.index)
        if waiting is None:
            waiting = self._waiting[job.index] = _Waiting(job)
        waiting.pods.update(pods)
        self._told.pop(job.index, None)
        self._change(job)
        self._policy.submit(job, pods, now)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Notes that pods released their resources, and tells the policy; see `Policy`."""
        self._reach(now)
        self._gone(job, pods)
        waiting = self._waiting.get(job.index)
        if waiting is not None:  # The admission ends, because there are no nodes or no pod is bound.
            waiting.pods.difference_update(pods)
            if why is Why.EVICTED:
                self._withdraw(waiting)
        self._change(job)
        self._policy.release(job, pods, now, why)

    def _alter(self, change: Change, now: int) -> Iterator[Decision]:
        self._reach(now)
        if self._begin is not None:
            heappush(self._due, self._minute(now))
        if self._room is not None and change.edit.kind == "Node":
            self._room.follow(change.edit.name, change.edit.after)
        yield from self._decided(now, self._tell_changed(change, now) or ())

    def cycle(self, now: int) -> Iterator[Decision]:
        """Runs a cycle of the policy, and records its decisions; see `Policy`."""
        return self._decided(now, self._policy.cycle(now))

    def _decided(self, now: int, decisions: Iterable[Decision]) -> Iterator[Decision]:
        self._reach(now)
        for decision in decisions:
            self._take(decision)
            yield decision

    def _take(self, decision: Decision) -> None:
        """Updates the state for a decision. The engine checks the decision later, so it may be invalid."""
        match decision:
            case Refuse() | Wake():  # Most decisions are of these kinds, which move no pods.
                return
            case Admit(job) if job.index in self._waiting:
                self._admit(self._waiting[job.index], decision)
            case Bind(job, pods, node) if job.index in self._waiting:
                self._bind(self._waiting[job.index], pods, node)
            case Preempt(job, by, _, pods):
                self._evict(job, by, pods)
            case Nominate(job, pod) if job.index in self._waiting:
                self._waiting[job.index].nominated.add(pod)
            case Unnominate(job, pod) if job.index in self._waiting:
                self._waiting[job.index].nominated.discard(pod)
            case Reject(job) if job.index in self._waiting:
                self._waiting[job.index].pods.clear()
            case _:
                return
        self._change(decision.job)

    def _admit(self, waiting: _Waiting, admission: Admit) -> None:
        waiting.admitted, waiting.flavors = True, admission.flavors
        if self._room is None:
            self._held[waiting.job.index] = set(waiting.pods)
            return
        if admission.counts:  # Pods beyond the admitted counts no longer wait.
            first = 0
            for pod_set in waiting.job.pod_sets:
                last = first + pod_set.count
                fewer = pod_set.count - admission.counts.get(pod_set.name, pod_set.count)
                left = sorted(pod for pod in waiting.pods if first <= pod < last)
                waiting.pods.difference_update(left[max(0, len(left) - fewer) :])
                first = last
        if admission.delay:
            assert self._begin is not None
            waiting.until = self._now + admission.delay
            heappush(self._delays, (waiting.until, waiting.job.index))
            heappush(self._due, self._minute(waiting.until))

    def _bind(self, waiting: _Waiting, pods: range, node: str) -> None:
        waiting.pods.difference_update(pods)
        waiting.nominated.difference_update(pods)
        self._held.setdefault(waiting.job.index, set()).update(pods)
        if self._room is not None:
            self._room.bind(waiting.job, pods, node, waiting.flavors)

    def _evict(self, victim: Job, by: Job | None, pods: range | None) -> None:
        """Records an eviction of pods. The preemptor waits until these pods are gone."""
        held = self._held.get(victim.index, set())
        waiting = None if by is None else self._waiting.get(by.index)
        if by is not None and waiting is not None:
            for pod in sorted(held) if pods is None else pods:
                if pod in held and (victim.index, pod) not in self._leaving:
                    self._leaving[victim.index, pod] = by.index
                    waiting.awaited += 1
            self._moved[by.index] = None

    def _gone(self, job: Job, pods: range) -> None:
        held = self._held.get(job.index)
        if held is None:
            return
        held.difference_update(pods)
        if not held:
            del self._held[job.index]
        for pod in pods if self._leaving else ():
            by = self._leaving.pop((job.index, pod), None)
            waiting = None if by is None else self._waiting.get(by)
            if waiting is not None:
                waiting.awaited -= 1
                self._moved[waiting.job.index] = None
        if self._room is not None:
            self._room.free(job, pods)

    def _withdraw(self, waiting: _Waiting) -> None:
        waiting.admitted, waiting.until, waiting.flavors = False, -1, _NO_FLAVORS

    # --- judgements ---------------------------------------------------------------------------------------

    def _minute(self, time: int) -> int:
        assert self._begin is not None
        return -(-(time - self._begin) // MINUTE)

    def _change(self, job: Job) -> None:
        """Records that something has changed at this time, mainly for this job."""
        self._moved[job.index] = None
        if self._now != self._changed:
            self._changed = self._now
            heappush(self._due, self._minute(self._now))

    def _reach(self, now: int) -> None:
        """Judges the situation at every due minute before `now`."""
        if now <= self._now:
            return
        while self._due and self._begin is not None and self._begin + self._due[0] * MINUTE < now:
            minute = heappop(self._due)
            while self._due and self._due[0] == minute:
                heappop(self._due)
            self._judge(minute)
        self._now = now

    def _judge(self, minute: int) -> None:
        assert self._begin is not None
        now = self._begin + minute * MINUTE
        while self._delays and self._delays[0][0] <= now:
            self._moved[heappop(self._delays)[1]] = None
        for index in sorted(self._moved):
            waiting = self._waiting.get(index)
            if waiting is not None:
                self._join(waiting, minute, now)
        self._moved.clear()
        for alike in self._alike.values():
            cause = self._cause(alike)
            if cause == alike.cause and not alike.new:
                continue
            concerned: Iterable[int] = alike.new if cause == alike.cause else alike.jobs
            alike.cause = cause
            for index in concerned:
                self._tell(minute, index, cause)
            alike.new.clear()

    def _join(self, waiting: _Waiting, minute: int, now: int) -> None:
        """Finds the group with which a job is judged, unless resources are reserved for the job."""
        index, before = waiting.job.index, waiting.alike
        waiting.alike = None
        if waiting.pods and self._is_reserved(waiting, now):
            self._tell(minute, index, RESERVED)
        elif waiting.pods:
            key = self._key(waiting)
            if key not in self._alike:
                self._alike[key] = _Alike(key)
            waiting.alike = self._alike[key]
        elif not waiting.awaited:
            del self._waiting[index]
        if waiting.alike is not None and waiting.alike is not before:
            waiting.alike.jobs[index] = waiting
        if waiting.alike is not None:
            waiting.alike.new[index] = None
        if before is not None and before is not waiting.alike:
            del before.jobs[index]
            before.new.pop(index, None)
            if not before.jobs:
                del self._alike[before.key]

    def _is_reserved(self, waiting: _Waiting, now: int) -> bool:
        """Returns True if a job waits for victims, for checks, or for its start."""
        starts = waiting.admitted and (self._room is None or waiting.until > now)
        return starts or bool(waiting.nominated) or waiting.awaited > 0

    def _key(self, waiting: _Waiting) -> object:
        job, pods = waiting.job, waiting.pods
        part = None
        if len(pods) < job.pods:
            part = tuple(sorted(Counter(job.pod_set_of(pod).name for pod in pods).items()))
        flavors = tuple((name, *chosen.items()) for name, chosen in waiting.flavors.items())
        return job.namespace, job.queue, job.priority, job.pod_sets, part, waiting.admitted, flavors

    def _cause(self, alike: _Alike) -> int:
        waiting = next(iter(alike.jobs.values()))
        job, room = waiting.job, self._room
        if self._within_quota is not None and not self._within_quota(job, sorted(waiting.pods)):
            return QUOTA
        if room is None:
            return POLICY
        if alike.ask is None:
            alike.ask = room.asked(job, sorted(waiting.pods), waiting.flavors)
        return POLICY if room.takes(alike.ask, job) else FRAGMENTED

    def _tell(self, minute: int, index: int, cause: int) -> None:
        if self._told.get(index) != cause:
            self._told[index] = cause
            self._minutes.append(minute)
            self._jobs.append(index)
            self._causes.append(cause)
