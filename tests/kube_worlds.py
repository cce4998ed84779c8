"""Small worlds for tests of kube-scheduler's model: a few nodes, a few pods, and what happens, as text."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from harness import Cluster, Job, PodSet
from harness.base.errors import Fault
from harness.base.units import SECOND
from harness.cluster.changes.edits import Edit, Instant
from harness.cluster.kinds.pod_reading import read_pod
from harness.cluster.load import cluster_from
from harness.cluster.yaml.fields import Fields
from harness.engine import Engine
from harness.engine.events import ACTIONS, STATES, Fact
from harness.policy import Arrival
from harness_plugins.kube.policy import default_preemption

HOSTNAME = "kubernetes.io/hostname"


def node(
    name: str, *, labels: Mapping[str, str] | None = None, spec: Any = None, **amounts: Any
) -> dict[str, Any]:
    """A Node with 10 cpus, 64 GiB and 110 pods unless told otherwise."""
    allocatable = {"cpu": 10, "memory": "64Gi", "pods": 110, **amounts}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": spec or {},
        "status": {"allocatable": allocatable},
    }


def budget(name: str, labels: Mapping[str, str], **spec: Any) -> dict[str, Any]:
    """A PodDisruptionBudget over pods with these labels."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": dict(labels)}, **spec},
    }


def manifest(
    name: str, requests: Mapping[str, Any] | None = None, labels: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A Pod manifest with one container."""
    container = {"name": "c", "resources": {"requests": dict(requests or {})}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"containers": [container], **spec},
    }


def job(
    name: str,
    requests: Mapping[str, Any] | None = None,
    *,
    priority: int = 0,
    at: int = 0,
    runs: int = 100,
    grace: int = 0,
    pods: int = 1,
    gang: bool = False,
    preempts: bool = True,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> tuple[Job, int, int | None]:
    """A job whose pods are as a manifest says; times in seconds."""
    written = manifest(name, requests, labels, **spec)
    faults: list[Fault] = []
    pod = read_pod(Fields(written, name, faults))
    assert not faults, faults
    pod_set = PodSet(
        "main", pods, pods, pod.spec.requests, labels=pod.labels, pod_template=json.dumps(written)
    )
    made = Job(
        index=-1,
        id=name,
        submit=at * SECOND,
        queue="q",
        namespace="default",
        user="",
        priority=priority,
        priority_class="",
        preempts=preempts,
        gang=gang,
        grace_period=grace * SECOND,
        uid="",
        pod_sets=(pod_set,),
        pods=pods,
    )
    return made, runs * SECOND, None


def _instants(cluster: Cluster, then: Sequence[tuple[int, str | Mapping[str, Any]]]) -> Iterator[Instant]:
    """What becomes of nodes."""
    nodes = dict(cluster.nodes)
    for second, events in groupby(then, key=itemgetter(0)):
        edits = []
        for _, event in events:
            after = None
            if not isinstance(event, str):
                (after,) = cluster_from([event], "test").nodes.values()
            name = event if isinstance(event, str) else event["metadata"]["name"]
            before = nodes.pop(name, None)
            if after is not None:
                nodes[name] = after
            if before != after:
                edits.append(Edit("Node", name, before, after))
        yield Instant(second * SECOND, tuple(edits))


def crowd(rng: random.Random, *, own: bool = False) -> tuple[list[Any], list[Any]]:
    """Three nodes, and far more pods of a few kinds than there is room for.

    Args:
        rng: draws them.
        own: whether each job asks for amounts of its own, and more of them wait.
    """
    term = {"labelSelector": {"matchLabels": {"app": "lonely"}}, "topologyKey": HOSTNAME}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    large = {"size": "large"}
    kinds: list[dict[str, Any]] = [{}, {}, {}, {"nodeSelector": large}]
    kinds += [{"labels": {"app": "lonely"}, "affinity": alone}, {"labels": {"app": "lonely"}}]
    selector = {"matchLabels": {"app": "lonely"}}
    spread = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
    kinds.append(
        {"labels": {"app": "lonely"}, "topologySpreadConstraints": [{**spread, "labelSelector": selector}]}
    )
    for cpu in (1, 4):
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": [{"hostPort": 80}]}
        kinds.append({"containers": [container]})
    nodes = [node(f"n{number}", cpu=4, pods=3) for number in range(2)]
    nodes.append(node("n2", labels=large, cpu=8))
    jobs: list[Any] = []
    at = 0
    for number in range(rng.randint(20, 60) * (1 + own)):
        at += rng.choice((0, 0, 1, 4))
        amounts = {"cpu": f"{rng.randint(300, 4000)}m", "memory": rng.randint(1, 30) << 30}
        made = job(
            f"j{number}",
            amounts if own else {"cpu": rng.choice((1, 2, 4))},
            at=at,
            runs=rng.randint(1, 30),
            priority=rng.choice((0, 0, 0, 7)),
            pods=rng.choice((1, 1, 2)),
            grace=rng.choice((1, 2)),
            preempts=rng.random() < 0.8,
            **rng.choice(kinds),
        )
        jobs.append(made)
    return nodes, jobs


class World:
    """A replay, as it went.

    Attributes:
        lines: what happened, such as `10 preempt a by c on n1`, without submissions and requeues.
        details: what was recorded with each preemption.
        refused: which job was refused when, and what was recorded with it.
        states: how jobs stood at the end.
        policy: the policy that was replayed.
    """

    def __init__(
        self,
        objects: Sequence[Mapping[str, Any]],
        *jobs: tuple[Job, int, int | None],
        until: int | None = None,
        then: Sequence[tuple[int, str | Mapping[str, Any]]] = (),
        **options: Any,
    ) -> None:
        """Replay jobs.

        Args:
            objects: manifests.
            jobs: what arrives.
            until: the last second that is played.
            then: at which second which Node is as a manifest says, or the node of which name is gone.
            options: of default preemption; `latency` is how long an eviction takes, microseconds.
        """
        self.lines: list[str] = []
        self.details: list[Mapping[str, Any]] = []
        self.refused: list[tuple[int, str, Mapping[str, Any] | None]] = []
        self.states: dict[str, str] = {}
        cluster = cluster_from(objects, "test")
        self.cluster: Cluster = replace(cluster, changes=tuple(_instants(cluster, then)))
        in_order = sorted(jobs, key=lambda each: each[0].submit)
        ordered: list[Arrival] = [(replace(job, index=n), *rest) for n, (job, *rest) in enumerate(in_order)]
        engine = Engine([ordered], self.cluster, self, until=None if until is None else until * SECOND)
        latency = options.pop("latency", None)
        self.policy = default_preemption(self.cluster, engine.view, options, latency=latency)
        engine.run(self.policy)

    def record(self, fact: Fact) -> None:
        """See `harness.engine.events.Recorder`."""
        word, job, second = ACTIONS[fact.action], fact.job, fact.time // SECOND
        if word == "preempt":
            assert fact.detail is not None
            self.details.append(fact.detail)
        if word == "refuse":
            self.refused.append((second, job.id, fact.detail))
        if word in ("bind", "nominate", "unnominate", "preempt", "evict", "gone", "finish", "reject"):
            said = f"{second} {word} {fact.pod_name or job.id}"
            said += f" by {fact.by.id}" if fact.by is not None else ""
            said += f" on {fact.node}" if fact.node is not None and word != "gone" else ""
            self.lines.append(said + (f": {fact.reason}" if word == "reject" else ""))

    def share(self, *_figures: object) -> None:
        """There are no shares."""

    def stint(self, *_figures: object) -> None:
        """See `harness.engine.events.Recorder`."""

    def job(self, job: Job, state: int, *_figures: object) -> None:
        """See `harness.engine.events.Recorder`."""
        self.states[job.id] = STATES[state]

    def about(self, *words: str) -> list[str]:
        """The lines of these actions."""
        return [line for line in self.lines if line.split()[1] in words]
