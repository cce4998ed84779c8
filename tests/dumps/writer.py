"""What an API server shows of a replay at an instant: Workloads, Jobs and Pods, as kubectl prints them.

`TRUTH`, an annotation that only this loop reads, says how long the work of an object is, without what earlier
evictions have left of it, and how long its pods still take and will take until they are ready.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from dumps.observed import Observed
from harness.engine.events import ADMIT, BIND, EVICT, GONE, PREEMPT, START
from harness.engine.life import Hold, Life
from harness.models.kube.policy import PodPolicy
from harness.policy import Job, PodSet
from harness.units import SECOND, format_amount
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.rules.wait_for_pods_ready import TIMED_OUT
from harness_plugins.kueue.state.workload import Workload

Manifest = dict[str, Any]
TRUTH = "harness.test/truth"
_SCORED = ("cpu", "memory")
_ELSEWHERE = "elsewhere"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        found: list[Manifest] = []
        if isinstance(policy, KueuePolicy):
            for index, workload in policy._workloads.items():
                found += self._of_workload(policy, workload, self._lives.get(index))
        else:
            for life in self._lives.values():
                found += self._pods(life, policy, {})
        names = ("namespace", "name")
        return sorted(found, key=lambda each: (each["kind"], *(each["metadata"][name] for name in names)))

    # --- Kueue ----------------------------------------------------------------------------------------------

    def _of_workload(self, policy: KueuePolicy, workload: Workload, life: Life | None) -> Iterator[Manifest]:
        job = workload.job
        name = job.id.partition("/")[2]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job-{job.uid}"}
        status: Manifest = {"conditions": list(self._conditions(policy, workload, life))}
        if workload.has_quota:
            assert life is not None
            status["admission"] = self._admission(policy, workload)
        pods_ready = policy.pods_ready
        count = 0 if pods_ready is None else pods_ready._counts.get(workload, 0)
        if count:
            status["requeueState"] = {"count": count}
            late = self._last_time_out(job)
            if late is not None:
                status["requeueState"]["requeueAt"] = self._time(late * SECOND)
        given_up = pods_ready is not None and pods_ready.gives_up(workload)
        yield {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                **self._metadata(name, job, job.uid),
                "ownerReferences": [owner],
                "annotations": {TRUTH: self._truth(life)},
            },
            "spec": {
                "active": not given_up,
                "queueName": job.queue,
                "priority": job.priority,
                "podSets": [_pod_set(each, job) for each in job.pod_sets],
            },
            "status": status,
        }
        if life is not None:
            yield self._job(workload, life, owner)
            if workload.has_quota:
                yield from self._pods(life, policy, owner)

    def _last_time_out(self, job: Job) -> int | None:
        """Until when a job that was not ready in time stays away from its queue, seconds."""
        for fact in reversed(self._observed.facts):
            if fact.job.index == job.index and fact.reason == TIMED_OUT and fact.detail is not None:
                return int(fact.detail["requeueAt"])
        return None

    def _conditions(self, policy: KueuePolicy, workload: Workload, life: Life | None) -> Iterator[Manifest]:
        """The conditions, as Kueue's controllers leave them."""
        index = workload.job.index
        evicted = self._observed.last(index, EVICT, PREEMPT)
        admitted = self._observed.last(index, ADMIT)
        if workload.has_quota:
            assert admitted is not None
            yield self._condition("QuotaReserved", True, "QuotaReserved", workload.reserved)
            yield self._condition("Admitted", True, "Admitted", admitted.time)
        elif evicted is not None:
            gone = self._observed.last(index, GONE)
            since = evicted.time if gone is None else gone.time
            yield self._condition("QuotaReserved", False, "Pending", since)
            yield self._condition("Admitted", False, "NoReservation", since)
        else:
            yield self._condition("QuotaReserved", False, "Pending", workload.created)
        if evicted is not None:
            again = workload.has_quota and not workload.evicted
            assert evicted.reason is not None
            reason = evicted.reason if evicted.action == EVICT else "Preempted"
            since = evicted.time
            if again:
                since, reason = workload.reserved, "QuotaReserved"
            yield self._condition("Evicted", not again, reason, since)
            if evicted.action == PREEMPT:
                preempted = "QuotaReserved" if again else evicted.reason
                yield self._condition("Preempted", not again, preempted, since)
            away = policy.pods_ready is not None and policy.pods_ready.stays_away(workload)
            if not workload.has_quota:
                requeued = evicted.reason if away else "BackoffFinished"
                yield self._condition("Requeued", not away, requeued, evicted.time)
        if policy.pods_ready is not None and workload.has_quota:
            yield from self._readiness(policy, workload, life)

    def _readiness(self, policy: KueuePolicy, workload: Workload, life: Life | None) -> Iterator[Manifest]:
        """Whether all pods are ready, which Kueue says where it waits for them."""
        assert policy.pods_ready is not None
        assert life is not None
        admission = policy.pods_ready._admissions[workload]
        since = self._ready_at(life)
        ready = admission.ready or (admission.going and not admission.missing)
        if ready and since is not None:
            yield self._condition("PodsReady", True, "Started", since)
        else:
            yield self._condition("PodsReady", False, "WaitForStart", workload.reserved)

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

    def _admission(self, policy: KueuePolicy, workload: Workload) -> Manifest:
        assert workload.admission is not None
        job = workload.job
        flavors = policy._admissions.flavors_of(workload, workload.admission)  # type: ignore[arg-type]
        assignments = []
        for each, count in zip(job.pod_sets, workload.admission.counts, strict=True):
            usage = {
                resource: format_amount(resource, each.requests.get(resource, 0) * count)
                for resource in flavors[each.name]
            }
            assignments.append(
                {
                    "name": each.name,
                    "count": count,
                    "flavors": dict(flavors[each.name]),
                    "resourceUsage": usage,
                }
            )
        return {"clusterQueue": workload.cluster_queue.name, "podSetAssignments": assignments}

    def _job(self, workload: Workload, life: Life, owner: Manifest) -> Manifest:
        """The Job; it starts when the last of its pods holds what it asks for.

        In a cluster it starts with its admission. Where nothing says when its pods were ready, progress
        counts from its start, which is too early then where they had to wait for nodes.
        """
        job = life.job
        first = job.pod_sets[0]
        status: Manifest = {}
        if workload.has_quota and not workload.evicted:
            began = self._began(life) if life.holding else None
            if began is not None:
                status = {"startTime": self._time(began), "active": life.wanted}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                **self._metadata(owner["name"], job, owner["uid"]),
                "labels": {"kueue.x-k8s.io/queue-name": job.queue},
            },
            "spec": {
                "parallelism": job.pods,
                "completions": job.pods,
                "suspend": not workload.has_quota or workload.evicted,
                "template": _template(first, job),
            },
            "status": status,
        }

    # --- Pods -----------------------------------------------------------------------------------------------

    def _pods(self, life: Life, policy: Any, owner: Manifest) -> Iterator[Manifest]:
        """The Pods of a job: bound ones, and those that wait for a node."""
        job = life.job
        going = life.terminating or any(hold.terminating for hold in life.holds.values())
        for pod in life.every_pod:
            if pod in life.ended or not life.is_wanted(pod):
                continue
            hold = self._hold(life, pod)
            if hold is None and owner and (going or not life.admitted):
                continue
            name = life.current_name(pod).partition("/")[2]
            template = _template(job.pod_set_of(pod), job)
            metadata = {**self._metadata(name, job, f"pod-{job.uid}-{pod}"), **template["metadata"]}
            status: Manifest = {"phase": "Pending"}
            spec = {**template["spec"]}
            if owner:
                metadata["ownerReferences"] = [{**owner, "controller": True}]
                labels = {
                    "kueue.x-k8s.io/podset": job.pod_set_of(pod).name,
                    "batch.kubernetes.io/job-name": owner["name"],
                    "batch.kubernetes.io/controller-uid": owner["uid"],
                }
                metadata["labels"] = {**metadata.get("labels", {}), **labels}
                metadata["annotations"] = {"kueue.x-k8s.io/workload": owner["name"]}
            else:
                metadata["annotations"] = {TRUTH: self._truth(life, pod)}
            if hold is not None:
                spec["nodeName"] = hold.node
                status = {"phase": "Running", "startTime": self._time(hold.since)}
                conditions = [self._condition("PodScheduled", True, "", hold.since)]
                ready = self._ready_at(life) if owner else hold.since
                if ready is not None and not hold.terminating:
                    conditions.append(self._condition("Ready", True, "", ready))
                if hold.terminating:
                    told = self._observed.last(job.index, EVICT, PREEMPT, pod=pod)
                    assert told is not None
                    metadata["deletionTimestamp"] = self._time(told.time + job.grace_period)
                    metadata["deletionGracePeriodSeconds"] = job.grace_period // SECOND
                    if not owner:
                        reason = "PreemptionByScheduler"
                        conditions.append(self._condition("DisruptionTarget", True, reason, told.time))
                status["conditions"] = conditions
            elif isinstance(policy, PodPolicy):
                info = policy._pods.get((job.index, pod))
                if info is not None and info.nominated:
                    status["nominatedNodeName"] = info.nominated
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

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

    # --- parts ----------------------------------------------------------------------------------------------

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

    def _metadata(self, name: str, job: Job, uid: str) -> Manifest:
        namespace = job.id.partition("/")[0]
        return {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "creationTimestamp": self._time(job.submit),
        }

    def _condition(self, kind: str, status: bool, reason: str, since: int) -> Manifest:
        return {
            "type": kind,
            "status": str(status),
            "reason": reason,
            "lastTransitionTime": self._time(since),
        }

    def _time(self, since: int) -> str:
        """A time as the API has it."""
        assert since % SECOND == 0, "nothing happens between two seconds"
        return (_EPOCH + timedelta(microseconds=self._origin + since)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pod_set(pod_set: PodSet, job: Job) -> Manifest:
    least = {"minCount": pod_set.min_count} if pod_set.min_count < pod_set.count else {}
    return {
        "name": pod_set.name,
        "count": pod_set.count,
        **least,
        "template": _template(pod_set, job, kueue=True),
    }


def _template(pod_set: PodSet, job: Job, *, kueue: bool = False) -> Manifest:
    """The template of pods.

    In that of a Workload nothing has filled in the priority. Requests for nothing are named where they count,
    as in a trace: to Kueue all do, and kube-scheduler scores a pod that names neither cpu nor memory by
    defaults.
    """
    requests = {
        name: format_amount(name, amount)
        for name, amount in pod_set.requests.items()
        if amount or kueue or name not in _SCORED
    }
    tolerations = json.loads(pod_set.tolerations) if pod_set.tolerations else []
    return {
        "metadata": {"labels": dict(pod_set.labels)} if pod_set.labels else {},
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            **({} if kueue else {"priority": job.priority}),
            **({} if kueue or job.preempts else {"preemptionPolicy": "Never"}),
            **({"nodeSelector": dict(pod_set.node_selector)} if pod_set.node_selector else {}),
            **({"tolerations": tolerations} if tolerations else {}),
            "terminationGracePeriodSeconds": job.grace_period // SECOND,
            "restartPolicy": "Never",
        },
    }
