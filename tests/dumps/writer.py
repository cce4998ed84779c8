"""What an API server shows of a replay at an instant: Workloads, Jobs and Pods, as kubectl prints them.

`TRUTH`, an annotation that only this loop reads, says how long the work of an object is, without what earlier
evictions have left of it, and how long its pods still take and will take until they are ready.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dumps.observed import Observed
from harness.base.units import SECOND
from harness.engine.events import ADMIT, BIND, EVICT, GONE, PREEMPT, START
from harness.engine.life import Hold, Life
from harness.models.kube.policy import PodPolicy
from harness.policy import Job
from harness.studies.forecasting.api_objects import (
    Eviction,
    Manifest,
    Quota,
    Shown,
    ShownPod,
    name_in,
    objects_of,
)
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.rules.wait_for_pods_ready import TIMED_OUT
from harness_plugins.kueue.state.workload import Workload

TRUTH = "harness.test/truth"
_ELSEWHERE = "elsewhere"


class Writer:
    """Writes the objects of a cluster.

    Args:
        observed: what has happened.
        lives: the jobs that are alive.
        origin: microseconds since 1970.
        now: the instant, microseconds since the origin.
        on_nodes: whether there are nodes.
    """

    def __init__(
        self, observed: Observed, lives: Mapping[int, Life], origin: int, now: int, *, on_nodes: bool
    ) -> None:
        self._observed = observed
        self._lives = lives
        self._origin = origin
        self._now = now
        self._on_nodes = on_nodes

    def objects(self, policy: Any) -> list[Manifest]:
        """All objects, by kind, namespace and name."""
        if isinstance(policy, KueuePolicy):
            several = [
                self._of_workload(policy, workload, self._lives.get(index))
                for index, workload in policy._workloads.items()
            ]
        else:
            several = [self._of_pods(life, policy) for life in self._lives.values()]
        truths = {key: text for each in several for key, text in self._truths(each)}
        found = objects_of(several)
        for each in found:
            metadata = each["metadata"]
            key = each["kind"], f"{metadata['namespace']}/{metadata['name']}"
            if key in truths:
                metadata["annotations"] = {**metadata.get("annotations", {}), TRUTH: truths[key]}
        return found

    # --- Kueue ----------------------------------------------------------------------------------------------

    def _of_workload(self, policy: KueuePolicy, workload: Workload, life: Life | None) -> Shown:
        job = workload.job
        pods_ready = policy.pods_ready
        count = 0 if pods_ready is None else pods_ready._counts.get(workload, 0)
        late = self._last_time_out(job) if count else None
        quota: Quota | None = None
        pods: tuple[ShownPod, ...] = ()
        holds = workload.has_quota or policy._executions.holds(workload)  # a deactivated one only by its pods
        if holds:
            assert life is not None
            quota, pods = self._quota(policy, workload), tuple(self._pods(life, policy, queued=True))
        return Shown(
            job=job,
            created=self._date(job.submit),
            queued=True,
            quota=quota,
            eviction=self._eviction(job.index),
            leaving=holds and (workload.evicted or not workload.has_quota),
            ready=self._ready(policy, workload, life),
            waited_for=pods_ready is not None,
            time_outs=count,
            requeue_at=None if late is None else self._date(late * SECOND),
            away=workload in policy._limits.backoffs
            or (pods_ready is not None and pods_ready.gives_up(workload)),
            active=not (pods_ready is not None and pods_ready.gives_up(workload)),
            began=self._began_at(life),
            pods=pods,
        )

    def _date(self, time: int) -> int:
        """Microseconds since 1970."""
        assert time % SECOND == 0, "nothing happens between two seconds"
        return self._origin + time

    def _last_time_out(self, job: Job) -> int | None:
        """Until when a job that was not ready in time stays away from its queue, seconds."""
        for fact in reversed(self._observed.facts):
            if fact.job.index == job.index and fact.reason == TIMED_OUT and fact.detail is not None:
                return int(fact.detail["requeueAt"])
        return None

    def _eviction(self, index: int) -> Eviction | None:
        evicted = self._observed.last(index, EVICT, PREEMPT)
        if evicted is None:
            return None
        gone = self._observed.last(index, GONE)
        assert evicted.reason is not None
        return Eviction(
            self._date(evicted.time),
            evicted.reason,
            evicted.action == PREEMPT,
            None if gone is None else self._date(gone.time),
        )

    def _ready(self, policy: KueuePolicy, workload: Workload, life: Life | None) -> int | None:
        """Since when all pods are ready, which Kueue says where it waits for them."""
        if policy.pods_ready is None or not workload.has_quota:
            return None
        assert life is not None
        admission = policy.pods_ready._admissions[workload]
        since = self._ready_at(life)
        ready = admission.ready or (admission.going and not admission.missing)
        return self._date(since) if ready and since is not None else None

    def _ready_at(self, life: Life) -> int | None:
        """When the pods of a job that runs were ready, or its run was stopped; None where they are not."""
        unit = life.unit
        if unit is None or unit.due < 0:
            return self._began(life)
        ready = unit.ready if unit.ready >= 0 else unit.began
        return ready if ready <= self._now else None

    def _began(self, life: Life) -> int | None:
        """When the last of a job's pods held what it asks for, in its present admission."""
        facts = [
            fact
            for fact in self._observed.facts
            if fact.job is life.job
            and (fact.action in (START, BIND) or (fact.action == ADMIT and fact.holding))
        ]
        return facts[-1].time if facts else None

    def _began_at(self, life: Life | None) -> int | None:
        """When a Job starts: when the last of its pods holds what it asks for.

        In a cluster it starts with its admission. Where nothing says when its pods were ready, progress
        counts from its start, which is too early then where they had to wait for nodes.
        """
        began = self._began(life) if life is not None and life.holding else None
        return None if began is None else self._date(began)

    def _quota(self, policy: KueuePolicy, workload: Workload) -> Quota:
        assert workload.admission is not None
        flavors = policy._admissions.flavors_of(workload, workload.admission)  # type: ignore[arg-type]
        admitted = self._observed.last(workload.job.index, ADMIT)
        assert admitted is not None
        return Quota(
            workload.cluster_queue.name,
            flavors,
            workload.admission.counts,
            self._date(workload.reserved),
            self._date(admitted.time),
        )

    # --- Pods -----------------------------------------------------------------------------------------------

    def _of_pods(self, life: Life, policy: Any) -> Shown:
        pods = tuple(self._pods(life, policy, queued=False))
        return Shown(job=life.job, created=self._date(life.job.submit), queued=False, pods=pods)

    def _pods(self, life: Life, policy: Any, *, queued: bool) -> Iterator[ShownPod]:
        """The Pods of a job: bound ones, and those that wait for a node."""
        job = life.job
        going = life.terminating or any(hold.terminating for hold in life.holds.values())
        for pod in life.every_pod:
            if pod in life.ended or not life.is_wanted(pod):
                continue
            hold = self._hold(life, pod)
            if hold is None and queued and (going or not life.admitted):
                continue
            name = name_in(job.namespace, life.current_name(pod))
            if hold is None:
                info = policy._pods.get((job.index, pod)) if isinstance(policy, PodPolicy) else None
                yield ShownPod(pod, name, nominated="" if info is None else info.nominated or "")
                continue
            ready = self._ready_at(life) if queued else hold.since
            told = self._observed.last(job.index, EVICT, PREEMPT, pod=pod) if hold.terminating else None
            assert not hold.terminating or told is not None
            yield ShownPod(
                pod,
                name,
                hold.node,
                self._date(hold.since),
                None if ready is None else self._date(ready),
                None if told is None else self._date(told.time),
            )

    def _hold(self, life: Life, pod: int) -> Hold | None:
        """Where a pod runs and since when; without nodes all do together, on nodes that the dump has not."""
        if self._on_nodes:
            found = life.holds.get(pod)
            if found is None:
                return None
            began: int | None = self._observed.bound_at[life.job.index, pod]
        else:
            began = self._began(life) if life.holding else None
        if began is None:
            return None
        hold = Hold(_ELSEWHERE if not self._on_nodes else life.holds[pod].node, began)
        hold.terminating = life.terminating or (self._on_nodes and life.holds[pod].terminating)
        return hold

    # --- the truth ------------------------------------------------------------------------------------------

    def _truths(self, shown: Shown) -> Iterator[tuple[tuple[str, str], str]]:
        """How long work is, for each object of which a replay makes a job, by kind and name."""
        life, namespace = self._lives.get(shown.job.index), shown.job.namespace
        if shown.queued:
            yield ("Workload", f"{namespace}/{shown.name}"), self._truth(life)
            return
        for pod in shown.pods:
            yield ("Pod", f"{namespace}/{pod.name}"), self._truth(life, pod.number)

    def _truth(self, life: Life | None, pod: int | None = None) -> str:
        """How long the work is, and how long its pods take until they are ready: now, and each time."""
        if life is None:
            return "{}"
        unit = life.unit if pod is None or life.unit is not None else life.units.get(pod)
        kept = 0 if unit is None else unit.kept
        found: Manifest = {"work": life.work - kept}
        if life.startup is not None:
            left = life.startup[0]
            if unit is not None and unit.due >= 0:
                left = max(0, unit.ready - self._now)
            found |= {"left": left, "startup": life.startup[0]}
        return json.dumps(found)
