"""Derives the state of a job in a run at a given moment from the earlier decisions about the job."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, final

from harness.policy import Job
from harness.studies.forecasting.api_objects import Eviction, Quota, Shown, ShownPod, name_in

_EVICTIONS = ("preempt", "evict")
_ALL = -1
"""The pod number for all pods together, if a job holds its resources as a whole."""


class Told(NamedTuple):
    """A decision about a job. All times are in microseconds on one clock.

    Attributes:
        action: the action; see `harness.engine.events.ACTIONS`.
        pod: the number of the pod; None for the whole job.
        successor: how often the pod had been recreated.
        holding: 1 if the job begins to hold resources, -1 if it stops.
        reason: the policy's name for the rule behind the decision.
        flavors: the flavors if the decision is an admission, as JSON.
        time_outs: how often pods were not ready in time, if this is the reason of an eviction.
        requeue_at: when the job returns to its queue after such an eviction.
    """

    time: int
    action: str
    pod: int | None
    successor: int
    pods: int
    holding: int
    reason: str | None
    node: str | None
    flavors: str | None
    time_outs: int | None
    requeue_at: int | None


class _Hold(NamedTuple):
    node: str
    since: int
    told: int | None = None


@final
class Standing:
    """The state of a job. Each decision updates the state.

    Args:
        queued: whether Kueue manages the job. If not, each of its pods is a separate job.
        on_nodes: whether pods are bound to nodes.
        progress: the times at which the job began to make progress, in ascending order. None if the job makes
            progress as soon as all of its pods have what they request.
    """

    def __init__(
        self, job: Job, *, queued: bool, on_nodes: bool, progress: Sequence[int] | None = None
    ) -> None:
        self._job = job
        self._queued = queued
        self._on_nodes = on_nodes
        self._progress = progress
        self._created = 0
        self._admitted: Told | None = None
        self._evicted: Eviction | None = None
        self._leaving = False
        self._complete: int | None = None
        self._holds: dict[int, _Hold] = {}
        self._successors: dict[int, int] = {}
        self._nominated: dict[int, str] = {}
        self._ended: set[int] = set()
        self._time_outs = 0
        self._requeue_at: int | None = None

    def take(self, told: Told) -> None:
        """Updates the state with one decision."""
        time, action, pod = told.time, told.action, told.pod
        if action == "submit":
            self._created = time
        elif action == "admit":
            self._admitted, self._leaving, self._complete = told, False, None
            if not self._on_nodes and told.holding == 1:
                self._hold(_ALL, _Hold("", time))
        elif action == "start":
            self._hold(_ALL, _Hold("", time))
        elif action == "bind" and pod is not None:
            self._nominated.pop(pod, None)
            self._hold(pod, _Hold(told.node or "", time))
        elif action == "nominate" and pod is not None:
            self._nominated[pod] = told.node or ""
        elif action == "unnominate" and pod is not None:
            self._nominated.pop(pod, None)
        elif action in _EVICTIONS:
            self._evict(told)
        elif action == "gone":
            self._holds.pop(_ALL if pod is None else pod, None)
            if pod is not None:
                self._successors[pod] = told.successor + 1
        elif action == "finish" and pod is not None:
            self._holds.pop(pod, None)
            self._ended.add(pod)
        elif action == "requeue" and pod is None:
            self._admitted, self._leaving, self._complete = None, False, None
            if self._evicted is not None:
                self._evicted = self._evicted._replace(gone=time)

    def _hold(self, pod: int, hold: _Hold) -> None:
        self._holds[pod] = hold
        if self._is_complete:
            self._complete = hold.since

    def _evict(self, told: Told) -> None:
        if told.pod is not None:
            if told.pod in self._holds:
                self._holds[told.pod] = self._holds[told.pod]._replace(told=told.time)
            return
        self._evicted = Eviction(told.time, told.reason or told.action, told.action == "preempt")
        self._leaving = bool(self._holds)
        self._holds = {pod: hold._replace(told=told.time) for pod, hold in self._holds.items()}
        if told.time_outs is not None:
            self._time_outs, self._requeue_at = told.time_outs, told.requeue_at

    @property
    def _wanted(self) -> int:
        return self._job.pods if self._admitted is None else self._admitted.pods

    @property
    def _is_complete(self) -> bool:
        return _ALL in self._holds or len(self._holds) + len(self._ended) >= self._wanted

    @property
    def started(self) -> bool:
        """Returns True if all pods that should run have what they request.

        The result is False while the whole job is being evicted.
        """
        return bool(self._holds) and not self._leaving and self._is_complete

    @property
    def waits(self) -> bool:
        """Returns True if the job, or a pod that is a separate job, waits for a start."""
        if not self._queued:
            return any(pod not in self._holds for pod in self._alive)
        unbound = self._on_nodes and not self._is_complete
        return self._leaving or self._admitted is None or unbound

    @property
    def _alive(self) -> Iterator[int]:
        return (pod for pod in range(self._job.pods) if pod not in self._ended)

    def _name(self, pod: int) -> str:
        return name_in(self._job.namespace, self._job.pod_name(pod, self._successors.get(pod, 0)))

    def shown(self, moment: int, queue: str) -> Shown:
        """Returns the job's state at a moment. If the job holds quota, `queue` is its ClusterQueue."""
        if not self._queued:
            pods = tuple(self._pod(pod, moment) for pod in self._alive)
            return Shown(job=self._job, created=self._created, queued=False, pods=pods)
        found = Shown(
            job=self._job,
            created=self._created,
            queued=True,
            eviction=self._evicted,
            leaving=self._leaving,
            waited_for=True,
            time_outs=self._time_outs,
            requeue_at=self._requeue_at,
            away=self._requeue_at is not None and self._requeue_at > moment,
            active=self._evicted is None or not self._evicted.deactivated,
            ended=frozenset(self._ended),
        )
        if self._admitted is None:
            return found
        given, since = self._admitted, self._admitted.time
        flavors = json.loads(given.flavors) if given.flavors else {}
        counts = _counts(self._job, given.pods)
        return replace(
            found,
            quota=Quota(queue, flavors, counts, since, since),
            ready=self._ready(moment),
            began=self._complete,
            pods=tuple(self._pods(moment)),
        )

    def _pods(self, moment: int) -> Iterator[ShownPod]:
        """Yields the Pods of the job that exist, whether or not they are bound to nodes."""
        if not self._on_nodes:
            return
        wanted = self._wanted - len(self._ended) - len(self._holds)
        for pod in self._alive:
            if pod in self._holds:
                yield self._pod(pod, moment)
            elif wanted > 0 and not self._leaving:
                wanted -= 1
                yield self._pod(pod, moment)

    def _pod(self, pod: int, moment: int) -> ShownPod:
        hold = self._holds.get(pod)
        if hold is None:
            return ShownPod(pod, self._name(pod), nominated=self._nominated.get(pod, ""))
        ready = self._ready(moment) if self._queued else hold.since
        return ShownPod(pod, self._name(pod), hold.node, hold.since, ready, hold.told)

    def _ready(self, moment: int) -> int | None:
        """Returns when all pods became ready, even if they were evicted later; None if they did not."""
        if self._complete is None or self._progress is None:
            return self._complete
        at = bisect_left(self._progress, self._complete)
        until = self._evicted.time if self._leaving and self._evicted is not None else moment
        return self._progress[at] if at < len(self._progress) and self._progress[at] <= until else None


def counts_are_known(job: Job, pods: int) -> bool:
    """Returns True if the total number of admitted pods determines the number in each pod set."""
    return pods == job.pods or sum(each.min_count < each.count for each in job.pod_sets) == 1


def _counts(job: Job, pods: int) -> list[int]:
    fewer = job.pods - pods
    return [each.count - (fewer if each.min_count < each.count else 0) for each in job.pod_sets]
