"""Small worlds for tests of kube-scheduler's model: a few nodes, a few pods, and what happens, as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness import Cluster, Job, PodSet
from harness.base.errors import Fault
from harness.base.units import SECOND
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
        **options: Any,
    ) -> None:
        self.lines: list[str] = []
        self.details: list[Mapping[str, Any]] = []
        self.refused: list[tuple[int, str, Mapping[str, Any] | None]] = []
        self.states: dict[str, str] = {}
        self.cluster: Cluster = cluster_from(objects, "test")
        in_order = sorted(jobs, key=lambda each: each[0].submit)
        ordered: list[Arrival] = [(replace(job, index=n), *rest) for n, (job, *rest) in enumerate(in_order)]
        engine = Engine([ordered], self.cluster, self, until=None if until is None else until * SECOND)
        self.policy = default_preemption(self.cluster, engine.view, options)
        engine.run(self.policy)

    def record(self, fact: Fact) -> None:
        """See `harness.engine.events.Recorder`."""
        word, job, second = ACTIONS[fact.action], fact.job, fact.time // SECOND
        if word == "preempt":
            assert fact.detail is not None
            self.details.append(fact.detail)
        if word == "refuse":
            self.refused.append((second, job.id, fact.detail))
        if word in ("bind", "nominate", "unnominate", "preempt", "gone", "finish", "reject"):
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
