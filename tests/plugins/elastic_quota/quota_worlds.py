"""Small worlds for tests of elastic quotas: a tree, a few nodes, a few jobs, and what happens, as text."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from more_examples import examples

from harness import Cluster, PodSet, Policy, View
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import frozen
from harness.engine.engine import Arrival
from harness.models.kube.policy import PodPolicy
from harness.policy import PolicyFactory
from harness.testing import Decisions, Script, replayed
from harness_plugins.elastic_quota.options import OPTIONS, OPTIONS_OF_AUTO
from harness_plugins.elastic_quota.policy import auto, elastic_quota
from harness_plugins.elastic_quota.scheduler import QuotaScheduler

Manifest = dict[str, Any]

KOORDINATOR = "quota.scheduling.koordinator.sh/"

AT_ONCE: dict[str, Any] = {"evictionLatency": "0s"}

fuzz = partial(examples, variable="QUOTA_FUZZ")
"""A 24th of so many examples; QUOTA_FUZZ=50 runs fifty times the number."""

LONG_ENOUGH = 3_600
"""Seconds by which nearly all random worlds are at rest; in others pods evict each other for a month."""


def node(name: str, cpu: int, **fields: Any) -> Manifest:
    """A Node with so many cores; `spec`, `labels` and further amounts may follow."""
    amounts = {"cpu": cpu, "pods": 110, **fields.pop("amounts", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": fields.pop("labels", {})},
        "spec": fields.pop("spec", {}),
        "status": {"allocatable": amounts},
    }


def leaf(name: str, least: int, most: int, **fields: Any) -> Manifest:
    """A quota of cpu that jobs of the queue of its name belong to."""
    return {"name": name, "min": {"cpu": least}, "max": {"cpu": most, "memory": "1Ti"}, **fields}


def tree(total: int, *children: Manifest) -> Manifest:
    """An ElasticQuotaTree over these quotas."""
    bound = {"cpu": total, "memory": "1Ti"}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "tree", "namespace": "kube-system"},
        "spec": {"root": {"name": "root", "min": bound, "max": bound, "children": list(children)}},
    }


def flat(
    name: str,
    least: int,
    most: int,
    *,
    amounts: dict[str, int] | None = None,
    least_amounts: dict[str, int] | None = None,
    **labels: str,
) -> Manifest:
    """A Koordinator ElasticQuota of cpu, and of other resources that its `max` may name."""
    labels = {"is_parent": "false", **labels}
    given = {f"{KOORDINATOR}{key.replace('_', '-')}": value for key, value in labels.items()}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": name, "labels": given},
        "spec": {"min": {"cpu": least, **(least_amounts or {})}, "max": {"cpu": most, **(amounts or {})}},
    }


def budget(labels: Mapping[str, str], **spec: Any) -> Manifest:
    """A PodDisruptionBudget over pods with these labels."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "budget"},
        "spec": {"selector": {"matchLabels": dict(labels)}, **spec},
    }


def group(least: int, name: str = "g", api: str = "scheduling.x-k8s.io", **spec: Any) -> Manifest:
    """A PodGroup."""
    return {
        "apiVersion": f"{api}/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": least, **spec},
    }


class Jobs(Script):
    """Jobs of quotas; amounts of cpu in cores."""

    def add(
        self, name: str, queue: str, cpu: int, *, labels: Mapping[str, str] | None = None, **fields: Any
    ) -> Jobs:
        """Add a job of a queue, each of its pods with so many cores, and `amounts`; see `Script.job`."""
        fields = {"seconds": 1000, **fields}
        pods, spec = fields.pop("pods", 1), fields.pop("spec", None)
        priority_class = fields.pop("priority_class", "")
        pod_set = PodSet(
            "main",
            pods,
            pods,
            frozen({"cpu": 1000 * cpu, **fields.pop("amounts", {})}),
            labels=frozen(labels or {}),
            pod_template=json.dumps(spec) if spec else None,
        )
        self.job(name, queue=queue, pod_sets=(pod_set,), **fields)
        if priority_class:
            job, *rest = self._arrivals[-1]
            self._arrivals[-1] = (replace(job, priority_class=priority_class), *rest)
        return self

    def of(self, arrivals: Sequence[Arrival], others: Jobs | None = None) -> Jobs:
        """Add jobs that are made already, and those of others."""
        for job, *rest in [*arrivals, *(others.arrivals() if others is not None else ())]:
            self._arrivals.append((replace(job, index=len(self._arrivals)), *rest))
        return self

    def of_pod_sets(
        self, name: str, queue: str, at: float, *parts: tuple[str, int, int | None], **fields: Any
    ) -> Jobs:
        """Add a job of one pod a part: its pod group, its cores, and the priority that its template names."""
        fields = {"seconds": 1000, "gang": False, **fields}
        pod_sets = [
            PodSet(
                f"{number}",
                1,
                1,
                frozen({"cpu": 1000 * cpu}),
                labels=frozen({POD_GROUP: group} if group else {}),
                pod_template=json.dumps({"priority": priority}) if priority is not None else None,
            )
            for number, (group, cpu, priority) in enumerate(parts)
        ]
        self.job(name, queue=queue, at=at, pod_sets=tuple(pod_sets), **fields)
        return self

    def arrivals(self) -> list[Arrival]:
        """All jobs so far."""
        return list(self._arrivals)


def cluster(*manifests: Manifest) -> Cluster:
    """A cluster of some manifests."""
    return cluster_from(manifests, "test")


CPUS = 24
QUEUES = ("q0", "q1", "q2", "q3", "no-quota")
POD_GROUP = "scheduling.x-k8s.io/pod-group"
APART = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}


def varied(rng: random.Random) -> tuple[Cluster, Jobs]:
    """Eight nodes, four quotas in groups or not, and jobs that preempt each other for what there is.

    Quotas allow less than nodes hold, as much, or more.
    """
    total = rng.choice((CPUS * 2 // 3, CPUS, CPUS * 2))
    quotas = [
        leaf(f"q{number}", rng.randint(0, total // 4), rng.choice([total // 2, total])) for number in range(4)
    ]
    if rng.random() < 0.5:
        least = [sum(each["min"]["cpu"] for each in pair) for pair in (quotas[:2], quotas[2:])]
        quotas = [
            leaf("a", least[0], total, children=quotas[:2]),
            leaf("b", least[1], total, children=quotas[2:]),
        ]
    jobs, at, grace = Jobs(), 0, rng.choice((0, 2))
    for number in range(rng.randint(20, 60)):
        at += rng.choice((0, 0, 1, 4))
        apart = rng.random() < 0.05
        cpu = rng.choice((1, 1, 2, 3))
        jobs.add(
            f"j{number}",
            rng.choice(QUEUES),
            cpu,
            labels={"app": "web"} if apart or rng.random() < 0.1 else None,
            spec=spread(cpu) if apart else None,
            at=at,
            seconds=rng.randint(1, 60),
            pods=rng.choice((1, 1, 1, 2, 3)),
            gang=rng.random() < 0.5,
            priority=rng.choice((0, 0, 3, 7)),
            grace=grace,
        )
    nodes = [
        node(f"n{number}", 3, labels={"zone": f"z{number % 3}"}, spec={"unschedulable": number == 7})
        for number in range(8)
    ]
    budgets = [budget({"app": "web"}, minAvailable=rng.randint(0, 3))] if rng.random() < 0.2 else []
    return cluster(*nodes, tree(total, *quotas), *budgets), jobs


def with_daemons(jobs: Jobs, rng: random.Random) -> tuple[Jobs, set[str]]:
    """The same jobs, of which the pods of some belong to DaemonSets; answers the names of those, too."""
    manifest = {"metadata": {"name": "agent", "ownerReferences": [{"kind": "DaemonSet", "name": "agent"}]}}
    made, daemons = [], set()
    for job, *rest in jobs.arrivals():
        if rng.random() < 0.3 and not job.pod_sets[0].pod_template:
            template = json.dumps({**manifest, "spec": {}})
            pod_sets = tuple(replace(each, pod_template=template) for each in job.pod_sets)
            job = replace(job, pod_sets=pod_sets)
            daemons.add(job.id)
        made.append((job, *rest))
    return Jobs().of(made), daemons


def grouped(rng: random.Random) -> tuple[Cluster, Jobs]:
    """Four nodes, three quotas, and six pod groups of jobs of any queue and priority, beside others."""
    total = 16
    quotas = [
        leaf(f"q{number}", rng.randint(0, total // 3), rng.choice([total // 2, total])) for number in range(3)
    ]
    groups = [group(rng.randint(1, 4), f"g{number}") for number in range(6)]
    jobs, at = Jobs(), 0
    for number in range(rng.randint(20, 60)):
        at += rng.choice((0, 0, 1, 4))
        jobs.add(
            f"j{number}",
            rng.choice(("q0", "q1", "q2", "q2", "no-quota")),
            rng.choice((1, 1, 2)),
            labels={POD_GROUP: f"g{rng.randint(0, 5)}"} if rng.random() < 0.4 else None,
            at=at,
            seconds=rng.randint(1, 60),
            pods=rng.choice((1, 2, 3, 4)),
            gang=rng.random() < 0.6,
            priority=rng.choice((0, 0, 3, 7)),
            grace=rng.choice((0, 0, 2)),
        )
    return cluster(*(node(f"n{number}", 4) for number in range(4)), tree(total, *quotas), *groups), jobs


def spread(cpu: int) -> dict[str, Any]:
    """The spec of a pod that keeps others with `app: web` out of its zone."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}
    return {"containers": [container], "affinity": {"podAntiAffinity": apart}}


class Happened:
    """A replay through `elasticquota` or `auto`; it hears at once of what is gone unless told otherwise.

    Attributes:
        decisions: everything that happened.
        policy: the policy at its end.
    """

    def __init__(
        self,
        where: Cluster,
        jobs: Jobs,
        *,
        plugin: PolicyFactory = elastic_quota,
        until: float | None = None,
        **options: Any,
    ) -> None:
        self.policy: Policy | None = None

        def make(cluster: Cluster, view: View, given: dict[str, Any]) -> Policy:
            options = OPTIONS_OF_AUTO if plugin is auto else OPTIONS
            self.policy = plugin(cluster, view, resolve(options, AT_ONCE | given, owner="policy"))
            return self.policy

        self.decisions: Decisions = replayed(make, jobs, where, options=options, until=until)

    def lines(self, *actions: str) -> list[str]:
        """Rows of some actions, such as `10 preempt a by b`."""
        said = []
        for row in self.decisions.of(*actions):
            words = [f"{row.time // SECOND}", row.action, row.pod or row.job]
            if row.by:
                words += ["by", row.by]
            if row.action in ("bind", "nominate") and row.node:
                words += ["on", row.node]
            said.append(" ".join(words))
        return said

    @property
    def preemptions(self) -> list[str]:
        """Victims with their preemptors, in order, such as `a by b`."""
        return [f"{row.pod} by {row.by}" for row in self.decisions.of("preempt")]

    @property
    def scheduler(self) -> QuotaScheduler:
        """What scheduled the pods."""
        assert isinstance(self.policy, PodPolicy)
        assert isinstance(self.policy.scheduler, QuotaScheduler)
        return self.policy.scheduler

    @property
    def used(self) -> dict[str, int]:
        """Quota -> cores that it uses at the end."""
        quotas = self.scheduler.usage.tree.quotas
        return {name: quota.used.get("cpu", 0) // 1000 for name, quota in quotas.items()}


def auto_happened(where: Cluster, jobs: Jobs, **options: Any) -> Happened:
    """The same through `auto`."""
    return Happened(where, jobs, plugin=auto, **options)


def names(rows: Sequence[str]) -> list[str]:
    """The victims of `preemptions`, sorted."""
    return sorted(row.split(" by ")[0] for row in rows)
