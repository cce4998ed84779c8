"""Answers recorded cases of `kueue/cycles`: whole replays through the engine, and single cycles.

What the recording added to Kueue is added here: an end that a preemption cancelled still makes an instant
happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

from harness.cluster.fields import Fields
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.cluster.workloads import Workload as Manifest
from harness.cluster.workloads import read_time, workload_from
from harness.engine import Engine
from harness.engine.events import ADMIT, FINISH, PREEMPT
from harness.errors import ClusterError, Fault
from harness.job import Job, PodSet
from harness.policy import Admit, Decision, Wake
from harness.units import SECOND
from harness_plugins.kueue.admission import Admitted
from harness_plugins.kueue.configuration import Gates, gates_from
from harness_plugins.kueue.imported import hold_quota, used_flavor_resources, workload_of
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.workload import Workload

_ORIGIN = 1_735_689_600 * SECOND  # 2025-01-01T00:00:00Z, the zero of recorded traces
_MILLISECOND = 1000


def answer(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer a case of `kueue/cycles`: who is admitted and preempted when."""
    config = case.get("config") or {}
    gates = gates_from(config.get("featureGates") or {})
    sharing = config.get("fairSharing")
    strategies = None if sharing is None else tuple(sharing["preemptionStrategies"])
    cluster = cluster_from(case["objects"], case["id"], webhooks=False)
    manifests = _read_workloads(case)
    if "maxCycles" in case["given"]:
        return _single_cycle(case["given"], cluster, manifests, gates, strategies)
    jobs = [
        _job(manifest, _submit(given, manifest))
        for given, manifest in zip(case["given"]["workloads"], manifests, strict=True)
    ]
    durations = [_duration(given) for given in case["given"]["workloads"]]
    order = sorted(range(len(jobs)), key=lambda number: jobs[number].submit)
    arrivals: list[tuple[Job, int, int | None]] = []
    for index, number in enumerate(order):
        jobs[number].index = index
        arrivals.append((jobs[number], durations[number], None))
    until = case["given"]["until"] * SECOND
    policy = KueuePolicy(Scheduler(cluster, gates, strategies), cluster)
    counting = "counts" in case["expect"]
    record = _Record(policy, counting=counting)
    engine = Engine([arrivals], cluster, record, until=until)
    engine.run(_WithCancelledEnds(policy, [arrival[1] for arrival in arrivals], until), name="kueue")
    return record.counts(len(jobs)) if counting else record.answer()


def _read_workloads(case: Mapping[str, Any]) -> list[Manifest]:
    faults: list[Fault] = []
    known: dict[str, tuple[PodSet, ...]] = {}
    manifests = [
        workload_from(Fields(given["workload"], f"{case['id']}, workload {number}", faults), known)
        for number, given in enumerate(case["given"]["workloads"])
    ]
    if faults:
        raise ClusterError(case["id"], faults)
    return manifests


def _submit(given: Mapping[str, Any], manifest: Manifest) -> int:
    if "submitMs" in given:
        return int(given["submitMs"]) * _MILLISECOND
    return (manifest.created or _ORIGIN) - _ORIGIN


def _duration(given: Mapping[str, Any]) -> int:
    if "durationMs" in given:
        return int(given["durationMs"]) * _MILLISECOND
    seconds: int | float = given["duration"]
    return round(seconds * SECOND)


def _job(manifest: Manifest, submit: int) -> Job:
    return Job(
        index=-1,
        id=manifest.name,
        submit=submit,
        queue=manifest.queue,
        namespace=manifest.namespace,
        user="",
        priority=manifest.priority,
        priority_class="",
        preempts=True,
        gang=True,
        grace_period=0,
        uid=manifest.uid,
        pod_sets=manifest.pod_sets,
        pods=sum(pod_set.count for pod_set in manifest.pod_sets),
    )


@final
class _WithCancelledEnds:
    """The policy, and an instant at every end that was ever due."""

    def __init__(self, policy: KueuePolicy, durations: list[int], until: int) -> None:
        self._durations = durations
        self._policy = policy
        self._until = until
        self.submit = policy.submit
        self.release = policy.release

    def cycle(self, now: int) -> Iterator[Decision]:
        """The policy's decisions, each admission with a wake at the end that is due then."""
        for decision in self._policy.cycle(now):
            yield decision
            if isinstance(decision, Admit):
                due = now + self._durations[decision.job.index]
                if now < due <= self._until:
                    yield Wake(due)


@final
class _Record:
    """Keeps what the engine reports in the form of the expected answers."""

    def __init__(self, policy: KueuePolicy, *, counting: bool) -> None:
        self._policy = policy
        self._counting = counting
        self._decisions: list[dict[str, Any]] = []
        self._number = dict.fromkeys((ADMIT, PREEMPT, FINISH), 0)
        self._makespan = 0
        self._held: dict[str, bool] = {}

    def decision(
        self,
        time: int,
        cycle: int,
        action: int,
        job: Job,
        pods: int,
        *_: Any,
        by: Job | None = None,
        reason: str | None = None,
        flavors: Mapping[str, Mapping[str, str]] | None = None,
        detail: Mapping[str, Any] | None = None,
        **__: Any,
    ) -> None:
        """Keep admissions, preemptions and ends."""
        if action in self._number:
            self._number[action] += 1
        if self._counting:
            if action == FINISH:
                self._makespan = time
            return
        entry: dict[str, Any] = {"t": _seconds(time), "cycle": self._policy.scheduler.cycles}
        if action == ADMIT:
            assert detail is not None
            entry |= {"admit": job.id, "flavors": flavors or {}, "borrowing": detail["borrowing"] > 0}
            if "counts" in detail:
                entry["counts"] = detail["counts"]
        elif action == PREEMPT:
            assert by is not None
            entry |= {"preempt": job.id, "by": by.id, "reason": reason}
        elif action == FINISH:
            entry = {"t": entry["t"], "finish": job.id}
            self._held.pop(job.id)
            self._decisions.append(entry)
            return
        else:
            self._held.setdefault(job.id, False)
            return
        self._held[job.id] = action == ADMIT
        self._decisions.append(entry)

    def share(self, *_: Any) -> None:
        """Shares are not compared."""

    def stint(self, *_: Any) -> None:
        """Not asked for."""

    def job(self, *_: Any) -> None:
        """Not asked for."""

    def answer(self) -> Mapping[str, Any]:
        """The answer of a whole trace."""
        return {
            "decisions": self._decisions,
            "final": {
                "admitted": sorted(name for name, held in self._held.items() if held),
                "pending": sorted(name for name, held in self._held.items() if not held),
            },
            "cycles": self._policy.scheduler.cycles,
        }

    def counts(self, workloads: int) -> Mapping[str, Any]:
        """The answer of a performance set-up."""
        return {
            "counts": {
                "workloads": workloads,
                "admissions": self._number[ADMIT],
                "preemptions": self._number[PREEMPT],
                "finished": self._number[FINISH],
                "makespanMs": self._makespan // _MILLISECOND,
                "cycles": self._policy.scheduler.cycles,
                "heads": self._policy.scheduler.heads,
            }
        }


def _seconds(time: int) -> int | float:
    return time // SECOND if time % SECOND == 0 else time / SECOND


def _single_cycle(
    given: Mapping[str, Any],
    cluster: Cluster,
    manifests: list[Manifest],
    gates: Gates,
    strategies: tuple[str, ...] | None,
) -> Mapping[str, Any]:
    """Play one cycle on a state that is given as manifests, without what would follow from it."""
    also = used_flavor_resources(cluster.workloads)
    scheduler = Scheduler(cluster, gates, strategies, also=also)
    policy = KueuePolicy(scheduler, cluster)
    faults: list[Fault] = []
    now = read_time(Fields(given, "given", faults), "now") or 0
    hold_quota(scheduler.cache, cluster.workloads, gates, now)
    for manifest in manifests:
        queue = cluster.cluster_queue_of(manifest.namespace, manifest.queue)
        if queue is not None:
            workload = workload_of(manifest, gates)
            scheduler.house(workload, _job(manifest, 0), scheduler.pending[queue.name])
            scheduler.enqueue(workload)
    decisions: list[dict[str, Any]] = []
    for outcome in scheduler.cycle():
        at: dict[str, Any] = {"t": 0, "cycle": scheduler.cycles}
        if isinstance(outcome, Admitted):
            workload, assignment = outcome
            at |= {"admit": _name(workload), "flavors": policy.flavors_of(workload, assignment)}
            at["borrowing"] = assignment.borrowing > 0
            if counts := policy.counts_of(workload, assignment):
                at["counts"] = counts
            decisions.append(at)
        else:
            at["by"] = _name(outcome.preemptor)
            decisions += [
                at | {"preempt": _name(target.workload), "reason": target.reason}
                for target in sorted(outcome.targets, key=lambda target: target.workload.name)
            ]
    pending = scheduler.pending.items()
    return {
        "decisions": decisions,
        "left": _keys({name: queue.active() for name, queue in pending}),
        "inadmissible": _keys({name: queue.inadmissible() for name, queue in pending}),
    }


def _name(workload: Workload) -> str:
    return workload.name.partition("/")[2]


def _keys(queues: Mapping[str, list[Workload]]) -> Mapping[str, list[str]]:
    return {
        name: sorted(workload.name for workload in workloads)
        for name, workloads in queues.items()
        if workloads
    }
